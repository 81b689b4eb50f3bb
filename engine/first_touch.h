// Bringing pages into being: once each, by several threads where there are many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bloomline/topology.h"

namespace bloomline::detail {

struct TouchRange {
  std::byte* data = nullptr;  // at the start of a page
  uint64_t bytes = 0;
  int node = -1;  // index into topology.nodes(): touched by threads that run there; -1: on the calling thread's node
};

// Makes every page of the ranges resident and writable; what is zero stays zero. Threads are pinned to the nodes of
// their ranges, so that memory which follows first touch comes to lie there. Returns 0, or an errno: ENOMEM and its
// like where the kernel has no page to give, and the ranges may then be resident in part.
int TouchPages(const Topology& topology, std::span<const TouchRange> ranges);

}  // namespace bloomline::detail
