// From a wish for placement to ranges of memory and the nodes they belong on: arithmetic on a topology, no system call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bloomline/error.h"
#include "bloomline/memory.h"
#include "bloomline/topology.h"

namespace bloomline::detail {

struct PlacedRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::vector<int> nodes;  // indices into Topology::nodes(): one, or several to interleave over; empty: first touch
};

struct MemoryPlan {
  Placement placement = Placement::kLocal;       // never kAuto
  std::vector<std::vector<PlacedRange>> copies;  // of each copy, ranges in order that cover it; copy i is for node i
  std::string note;                              // why a wish is not followed; empty otherwise
};

// For `bytes` of filter, above 0. Ranges start at multiples of `granule`, a power of two, where there are several.
// Error(kInvalidArgument) for a node that the topology does not have, or a value that is no Placement.
Result<MemoryPlan> PlanMemory(const Topology& topology, const MemoryPolicy& policy, uint64_t bytes, uint64_t granule);

}  // namespace bloomline::detail
