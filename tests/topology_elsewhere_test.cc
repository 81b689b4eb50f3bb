// A topology that hwloc reads from a file (HWLOC_XMLFILE) in place of the machine: with distances, which made-up ones
// do not have. In children: the machine is asked once per process.
#include <gtest/gtest.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/thread_pool.h"
#include "bloomline/topology.h"
#include "engine/binding.h"
#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using test::TempDir;

// Writes "numa:2 core:3 pu:1" with distances. False: hwloc is too old to be given any.
bool WriteTopology(const std::string& path) {
#if HWLOC_API_VERSION >= 0x00020500
  hwloc_topology_t topology = nullptr;
  EXPECT_EQ(hwloc_topology_init(&topology), 0);
  EXPECT_EQ(hwloc_topology_set_synthetic(topology, "numa:2(memory=1073741824) core:3 pu:1"), 0);
  EXPECT_EQ(hwloc_topology_load(topology), 0);
  hwloc_obj_t nodes[] = {hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, 0),
                         hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, 1)};
  hwloc_uint64_t values[] = {10, 21, 23, 10};
  const auto handle = hwloc_distances_add_create(
      topology, "NUMALatency", HWLOC_DISTANCES_KIND_MEANS_LATENCY | HWLOC_DISTANCES_KIND_FROM_USER, 0);
  EXPECT_NE(handle, nullptr);
  EXPECT_EQ(hwloc_distances_add_values(topology, handle, 2, nodes, values, 0), 0);
  EXPECT_EQ(hwloc_distances_add_commit(topology, handle, 0), 0);
  EXPECT_EQ(hwloc_topology_export_xml(topology, path.c_str(), 0), 0);
  hwloc_topology_destroy(topology);
  return true;
#else
  (void)path;
  return false;
#endif
}

TEST(TopologyElsewhere, DistancesAreRead) {
  const TempDir folder;
  const std::string path = folder / "topology.xml";
  if (!WriteTopology(path)) GTEST_SKIP() << "hwloc is older than 2.5";
  EXPECT_EQ(test::RunInChild([&] {
              setenv("HWLOC_XMLFILE", path.c_str(), 1);
              const auto machine = Topology::Machine();
              if (!machine->synthetic() || machine->note().find("HWLOC_XMLFILE") == std::string::npos) return 1;
              if (machine->nodes().size() != 2 || machine->cores().size() != 6) return 2;
              if (machine->nodes()[1].memory_bytes != uint64_t{1} << 30) return 3;
              if (machine->distances() != std::vector<std::vector<uint64_t>>{{10, 21}, {23, 10}}) return 4;
              // Not the machine's: nothing is bound by it, and a filter that is to be replicated has two copies.
              const int node = 1;
              uint64_t word = 0;
              if (detail::PlaceMemory(*machine, &word, sizeof word, {&node, 1}).empty()) return 5;
              MemoryPolicy policy;
              policy.placement = Placement::kReplicate;
              Filter filter(FilterConfig::ForBits(1 << 20).WithMemory(policy));
              filter.Insert(uint64_t{7});
              if (filter.memory().copies != 2 || !filter.MayContain(uint64_t{7})) return 6;
              const ThreadPool pool(2);
              return !pool.pinned() && pool.NodeOf(1) == 1 ? 0 : 7;
            }),
            0);
}

TEST(TopologyElsewhere, WithoutTheFileTheMachineIsOneNode) {
  EXPECT_EQ(test::RunInChild([] {
              setenv("HWLOC_XMLFILE", "/nonexistent/topology.xml", 1);
              const auto machine = Topology::Machine();
              if (machine->nodes().empty() || machine->cores().empty()) return 1;
              Filter filter(FilterConfig::ForBits(1 << 20));
              filter.Insert(uint64_t{7});
              return filter.MayContain(uint64_t{7}) ? 0 : 2;
            }),
            0);
}

// Where hwloc may not look, the machine is one node with what the system says.
TEST(TopologyElsewhere, WhereHwlocMayNotLookTheMachineIsOneNode) {
  constexpr int kCannotForbid = 77;
  const int code = test::RunInChild([] {
    if (!test::ForbidCalls({{SYS_sched_getaffinity, EPERM}})) return kCannotForbid;
    const auto machine = Topology::Machine();
    if (machine->nodes().size() != 1 || machine->cores().empty() || machine->nodes()[0].cpus.empty()) return 1;
    if (machine->nodes()[0].memory_bytes == 0 || !machine->distances().empty()) return 2;
    if (machine->note().find("hwloc cannot read") == std::string::npos) return 3;
    const int node = 0;
    uint64_t word = 0;
    if (detail::PlaceMemory(*machine, &word, sizeof word, {&node, 1}).empty()) return 4;
    const auto made = Topology::Synthetic("numa:2 core:2 pu:1");
    return made.ok() && (*made)->nodes().size() == 2 ? 0 : 5;
  });
  if (code == kCannotForbid) GTEST_SKIP() << "this system does not allow system calls to be forbidden";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace bloomline
