// Topology: what hwloc says of the machine, in the engine's words. binding.cc is the other file that asks hwloc.
#include "bloomline/topology.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

#include "engine/hwloc_topology.h"
#include "engine/out_of_memory.h"
#include "engine/topology.h"

namespace bloomline {
namespace detail {

HwlocTopology::~HwlocTopology() {
  if (handle != nullptr) hwloc_topology_destroy(handle);
}

namespace {

std::vector<int> CpusOf(hwloc_const_cpuset_t set) {
  std::vector<int> cpus;
  if (set == nullptr) return cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) cpus.push_back(cpu);
  return cpus;
}

hwloc_obj_t ObjectAt(hwloc_topology_t topology, hwloc_obj_type_t type, unsigned index) {
  return hwloc_get_obj_by_type(topology, type, index);
}

// Nodes that have hardware threads: memory alone (of a device, say) is for whoever asks for it by name.
void ReadNodes(hwloc_topology_t topology, std::vector<NumaNode>& nodes) {
  for (unsigned i = 0;; ++i) {
    hwloc_obj_t object = ObjectAt(topology, HWLOC_OBJ_NUMANODE, i);
    if (object == nullptr) break;
    NumaNode node;
    node.number = static_cast<int>(object->os_index);
    node.memory_bytes = object->attr != nullptr ? object->attr->numanode.local_memory : 0;
    node.cpus = CpusOf(object->cpuset);
    if (!node.cpus.empty()) nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(), [](const NumaNode& a, const NumaNode& b) { return a.number < b.number; });
}

void ReadCores(hwloc_topology_t topology, std::vector<CpuCore>& cores) {
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_CORE, HWLOC_OBJ_PU}) {
    for (unsigned i = 0;; ++i) {
      hwloc_obj_t object = ObjectAt(topology, type, i);
      if (object == nullptr) break;
      CpuCore core;
      core.cpus = CpusOf(object->cpuset);
      if (!core.cpus.empty()) cores.push_back(std::move(core));
    }
    if (!cores.empty()) return;  // hardware threads stand for cores where these are not known
  }
}

void ReadCaches(hwloc_topology_t topology, std::vector<CpuCache>& caches) {
  constexpr hwloc_obj_type_t kLevels[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE};
  for (int level = 1; level <= 4; ++level) {
    for (unsigned i = 0;; ++i) {
      hwloc_obj_t object = ObjectAt(topology, kLevels[level - 1], i);
      if (object == nullptr) break;
      if (object->attr == nullptr || object->attr->cache.size == 0) continue;
      const CpuCache cache{level, object->attr->cache.size, 1, static_cast<int>(CpusOf(object->cpuset).size())};
      const auto same = std::find_if(caches.begin(), caches.end(), [&](const CpuCache& other) {
        return other.level == level && other.bytes == cache.bytes && other.cpus_sharing == cache.cpus_sharing;
      });
      if (same != caches.end()) {
        ++same->count;
      } else {
        caches.push_back(cache);
      }
    }
  }
}

std::vector<std::vector<uint64_t>> ReadDistances(hwloc_topology_t topology, const std::vector<NumaNode>& nodes) {
  std::vector<std::vector<uint64_t>> distances(nodes.size(), std::vector<uint64_t>(nodes.size(), 0));
  unsigned count = 1;
  hwloc_distances_s* matrix = nullptr;  // hwloc's; nothing below throws until it is released
  if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &count, &matrix, HWLOC_DISTANCES_KIND_MEANS_LATENCY,
                                  0) != 0 ||
      count == 0 || matrix == nullptr) {
    return {};
  }
  const auto index_of = [&](unsigned object) {
    const int number = static_cast<int>(matrix->objs[object]->os_index);
    const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const NumaNode& n) { return n.number == number; });
    return static_cast<size_t>(node - nodes.begin());
  };
  size_t found = 0;
  for (unsigned i = 0; i < matrix->nbobjs; ++i) {
    for (unsigned j = 0; j < matrix->nbobjs; ++j) {
      const size_t from = index_of(i);
      const size_t to = index_of(j);
      if (from >= nodes.size() || to >= nodes.size()) continue;
      distances[from][to] = matrix->values[size_t{i} * matrix->nbobjs + j];
      ++found;
    }
  }
  hwloc_distances_release(topology, matrix);
  if (found != nodes.size() * nodes.size()) distances.clear();
  return distances;
}

uint64_t Sysconf(int name) {
  const auto value = sysconf(name);
  return value > 0 ? static_cast<uint64_t>(value) : 0;
}

CacheSizes SystemCaches() {
  CacheSizes sizes;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  sizes.l1 = Sysconf(_SC_LEVEL1_DCACHE_SIZE);
  sizes.l2 = Sysconf(_SC_LEVEL2_CACHE_SIZE);
  sizes.l3 = Sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  return sizes;
}

void AddNote(std::string& note, const std::string& text) { note += (note.empty() ? "" : "; ") + text; }

}  // namespace

void HwlocTopology::Fill(Topology& topology, std::unique_ptr<HwlocTopology> hwloc) {
  if (hwloc != nullptr) {
    ReadNodes(hwloc->handle, topology.nodes_);
    ReadCores(hwloc->handle, topology.cores_);
    ReadCaches(hwloc->handle, topology.caches_);
  }
  // What hwloc does not say: one node with all that this process may run on.
  if (topology.cores_.empty()) {
    const int cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (int cpu = 0; cpu < cpus; ++cpu) topology.cores_.push_back({{cpu}, 0});
  }
  if (topology.nodes_.empty()) {
    NumaNode node;
    for (const CpuCore& core : topology.cores_) node.cpus.insert(node.cpus.end(), core.cpus.begin(), core.cpus.end());
    std::sort(node.cpus.begin(), node.cpus.end());
    const uint64_t pages = Sysconf(_SC_PHYS_PAGES);
    if (!topology.synthetic_) node.memory_bytes = pages * Sysconf(_SC_PAGESIZE);
    topology.nodes_.push_back(std::move(node));
  }
  if (topology.caches_.empty() && !topology.synthetic_) {
    const CacheSizes sizes = SystemCaches();
    const uint64_t bytes[] = {sizes.l1, sizes.l2, sizes.l3};
    const int cores = static_cast<int>(topology.cores_.size());
    for (int level = 1; level <= 3; ++level) {
      if (bytes[level - 1] != 0) topology.caches_.push_back({level, bytes[level - 1], level < 3 ? cores : 1, 1});
    }
    if (topology.caches_.empty()) AddNote(topology.note_, "neither hwloc nor the system knows the caches");
  }
  if (hwloc != nullptr && topology.nodes_.size() > 1) {
    topology.distances_ = ReadDistances(hwloc->handle, topology.nodes_);
  }

  for (size_t i = 0; i < topology.nodes_.size(); ++i) {
    for (const int cpu : topology.nodes_[i].cpus) {
      if (static_cast<size_t>(cpu) >= topology.node_of_cpu_.size()) {
        topology.node_of_cpu_.resize(static_cast<size_t>(cpu) + 1, 0);
      }
      topology.node_of_cpu_[static_cast<size_t>(cpu)] = static_cast<uint16_t>(i);
    }
  }
  for (CpuCore& core : topology.cores_) core.node = topology.NodeOfCpu(core.cpus.front());
  topology.hwloc_ = std::move(hwloc);
}

std::shared_ptr<const Topology> HwlocTopology::ReadMachine() {
  std::shared_ptr<Topology> topology(new Topology);
  auto hwloc = std::make_unique<HwlocTopology>();
  // hwloc 2.9 asks for the affinity until it is told: where that is forbidden, for ever. EINVAL: there are more CPUs
  // than the set holds.
  cpu_set_t affinity;
  const bool may_ask = sched_getaffinity(0, sizeof affinity, &affinity) == 0 || errno == EINVAL;
  errno = 0;
  if (!may_ask || hwloc_topology_init(&hwloc->handle) != 0 || hwloc_topology_load(hwloc->handle) != 0) {
    if (errno == ENOMEM) throw std::bad_alloc();  // to be asked again when there is memory
    hwloc.reset();
    topology->note_ = "hwloc cannot read this machine's topology: one node is assumed, nothing is bound";
  } else if (hwloc_topology_is_thissystem(hwloc->handle) == 0) {
    topology->synthetic_ = true;
    topology->note_ = "HWLOC_SYNTHETIC or HWLOC_XMLFILE is set: this is not the machine's topology, nothing is bound";
  }
  Fill(*topology, std::move(hwloc));
  return topology;
}

Result<std::shared_ptr<const Topology>> HwlocTopology::MakeSynthetic(const std::string& description) {
  std::shared_ptr<Topology> topology(new Topology);
  auto hwloc = std::make_unique<HwlocTopology>();
  errno = 0;
  if (hwloc_topology_init(&hwloc->handle) != 0) {
    if (errno == ENOMEM) throw std::bad_alloc();
    return Error(ErrorCode::kUnsupported, "hwloc cannot be used here: no topology can be made up");
  }
  if (hwloc_topology_set_synthetic(hwloc->handle, description.c_str()) != 0 ||
      hwloc_topology_load(hwloc->handle) != 0) {
    if (errno == ENOMEM) throw std::bad_alloc();
    return Error(ErrorCode::kInvalidArgument, "description = \"" + description +
                                                  "\": is not in hwloc's notation of synthetic topologies, such as "
                                                  "\"numa:2 core:4 pu:2\"");
  }
  topology->synthetic_ = true;
  topology->note_ = "made up: nothing is bound";
  Fill(*topology, std::move(hwloc));
  return std::shared_ptr<const Topology>(std::move(topology));
}

const CacheSizes& MachineCaches() {
  static const CacheSizes sizes = [] {
    const Topology& machine = *Topology::Machine();
    if (machine.synthetic()) return SystemCaches();
    return CacheSizes{machine.CacheBytes(1), machine.CacheBytes(2), machine.CacheBytes(3)};
  }();
  return sizes;
}

}  // namespace detail

Topology::Topology() = default;
Topology::~Topology() = default;

std::shared_ptr<const Topology> Topology::Machine() {
  return detail::OrThrowError([] {
    static const std::shared_ptr<const Topology> machine = detail::HwlocTopology::ReadMachine();
    return machine;
  });
}

Result<std::shared_ptr<const Topology>> Topology::Synthetic(const std::string& description) try {
  return detail::HwlocTopology::MakeSynthetic(description);
} catch (...) {
  return detail::CaughtError();
}

uint64_t Topology::CacheBytes(int level) const noexcept {
  for (const CpuCache& cache : caches_) {
    if (cache.level == level) return cache.bytes;
  }
  return 0;
}

int Topology::NodeOfCpu(int cpu) const noexcept {
  return cpu >= 0 && static_cast<size_t>(cpu) < node_of_cpu_.size() ? node_of_cpu_[static_cast<size_t>(cpu)] : 0;
}

int Topology::CurrentNode() const noexcept { return NodeOfCpu(sched_getcpu()); }

}  // namespace bloomline
