#include "engine/placement.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "engine/machine_memory.h"
#include "engine/out_of_memory.h"

namespace bloomline {

const char* PagesName(Pages pages) noexcept {
  switch (pages) {
    case Pages::kDefault:
      return "default";
    case Pages::kTransparentHuge:
      return "transparent";
    case Pages::kHuge2MiB:
      return "2MiB";
    case Pages::kHuge1GiB:
      return "1GiB";
  }
  return "unknown";
}

const char* PlacementName(Placement placement) noexcept {
  switch (placement) {
    case Placement::kAuto:
      return "auto";
    case Placement::kLocal:
      return "local";
    case Placement::kInterleave:
      return "interleave";
    case Placement::kBind:
      return "bind";
    case Placement::kReplicate:
      return "replicate";
    case Placement::kPartition:
      return "partition";
  }
  return "unknown";
}

PlacementChoice ChoosePlacement(const Topology& topology, uint64_t bytes) try {
  const size_t nodes = topology.nodes().size();
  if (nodes == 1) return {Placement::kLocal, "there is one NUMA node"};
  const uint64_t cache = std::max(topology.CacheBytes(3), topology.CacheBytes(2));
  if (bytes <= cache) {
    return {Placement::kLocal, "a last-level cache of " + detail::FormatBytes(cache) + " holds it, wherever it lies"};
  }
  return {Placement::kInterleave, "the memory of all " + std::to_string(nodes) +
                                      " nodes then serves lookups from any of them evenly; replicate "
                                      "makes each lookup local for " +
                                      std::to_string(nodes) + " times the memory and inserts " + std::to_string(nodes) +
                                      " times as dear"};
} catch (...) {
  detail::ThrowError(detail::CaughtError());
}

namespace detail {
namespace {

std::string NodeNumbers(const Topology& topology) {
  std::string text;
  for (const NumaNode& node : topology.nodes()) text += (text.empty() ? "" : ", ") + std::to_string(node.number);
  return text;
}

std::vector<PlacedRange> Partition(int nodes, uint64_t bytes, uint64_t granule) {
  std::vector<PlacedRange> ranges;
  uint64_t begin = 0;
  for (int node = 0; node < nodes; ++node) {
    const auto parts = static_cast<uint64_t>(nodes);
    const auto upto = static_cast<uint64_t>(node) + 1;
    // Whole and rest apart: bytes · node would overflow for absurd sizes.
    const uint64_t share = bytes / parts * upto + bytes % parts * upto / parts;
    const uint64_t end = node + 1 == nodes ? bytes : share & ~(granule - 1);
    if (end > begin) ranges.push_back({begin, end - begin, {node}});
    begin = std::max(begin, end);
  }
  return ranges;
}

}  // namespace

Result<MemoryPlan> PlanMemory(const Topology& topology, const MemoryPolicy& policy, uint64_t bytes, uint64_t granule) {
  MemoryPlan plan;
  const int nodes = static_cast<int>(topology.nodes().size());
  plan.placement = policy.placement == Placement::kAuto ? ChoosePlacement(topology, bytes).placement : policy.placement;
  std::vector<int> all(static_cast<size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> bound;
  if (plan.placement == Placement::kBind) {
    const auto is_wanted = [&](const NumaNode& node) { return node.number == policy.node; };
    const auto found = std::find_if(topology.nodes().begin(), topology.nodes().end(), is_wanted);
    if (found == topology.nodes().end()) {
      return Error(ErrorCode::kInvalidArgument,
                   "node = " + std::to_string(policy.node) + ": the NUMA nodes are " + NodeNumbers(topology));
    }
    bound.push_back(static_cast<int>(found - topology.nodes().begin()));
  }
  if (nodes == 1 && plan.placement <= Placement::kPartition) {
    if (plan.placement != Placement::kLocal && plan.placement != Placement::kBind) {
      plan.note = std::string("placement ") + PlacementName(plan.placement) + ": there is one NUMA node";
    }
    plan.placement = Placement::kLocal;
  }
  switch (plan.placement) {
    case Placement::kAuto:
    case Placement::kLocal:
      plan.copies = {{PlacedRange{0, bytes, {}}}};
      return plan;
    case Placement::kInterleave:
      plan.copies = {{PlacedRange{0, bytes, all}}};
      return plan;
    case Placement::kBind:
      plan.copies = {{PlacedRange{0, bytes, bound}}};
      return plan;
    case Placement::kReplicate:
      for (int node = 0; node < nodes; ++node) plan.copies.push_back({PlacedRange{0, bytes, {node}}});
      return plan;
    case Placement::kPartition:
      plan.copies = {Partition(nodes, bytes, granule)};
      if (plan.copies[0].size() < static_cast<size_t>(nodes)) plan.note = "too small for a part on every node";
      return plan;
  }
  return Error(ErrorCode::kInvalidArgument, "placement = " + std::to_string(static_cast<int>(policy.placement)) +
                                                ": must be one of the Placement values, 0 … 5");
}

}  // namespace detail
}  // namespace bloomline
