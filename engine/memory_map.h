// Mapping the memory of one copy of a filter: in which pages, on which nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bloomline/error.h"
#include "bloomline/memory.h"
#include "bloomline/topology.h"
#include "engine/first_touch.h"
#include "engine/placement.h"

namespace bloomline::detail {

inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
inline constexpr uint64_t kGiantPageBytes = uint64_t{1} << 30;

// Memory that was mapped; unmapped when this goes.
class Mapping {
 public:
  Mapping() = default;
  // `data` lies inside [address, address + bytes).
  Mapping(void* address, uint64_t bytes, std::byte* data) : address_(address), bytes_(bytes), data_(data) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  std::byte* data() const noexcept { return data_; }

 private:
  void* address_ = nullptr;
  uint64_t bytes_ = 0;
  std::byte* data_ = nullptr;
};

struct MapRequest {
  uint64_t bytes = 0;
  Pages pages = Pages::kTransparentHuge;
  bool lazy = false;
  const Topology* topology = nullptr;
  std::span<const PlacedRange> ranges;  // cover 0 … bytes; where there are several, they start at whole pages
};

struct MappedCopy {
  Mapping mapping;
  std::vector<TouchRange> untouched;  // what is still to be touched; pages of the reserve are resident already
  int advice_errno = 0;               // why madvise refused the wish for transparent huge pages; 0: it did not
  std::string note;                   // what else was refused; empty: nothing
};

// Zeroed memory of request.bytes. From 2 MiB on it is aligned to the pages wished for, and an inaccessible page lies on
// either side, so that the kernel accounts for this mapping alone and an overrun stops at once.
// Pages of the reserve that are not to be had are replaced by the next smaller kind. Error(kOutOfMemory).
Result<MappedCopy> MapCopy(const MapRequest& request);

// The one place where memory is mapped. nullptr and errno on failure.
void* MapPages(void* where, uint64_t bytes, int protection, int flags, int fd, uint64_t offset);

uint64_t PageBytes();
Error OutOfMemory(uint64_t bytes, const std::string& why);

}  // namespace bloomline::detail
