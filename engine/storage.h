// Storage: the memory behind a filter, either zeroed memory of its own, in one copy or one per NUMA node, or a
// read-only mapping of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bloomline/detail/block_ops.h"
#include "bloomline/error.h"
#include "bloomline/memory.h"
#include "engine/memory_map.h"

namespace bloomline::detail {

class Storage {
 public:
  // `bytes` of zeroed memory, at least 64-byte aligned, placed as the policy wishes (memory.h), every page touched once
  // unless it is lazy. kDefault forbids huge pages, so that a comparison of the two compares what it says. Refuses what
  // the machine or the control group does not have before anything is mapped.
  // Errors: kInvalidArgument for 0 bytes, an unknown node or a value that is none of the enumerations'; kOutOfMemory.
  static Result<std::unique_ptr<Storage>> Allocate(uint64_t bytes, const MemoryPolicy& policy);

  // `length` bytes of the file behind `fd`, read-only, from `offset` on; the file must be that long. `fd` may be closed
  // afterwards. words() is 64-byte aligned where `offset` is. Errors: kInvalidArgument, kIo, kOutOfMemory.
  static Result<std::unique_ptr<Storage>> MapFile(int fd, uint64_t offset, uint64_t length);

  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Copy 0. Not to be written where writable() is false: the mapping is read-only.
  uint64_t* words() const noexcept { return reinterpret_cast<uint64_t*>(data_); }
  std::byte* data() const noexcept { return data_; }
  uint64_t bytes() const noexcept { return bytes_; }  // of one copy
  bool writable() const noexcept { return writable_; }
  const MemoryPolicy& policy() const noexcept { return policy_; }
  Placement placement() const noexcept { return placement_; }  // never kAuto

  // The copies and who reads which; null where there is one. Its tables of operations are the filter's to set.
  Replicas* replicas() noexcept { return copies_.size() > 1 ? &replicas_ : nullptr; }
  // Where each node's range ends, in bytes: entry i is that of the node with index i in the topology. Empty where the
  // memory is not partitioned.
  std::span<const uint64_t> partition_ends() const noexcept { return partition_ends_; }

  // What the kernel says of this memory now. Reads /proc/self/smaps and numa_maps, whose cost grows with the process's
  // mappings; where they cannot be read, the note says so and residency comes from mincore.
  MemoryReport Report() const;

 private:
  Storage() = default;

  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  std::vector<Mapping> copies_;
  MemoryPolicy policy_;
  Placement placement_ = Placement::kLocal;
  std::vector<int> wished_nodes_;  // of each copy the system's number of its node; empty: not on one node
  std::vector<uint64_t> partition_ends_;
  Replicas replicas_;
  std::vector<uint64_t*> copy_words_;  // what replicas_ points to
  std::vector<uint16_t> copy_of_cpu_;
  int advice_errno_ = 0;  // why madvise refused the wish for huge pages; 0: it did not
  std::string note_;      // what was refused when the memory was made
  bool writable_ = false;
};

// The kernel's account of the memory in [begin, begin + bytes), from a file in the format of /proc/self/smaps.
struct MappingAccount {
  bool found = false;              // false: the file cannot be read or knows nothing of this memory
  bool exact = false;              // false: the kernel merged it with neighbours, the figures are of all of these
  uint64_t resident_bytes = 0;     // in pages of any kind
  uint64_t transparent_bytes = 0;  // of these, in transparent huge pages
  uint64_t reserved_2mib = 0;      // of these, in pages from the reserve
  uint64_t reserved_1gib = 0;
};
MappingAccount ReadMappingAccount(const void* begin, uint64_t bytes, const char* smaps_file = "/proc/self/smaps");

// Adds how much of the memory in [begin, begin + bytes) is on each node, from a file in the format of
// /proc/self/numa_maps. False where it cannot be read.
bool AddNodeShares(const void* begin, uint64_t bytes, std::vector<MemoryReport::NodeShare>& nodes,
                   const char* numa_maps_file = "/proc/self/numa_maps");

}  // namespace bloomline::detail
