// Putting memory and threads somewhere, through hwloc. Nothing here is fatal: what is refused comes back as a reason.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bloomline/topology.h"

namespace bloomline::detail {

// Asks the kernel to put the pages of [begin, begin + bytes) that are still to come on one node (of `nodes`, indices
// into topology.nodes(), one entry) or page by page on several. A full node is no error: the kernel then takes others.
// Empty on success, otherwise why it was refused.
std::string PlaceMemory(const Topology& topology, void* begin, uint64_t bytes, std::span<const int> nodes);

// Pins the calling thread to hardware threads of the system's numbers. Empty on success, otherwise why not.
std::string PinThread(const Topology& topology, std::span<const int> cpus);

// The hardware threads that the calling thread may run on: its affinity, of those in the topology. Ascending, at least
// one. A synthetic topology: all of its own.
std::vector<int> UsableCpus(const Topology& topology);

}  // namespace bloomline::detail
