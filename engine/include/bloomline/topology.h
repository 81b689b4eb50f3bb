// Topology: the machine as the engine sees it, asked of hwloc. Immutable; may be used from many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bloomline/error.h"
#include "bloomline/export.h"
#include "bloomline/memory.h"

namespace bloomline {

namespace detail {
struct HwlocTopology;
}

struct NumaNode {
  int number = 0;             // the system's
  uint64_t memory_bytes = 0;  // 0: not known
  std::vector<int> cpus;      // the system's numbers of its hardware threads, ascending
};

struct CpuCore {
  std::vector<int> cpus;  // its hardware threads
  int node = 0;           // index into nodes()
};

struct CpuCache {
  int level = 1;         // data and unified caches only
  uint64_t bytes = 0;    // of one
  int count = 1;         // how many of this level and size
  int cpus_sharing = 1;  // hardware threads that share one
};

class BLOOMLINE_API Topology {
 public:
  // This machine, of which the process may use what its control group allows. Asked once per process. Where hwloc may
  // not look (containers, seccomp) or is told to make things up (HWLOC_SYNTHETIC, HWLOC_XMLFILE): see note(). Throws
  // Error(kOutOfMemory); asked again the next time then.
  static std::shared_ptr<const Topology> Machine();
  // A made-up machine in hwloc's notation, "numa:2 core:4 pu:2", for tests of decisions. synthetic() is true, and
  // neither memory nor threads are ever bound by it. Error(kInvalidArgument).
  static Result<std::shared_ptr<const Topology>> Synthetic(const std::string& description);

  const std::vector<NumaNode>& nodes() const noexcept { return nodes_; }    // at least one
  const std::vector<CpuCore>& cores() const noexcept { return cores_; }     // at least one
  const std::vector<CpuCache>& caches() const noexcept { return caches_; }  // by level
  // distances()[i][j]: from nodes()[i] to nodes()[j], 10 is a node to itself. Empty: not known.
  const std::vector<std::vector<uint64_t>>& distances() const noexcept { return distances_; }
  bool synthetic() const noexcept { return synthetic_; }      // not this machine
  const std::string& note() const noexcept { return note_; }  // why something is not known; empty otherwise

  // The size of a core's cache of this level, 0: there is none or it is not known.
  uint64_t CacheBytes(int level) const noexcept;
  // Index into nodes() of the node that a hardware thread is on, or that the calling thread runs on now; 0 where it is
  // not known. No system call.
  int NodeOfCpu(int cpu) const noexcept;
  int CurrentNode() const noexcept;

  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

 private:
  friend struct detail::HwlocTopology;
  Topology();

  std::vector<NumaNode> nodes_;
  std::vector<CpuCore> cores_;
  std::vector<CpuCache> caches_;
  std::vector<std::vector<uint64_t>> distances_;
  std::vector<uint16_t> node_of_cpu_;
  bool synthetic_ = false;
  std::string note_;
  std::unique_ptr<detail::HwlocTopology> hwloc_;  // empty: hwloc cannot be used
};

// What Placement::kAuto chooses for a filter of `bytes` on this topology: the placement, and why in one sentence.
// Throws Error(kOutOfMemory).
struct PlacementChoice {
  Placement placement = Placement::kLocal;
  std::string why;
};
BLOOMLINE_API PlacementChoice ChoosePlacement(const Topology& topology, uint64_t bytes);

}  // namespace bloomline
