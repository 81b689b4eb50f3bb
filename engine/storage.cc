#include "engine/storage.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "engine/machine_memory.h"

namespace bloomline::detail {
namespace {

// Beyond any address space of today; below it no sum in this file overflows.
constexpr uint64_t kMaxBytes = uint64_t{1} << 56;
// Smaller requests are not worth reading the control groups for.
constexpr uint64_t kLimitCheckBytes = uint64_t{1} << 20;

uint64_t PageBytes() {
  const auto bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 4096;
}

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// The one place where memory is mapped. nullptr and errno on failure.
void* MapMemory(uint64_t bytes, int protection, int flags, int fd, uint64_t offset) {
  if (bytes > std::numeric_limits<size_t>::max()) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const address = mmap(nullptr, static_cast<size_t>(bytes), protection, flags, fd, static_cast<off_t>(offset));
  return address == MAP_FAILED ? nullptr : address;
}

Error OutOfMemory(uint64_t bytes, const std::string& why) {
  return Error(ErrorCode::kOutOfMemory, "cannot allocate " + FormatBytes(bytes) + " for a filter: " + why);
}

struct Mapping {
  void* address = nullptr;  // with guard pages
  uint64_t bytes = 0;
  std::byte* data = nullptr;
};

// Memory of at least 2 MiB: reserves more than needed, cuts out the aligned part with a page of no access on either
// side, and opens what lies between. nullptr and errno on failure.
Mapping MapAligned(uint64_t length, uint64_t page, int flags) {
  const uint64_t reserved = length + kHugePageBytes + 2 * page;
  void* const address = MapMemory(reserved, PROT_NONE, flags, -1, 0);
  if (address == nullptr) return {};
  const auto begin = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
  const uint64_t data = RoundUp(begin + page, kHugePageBytes);
  const uint64_t kept_begin = data - page;
  const uint64_t kept_end = data + length + page;
  auto* const base = static_cast<std::byte*>(address);
  const bool trimmed = (kept_begin == begin || munmap(base, static_cast<size_t>(kept_begin - begin)) == 0) &&
                       (kept_end == begin + reserved ||
                        munmap(base + (kept_end - begin), static_cast<size_t>(begin + reserved - kept_end)) == 0);
  if (!trimmed || mprotect(base + (data - begin), static_cast<size_t>(length), PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    munmap(base, static_cast<size_t>(reserved));  // the parts already unmapped do no harm
    errno = error;
    return {};
  }
  return {base + (kept_begin - begin), kept_end - kept_begin, base + (data - begin)};
}

}  // namespace

Result<std::unique_ptr<Storage>> Storage::Allocate(uint64_t bytes, const MemoryPolicy& policy) {
  if (bytes == 0) return Error(ErrorCode::kInvalidArgument, "bytes is 0: storage has at least 1 byte");
  if (bytes > kMaxBytes) return OutOfMemory(bytes, "no address space is that large");
  if (!policy.lazy && bytes >= kLimitCheckBytes) {
    const MemoryLimit limit = ReadMemoryLimit();
    if (bytes > limit.bytes) {
      return OutOfMemory(bytes, limit.owner + " has " + FormatBytes(limit.bytes) +
                                    " of memory (lazily mapped memory is not held against that)");
    }
  }

  const uint64_t page = PageBytes();
  const uint64_t length = RoundUp(bytes, page);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (policy.lazy ? MAP_NORESERVE : 0);
  Mapping mapping;
  if (bytes >= kHugePageBytes) {
    mapping = MapAligned(length, page, flags);
  } else {
    mapping.address = MapMemory(length, PROT_READ | PROT_WRITE, flags, -1, 0);
    mapping.bytes = length;
    mapping.data = static_cast<std::byte*>(mapping.address);
  }
  if (mapping.address == nullptr) {
    const std::string reason = std::strerror(errno);
    return OutOfMemory(bytes, "the system refused it: " + reason);
  }

  std::unique_ptr<Storage> storage(new Storage);
  storage->data_ = mapping.data;
  storage->bytes_ = bytes;
  storage->mapping_ = mapping.address;
  storage->mapping_bytes_ = static_cast<size_t>(mapping.bytes);
  storage->policy_ = policy;
  storage->writable_ = true;
  if (policy.pages == Pages::kDefault) {
    // An error here means that the kernel has no huge pages to keep away.
    (void)madvise(mapping.data, static_cast<size_t>(length), MADV_NOHUGEPAGE);
  } else if (bytes >= kHugePageBytes && madvise(mapping.data, static_cast<size_t>(length), MADV_HUGEPAGE) != 0) {
    storage->advice_errno_ = errno;
  }
  return Result<std::unique_ptr<Storage>>(std::move(storage));
}

Result<std::unique_ptr<Storage>> Storage::MapFile(int fd, uint64_t offset, uint64_t length) {
  if (length == 0 || length > kMaxBytes || offset > kMaxBytes) {
    return Error(ErrorCode::kInvalidArgument, "cannot map " + std::to_string(length) + " bytes from offset " +
                                                  std::to_string(offset) + ": 1 … 2^56 bytes below 2^56 are allowed");
  }
  const uint64_t ahead = offset % PageBytes();  // mappings start at whole pages
  void* const address = MapMemory(ahead + length, PROT_READ, MAP_SHARED, fd, offset - ahead);
  if (address == nullptr) {
    const int error = errno;
    return Error(error == ENOMEM ? ErrorCode::kOutOfMemory : ErrorCode::kIo,
                 "cannot map " + FormatBytes(length) + " of a file: " + std::strerror(error), error);
  }
  std::unique_ptr<Storage> storage(new Storage);
  storage->data_ = static_cast<std::byte*>(address) + ahead;
  storage->bytes_ = length;
  storage->mapping_ = address;
  storage->mapping_bytes_ = static_cast<size_t>(ahead + length);
  storage->policy_.pages = Pages::kDefault;
  return Result<std::unique_ptr<Storage>>(std::move(storage));
}

Storage::~Storage() { munmap(mapping_, mapping_bytes_); }

}  // namespace bloomline::detail
