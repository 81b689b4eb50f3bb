// hwloc's handle behind a Topology. For topology.cc and binding.cc: hwloc is asked there and nowhere else.
#pragma once

#include <hwloc.h>

#include <memory>
#include <string>

#include "bloomline/topology.h"

namespace bloomline::detail {

struct HwlocTopology {
  HwlocTopology() = default;
  ~HwlocTopology();
  HwlocTopology(const HwlocTopology&) = delete;
  HwlocTopology& operator=(const HwlocTopology&) = delete;

  static std::shared_ptr<const Topology> ReadMachine();
  static Result<std::shared_ptr<const Topology>> MakeSynthetic(const std::string& description);
  // The handle to bind by; null where nothing can or may be bound.
  static hwloc_topology_t ForBinding(const Topology& topology) {
    return topology.synthetic_ || topology.hwloc_ == nullptr ? nullptr : topology.hwloc_->handle;
  }

  hwloc_topology_t handle = nullptr;

 private:
  static void Fill(Topology& topology, std::unique_ptr<HwlocTopology> hwloc);
};

}  // namespace bloomline::detail
