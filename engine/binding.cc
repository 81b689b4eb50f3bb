#include "engine/binding.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "engine/hwloc_topology.h"

namespace bloomline::detail {
namespace {

struct BitmapFree {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapFree>;

constexpr const char* kNoHwloc = "hwloc cannot be used here";
constexpr const char* kNoBitmap = "no memory for a set of hwloc's";

std::string WhyNot(const Topology& topology) { return topology.synthetic() ? topology.note() : kNoHwloc; }

}  // namespace

std::string PlaceMemory(const Topology& topology, void* begin, uint64_t bytes, std::span<const int> nodes) {
  hwloc_topology_t hwloc = HwlocTopology::ForBinding(topology);
  if (hwloc == nullptr) return WhyNot(topology);
  const Bitmap set(hwloc_bitmap_alloc());
  if (set == nullptr) return kNoBitmap;
  for (const int node : nodes) {
    const int number = topology.nodes()[static_cast<size_t>(node)].number;
    if (hwloc_bitmap_set(set.get(), static_cast<unsigned>(number)) != 0) return kNoBitmap;
  }
  // Not HWLOC_MEMBIND_STRICT: where the node is full, that ends the process instead of taking another node's memory.
  const hwloc_membind_policy_t policy = nodes.size() == 1 ? HWLOC_MEMBIND_BIND : HWLOC_MEMBIND_INTERLEAVE;
  if (hwloc_set_area_membind(hwloc, begin, bytes, set.get(), policy, HWLOC_MEMBIND_BYNODESET) == 0) return "";
  return std::strerror(errno);
}

std::string PinThread(const Topology& topology, std::span<const int> cpus) {
  hwloc_topology_t hwloc = HwlocTopology::ForBinding(topology);
  if (hwloc == nullptr) return WhyNot(topology);
  const Bitmap set(hwloc_bitmap_alloc());
  if (set == nullptr) return kNoBitmap;
  for (const int cpu : cpus) {
    if (hwloc_bitmap_set(set.get(), static_cast<unsigned>(cpu)) != 0) return kNoBitmap;
  }
  if (hwloc_set_cpubind(hwloc, set.get(), HWLOC_CPUBIND_THREAD) == 0) return "";
  return std::strerror(errno);
}

std::vector<int> UsableCpus(const Topology& topology) {
  // Of cores, not of nodes: the control group may forbid a node's memory and allow its hardware threads.
  std::vector<int> all;
  for (const CpuCore& core : topology.cores()) all.insert(all.end(), core.cpus.begin(), core.cpus.end());
  std::sort(all.begin(), all.end());
  hwloc_topology_t hwloc = HwlocTopology::ForBinding(topology);
  const Bitmap set(hwloc == nullptr ? nullptr : hwloc_bitmap_alloc());
  if (set == nullptr || hwloc_get_cpubind(hwloc, set.get(), HWLOC_CPUBIND_THREAD) != 0) return all;
  std::vector<int> usable;
  for (const int cpu : all) {
    if (hwloc_bitmap_isset(set.get(), static_cast<unsigned>(cpu)) != 0) usable.push_back(cpu);
  }
  return usable.empty() ? all : usable;
}

}  // namespace bloomline::detail
