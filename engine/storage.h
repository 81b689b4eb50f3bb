// Storage: the memory behind a filter, either zeroed memory of its own or a read-only mapping of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bloomline/error.h"
#include "bloomline/memory.h"

namespace bloomline::detail {

inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

class Storage {
 public:
  // `bytes` of zeroed memory, at least 64-byte aligned; from 2 MiB on aligned to 2 MiB and followed and preceded by an
  // inaccessible page, so that the kernel accounts for this mapping alone and an overrun stops at once.
  // policy.pages: kTransparentHuge asks for huge pages (from 2 MiB on), kDefault forbids them, so that a comparison of
  // the two compares what it says.
  // policy.lazy: false refuses more than the machine (or the control group) has before anything is mapped. true
  // reserves address space only; with kTransparentHuge the first write to a page then takes 2 MiB.
  // Errors: kInvalidArgument for 0 bytes, kOutOfMemory.
  static Result<std::unique_ptr<Storage>> Allocate(uint64_t bytes, const MemoryPolicy& policy);

  // `length` bytes of the file behind `fd`, read-only, from `offset` on; the file must be that long. `fd` may be closed
  // afterwards. words() is 64-byte aligned where `offset` is. Errors: kInvalidArgument, kIo, kOutOfMemory.
  static Result<std::unique_ptr<Storage>> MapFile(int fd, uint64_t offset, uint64_t length);

  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Not to be written where writable() is false: the mapping is read-only.
  uint64_t* words() const noexcept { return reinterpret_cast<uint64_t*>(data_); }
  std::byte* data() const noexcept { return data_; }
  uint64_t bytes() const noexcept { return bytes_; }
  bool writable() const noexcept { return writable_; }
  const MemoryPolicy& policy() const noexcept { return policy_; }

  // What the kernel says of this memory now. Reads /proc/self/smaps, whose cost grows with the process's mappings;
  // where it cannot be read, the note says so and residency comes from mincore.
  MemoryReport Report() const;

 private:
  Storage() = default;

  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  void* mapping_ = nullptr;    // what munmap takes: data_ with guard pages or the part of a page before it
  size_t mapping_bytes_ = 0;
  MemoryPolicy policy_;
  int advice_errno_ = 0;       // why madvise refused the wish for huge pages; 0: it did not
  bool writable_ = false;
};

// The kernel's account of the memory in [begin, begin + bytes), from a file in the format of /proc/self/smaps.
struct MappingAccount {
  bool found = false;            // false: the file cannot be read or knows nothing of this memory
  bool exact = false;            // false: the kernel merged it with neighbours, the figures are of all of these
  uint64_t resident_bytes = 0;
  uint64_t huge_page_bytes = 0;
};
MappingAccount ReadMappingAccount(const void* begin, uint64_t bytes, const char* smaps_file = "/proc/self/smaps");

}  // namespace bloomline::detail
