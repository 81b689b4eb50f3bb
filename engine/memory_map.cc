#include "engine/memory_map.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "engine/binding.h"
#include "engine/machine_memory.h"

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

namespace bloomline::detail {
namespace {

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// The kinds of page that the system keeps in reserve, largest first.
struct ReservedKind {
  uint64_t page_bytes;
  Pages from;  // the least wish that includes it
  const char* name;
  const char* directory;
};
constexpr std::array<ReservedKind, 2> kReserved = {{
    {kGiantPageBytes, Pages::kHuge1GiB, "1 GiB pages", "/sys/kernel/mm/hugepages/hugepages-1048576kB/"},
    {kHugePageBytes, Pages::kHuge2MiB, "2 MiB pages", "/sys/kernel/mm/hugepages/hugepages-2048kB/"},
}};

uint64_t ReadNumber(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : 0;
}

uint64_t FreeReservedBytes(const ReservedKind& kind) {
  const uint64_t free = ReadNumber(std::string(kind.directory) + "free_hugepages");
  const uint64_t promised = ReadNumber(std::string(kind.directory) + "resv_hugepages");
  return free > promised ? (free - promised) * kind.page_bytes : 0;
}

// How many bytes of each reserved kind an attempt may take, and what came of it.
struct Attempt {
  std::array<uint64_t, kReserved.size()> limit{};
  std::array<uint64_t, kReserved.size()> taken{};
  size_t refused = kReserved.size();  // the kind that failed; kReserved.size(): none
  int error = 0;
  bool untouchable = false;  // it was mapped, but could not be brought into being
};

// A reservation of address space that is filled from its start on. What is mapped over or lost is known at any time, so
// that a failure unmaps what is ours and nothing else: after a mapping at a fixed place fails, the kernel has already
// taken away what was there, and another thread's memory may come to lie in the hole.
class Region {
 public:
  Region(std::byte* begin, uint64_t bytes) : begin_(begin), bytes_(bytes) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() {
    if (begin_ == nullptr) return;
    Unmap(begin_, hole_begin_);
    Unmap(begin_ + hole_end_, bytes_ - hole_end_);
  }

  // False and errno: the reserve does not have that much.
  bool MapReserved(uint64_t offset, uint64_t bytes, uint64_t page_bytes) {
    const int size = std::countr_zero(page_bytes) << MAP_HUGE_SHIFT;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED | size;
    if (MapPages(begin_ + offset, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != nullptr) return true;
    hole_begin_ = offset;
    hole_end_ = offset + bytes;
    return false;
  }

  Mapping Release(std::byte* data) { return Mapping(std::exchange(begin_, nullptr), bytes_, data); }

 private:
  static void Unmap(std::byte* at, uint64_t bytes) {
    if (bytes != 0) munmap(at, static_cast<size_t>(bytes));
  }

  std::byte* begin_;
  uint64_t bytes_;
  uint64_t hole_begin_ = 0;  // empty at first: the second part is then all
  uint64_t hole_end_ = 0;
};

// Address space of `length` at a multiple of `alignment`, with a page more on either side. nullptr and errno.
std::byte* Reserve(uint64_t length, uint64_t alignment, bool lazy) {
  const uint64_t page = PageBytes();
  const uint64_t reserved = length + alignment + 2 * page;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (lazy ? MAP_NORESERVE : 0);
  auto* const base = static_cast<std::byte*>(MapPages(nullptr, reserved, PROT_NONE, flags, -1, 0));
  if (base == nullptr) return nullptr;
  const auto begin = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(base));
  const uint64_t kept_begin = RoundUp(begin + page, alignment) - page;
  const uint64_t kept_end = kept_begin + length + 2 * page;
  const bool trimmed = (kept_begin == begin || munmap(base, static_cast<size_t>(kept_begin - begin)) == 0) &&
                       (kept_end == begin + reserved ||
                        munmap(base + (kept_end - begin), static_cast<size_t>(begin + reserved - kept_end)) == 0);
  if (!trimmed) {
    const int error = errno;
    munmap(base, static_cast<size_t>(reserved));  // the parts already unmapped do no harm: nobody else ran
    errno = error;
    return nullptr;
  }
  return base + (kept_begin - begin);
}

int TouchNode(const PlacedRange& range) { return range.nodes.size() == 1 ? range.nodes[0] : -1; }

// Binds, advises and lists for touching what is ordinary memory.
void FinishOrdinary(const MapRequest& request, const PlacedRange& range, std::byte* data, uint64_t bytes,
                    MappedCopy& copy) {
  if (!range.nodes.empty()) {
    const std::string refused = PlaceMemory(*request.topology, data, bytes, range.nodes);
    if (!refused.empty()) copy.note = "placement refused: " + refused;
  }
  if (request.pages == Pages::kDefault) {
    // An error here means that the kernel has no huge pages to keep away.
    (void)madvise(data, static_cast<size_t>(bytes), MADV_NOHUGEPAGE);
  } else if (bytes >= kHugePageBytes && madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE) != 0) {
    copy.advice_errno = errno;
  }
  if (!request.lazy) copy.untouched.push_back({data, bytes, TouchNode(range)});
}

// Fills one range of `region`, largest pages first. False: attempt says what failed.
bool FillRange(const MapRequest& request, const PlacedRange& range, uint64_t end, std::byte* data, uint64_t front,
               Region& region, Attempt& attempt, MappedCopy& copy) {
  uint64_t at = range.offset;
  for (size_t i = 0; i < kReserved.size(); ++i) {
    const uint64_t page = kReserved[i].page_bytes;
    const uint64_t bytes = std::min(end - at, attempt.limit[i] - attempt.taken[i]) / page * page;
    if (bytes == 0 || at % page != 0) continue;
    attempt.taken[i] += bytes;
    if (!region.MapReserved(front + at, bytes, page)) {
      attempt.refused = i;
      attempt.error = errno;
      return false;
    }
    if (!range.nodes.empty()) {
      const std::string refused = PlaceMemory(*request.topology, data + at, bytes, range.nodes);
      if (!refused.empty()) copy.note = "placement refused: " + refused;
    }
    // Now, not at the first write: a page that cannot be had then ends the process.
    const TouchRange touch{data + at, bytes, TouchNode(range)};
    if (const int error = TouchPages(*request.topology, {&touch, 1}); error != 0) {
      attempt.refused = i;
      attempt.error = error;
      attempt.untouchable = true;
      return false;
    }
    at += bytes;
  }
  if (at == end) return true;
  if (mprotect(data + at, static_cast<size_t>(end - at), PROT_READ | PROT_WRITE) != 0) {
    attempt.error = errno;
    return false;
  }
  FinishOrdinary(request, range, data + at, end - at, copy);
  return true;
}

// Memory from 2 MiB on, with at most attempt.limit of the reserved kinds. An empty mapping: attempt says why.
MappedCopy TryMap(const MapRequest& request, Attempt& attempt) {
  MappedCopy copy;
  const uint64_t page = PageBytes();
  const uint64_t length = RoundUp(request.bytes, page);
  const uint64_t alignment = attempt.limit[0] != 0 ? kGiantPageBytes : kHugePageBytes;
  std::byte* const begin = Reserve(length, alignment, request.lazy);
  if (begin == nullptr) {
    attempt.error = errno;
    return copy;
  }
  Region region(begin, length + 2 * page);
  std::byte* const data = begin + page;
  for (const PlacedRange& range : request.ranges) {
    const uint64_t end = RoundUp(range.offset + range.bytes, page);
    if (!FillRange(request, range, end, data, page, region, attempt, copy)) return MappedCopy();
  }
  copy.mapping = region.Release(data);
  return copy;
}

std::string WhyRefused(const ReservedKind& kind, const Attempt& attempt, uint64_t free) {
  std::string text = std::string(kind.name) + ": ";
  if (attempt.error == EINVAL) {
    // Touching them at the first write instead would end the process where one is missing.
    return text + (attempt.untouchable ? "need Linux 5.14 or newer" : "this machine has none");
  }
  return text + "the reserve has " + FormatBytes(free) + " free, " + FormatBytes(attempt.taken[attempt.refused]) +
         " were asked for (" + std::strerror(attempt.error) + ")";
}

Result<MappedCopy> MapLarge(const MapRequest& request) {
  Attempt wish;
  for (size_t i = 0; i < kReserved.size(); ++i) {
    wish.limit[i] =
        request.pages >= kReserved[i].from ? request.bytes / kReserved[i].page_bytes * kReserved[i].page_bytes : 0;
  }
  std::string note;
  for (;;) {
    Attempt attempt;
    attempt.limit = wish.limit;
    MappedCopy copy = TryMap(request, attempt);
    if (copy.mapping.data() != nullptr) {
      if (!note.empty()) copy.note += (copy.note.empty() ? "" : "; ") + note;
      return Result<MappedCopy>(std::move(copy));
    }
    if (attempt.refused == kReserved.size()) {
      return OutOfMemory(request.bytes, std::string("the system refused it: ") + std::strerror(attempt.error));
    }
    // What is free of this kind, then, and the rest in smaller pages; less each time, so that this ends.
    const ReservedKind& kind = kReserved[attempt.refused];
    const uint64_t wanted = attempt.taken[attempt.refused];
    const uint64_t free = FreeReservedBytes(kind);
    const bool first = wish.limit[attempt.refused] == request.bytes / kind.page_bytes * kind.page_bytes;
    wish.limit[attempt.refused] = first && free < wanted ? free : 0;
    note += (note.empty() ? "" : "; ") + WhyRefused(kind, attempt, free);
  }
}

Result<MappedCopy> MapSmall(const MapRequest& request) {
  MappedCopy copy;
  const uint64_t length = RoundUp(request.bytes, PageBytes());
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (request.lazy ? MAP_NORESERVE : 0);
  void* const address = MapPages(nullptr, length, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (address == nullptr) {
    return OutOfMemory(request.bytes, std::string("the system refused it: ") + std::strerror(errno));
  }
  auto* const data = static_cast<std::byte*>(address);
  copy.mapping = Mapping(address, length, data);
  for (const PlacedRange& range : request.ranges) {
    FinishOrdinary(request, range, data + range.offset, RoundUp(range.offset + range.bytes, PageBytes()) - range.offset,
                   copy);
  }
  return Result<MappedCopy>(std::move(copy));
}

}  // namespace

uint64_t PageBytes() {
  static const auto bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : 4096;
}

void* MapPages(void* where, uint64_t bytes, int protection, int flags, int fd, uint64_t offset) {
  if (bytes > std::numeric_limits<size_t>::max()) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const address = mmap(where, static_cast<size_t>(bytes), protection, flags, fd, static_cast<off_t>(offset));
  return address == MAP_FAILED ? nullptr : address;
}

Error OutOfMemory(uint64_t bytes, const std::string& why) {
  return Error(ErrorCode::kOutOfMemory, "cannot allocate " + FormatBytes(bytes) + " for a filter: " + why);
}

Mapping::Mapping(Mapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  return *this;
}

Mapping::~Mapping() {
  if (address_ != nullptr) munmap(address_, static_cast<size_t>(bytes_));
}

Result<MappedCopy> MapCopy(const MapRequest& request) {
  return request.bytes >= kHugePageBytes ? MapLarge(request) : MapSmall(request);
}

}  // namespace bloomline::detail
