// Topologies: this machine's and made-up ones, what is planned on them, and that the latter never bind anything.
#include "bloomline/topology.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "engine/binding.h"
#include "engine/placement.h"
#include "engine/topology.h"
#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using detail::MemoryPlan;
using detail::PlacedRange;
using detail::PlanMemory;
using test::CodeOf;
using test::MessageOf;

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::shared_ptr<const Topology> Made(const std::string& description) {
  return Topology::Synthetic(description).value();
}

TEST(Topology, ThisMachineHasNodesCoresAndThisThread) {
  const auto machine = Topology::Machine();
  EXPECT_EQ(machine, Topology::Machine());
  ASSERT_FALSE(machine->nodes().empty());
  ASSERT_FALSE(machine->cores().empty());
  std::set<int> cpus;
  for (size_t i = 0; i < machine->nodes().size(); ++i) {
    for (const int cpu : machine->nodes()[i].cpus) {
      EXPECT_TRUE(cpus.insert(cpu).second) << "cpu " << cpu << " is on two nodes";
      EXPECT_EQ(machine->NodeOfCpu(cpu), static_cast<int>(i));
    }
  }
  for (const CpuCore& core : machine->cores()) {
    for (const int cpu : core.cpus) EXPECT_EQ(machine->NodeOfCpu(cpu), core.node);
  }
  EXPECT_TRUE(machine->synthetic() || cpus.contains(sched_getcpu()));
  EXPECT_LT(static_cast<size_t>(machine->CurrentNode()), machine->nodes().size());
  EXPECT_EQ(machine->NodeOfCpu(-1), 0);
  EXPECT_EQ(machine->NodeOfCpu(1 << 30), 0);
  for (const std::vector<uint64_t>& row : machine->distances()) EXPECT_EQ(row.size(), machine->nodes().size());
}

TEST(Topology, MadeUpOnesSaySo) {
  const auto made = Made("numa:2 l3:1(size=33554432) core:3 pu:2");
  EXPECT_TRUE(made->synthetic());
  EXPECT_NE(made->note(), "");
  ASSERT_EQ(made->nodes().size(), 2u);
  EXPECT_EQ(made->nodes()[1].cpus, (std::vector<int>{6, 7, 8, 9, 10, 11}));
  ASSERT_EQ(made->cores().size(), 6u);
  EXPECT_EQ(made->cores()[3].cpus, (std::vector<int>{6, 7}));
  EXPECT_EQ(made->cores()[3].node, 1);
  EXPECT_EQ(made->CacheBytes(3), 32 * kMiB);
  const auto l3 =
      std::find_if(made->caches().begin(), made->caches().end(), [](const CpuCache& c) { return c.level == 3; });
  ASSERT_NE(l3, made->caches().end());
  EXPECT_EQ(l3->count, 2);
  EXPECT_EQ(l3->cpus_sharing, 6);
  EXPECT_EQ(made->CacheBytes(4), 0u);
  EXPECT_EQ(made->NodeOfCpu(5), 0);
  EXPECT_EQ(made->NodeOfCpu(6), 1);
}

TEST(Topology, WhatHwlocCannotReadIsAnError) {
  for (const char* description : {"", "nonsense", "numa:0", "numa:2 core", "pu:-1"}) {
    const auto made = Topology::Synthetic(description);
    EXPECT_EQ(CodeOf(made), ErrorCode::kInvalidArgument) << description;
    EXPECT_NE(MessageOf(made).find(std::string("\"") + description + "\""), std::string::npos) << MessageOf(made);
  }
}

TEST(Topology, MadeUpOnesBindNothing) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const auto made = Made("numa:2 core:1 pu:1");
  const int first = 0;
  EXPECT_NE(detail::PinThread(*made, {&first, 1}), "");
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  alignas(4096) static char page[4096];
  EXPECT_NE(detail::PlaceMemory(*made, page, sizeof page, {&first, 1}), "");
  EXPECT_EQ(detail::UsableCpus(*made), (std::vector<int>{0, 1}));
}

TEST(Topology, UsableCpusFollowTheThreadsAffinity) {
  const auto machine = Topology::Machine();
  if (machine->synthetic()) GTEST_SKIP() << machine->note();
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const std::vector<int> all = detail::UsableCpus(*machine);
  for (const int cpu : all) EXPECT_TRUE(CPU_ISSET(cpu, &before)) << cpu;
  const int last = all.back();
  ASSERT_EQ(detail::PinThread(*machine, {&last, 1}), "");
  EXPECT_EQ(detail::UsableCpus(*machine), std::vector<int>{last});
  EXPECT_EQ(sched_getcpu(), last);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Topology, CachesAreThisMachines) {
  // A made-up topology in the environment would say otherwise; the kernels' prefetching follows the real ones.
  EXPECT_GT(detail::MachineCaches().l1, 0u);
  EXPECT_GE(detail::MachineCaches().l2, detail::MachineCaches().l1);
}

// ---- What is planned.

MemoryPlan Plan(const std::string& machine, Placement placement, uint64_t bytes, uint64_t granule = 2 * kMiB) {
  MemoryPolicy policy;
  policy.placement = placement;
  return PlanMemory(*Made(machine), policy, bytes, granule).value();
}

// Ranges in order, without gaps, from 0 to `bytes`, each beginning at a multiple of `granule`.
void ExpectCover(const std::vector<PlacedRange>& ranges, uint64_t bytes, uint64_t granule) {
  uint64_t at = 0;
  for (const PlacedRange& range : ranges) {
    EXPECT_EQ(range.offset, at);
    EXPECT_EQ(range.offset % granule, 0u);
    EXPECT_GT(range.bytes, 0u);
    at += range.bytes;
  }
  EXPECT_EQ(at, bytes);
}

TEST(Placement, OneNodeMakesEverythingLocal) {
  for (const Placement placement : {Placement::kAuto, Placement::kLocal, Placement::kInterleave, Placement::kBind,
                                    Placement::kReplicate, Placement::kPartition}) {
    const MemoryPlan plan = Plan("core:4 pu:1", placement, 64 * kMiB);
    EXPECT_EQ(plan.placement, Placement::kLocal);
    ASSERT_EQ(plan.copies.size(), 1u);
    ExpectCover(plan.copies[0], 64 * kMiB, 2 * kMiB);
    EXPECT_TRUE(plan.copies[0][0].nodes.empty());
    const bool wished =
        placement == Placement::kInterleave || placement == Placement::kReplicate || placement == Placement::kPartition;
    EXPECT_EQ(!plan.note.empty(), wished) << plan.note;
  }
}

TEST(Placement, AutoInterleavesWhatNoCacheHolds) {
  constexpr const char* kMachine = "numa:2 l3:1(size=33554432) core:4 pu:1";
  EXPECT_EQ(Plan(kMachine, Placement::kAuto, 32 * kMiB).placement, Placement::kLocal);
  const MemoryPlan plan = Plan(kMachine, Placement::kAuto, 32 * kMiB + 1);
  EXPECT_EQ(plan.placement, Placement::kInterleave);
  ASSERT_EQ(plan.copies.size(), 1u);
  EXPECT_EQ(plan.copies[0][0].nodes, (std::vector<int>{0, 1}));
  EXPECT_NE(ChoosePlacement(*Made(kMachine), 64 * kMiB).why, "");
}

TEST(Placement, ReplicasAreOnePerNode) {
  const MemoryPlan plan = Plan("numa:4 core:1 pu:1", Placement::kReplicate, 5 * kMiB);
  ASSERT_EQ(plan.copies.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    ExpectCover(plan.copies[i], 5 * kMiB, 2 * kMiB);
    EXPECT_EQ(plan.copies[i][0].nodes, std::vector<int>{static_cast<int>(i)});
  }
}

TEST(Placement, PartsCoverTheFilterInTheNodesOrder) {
  for (const uint64_t bytes : {uint64_t{64}, uint64_t{4096}, 3 * kMiB, 8 * kMiB, 100 * kMiB + 192, uint64_t{1} << 56}) {
    for (const int nodes : {2, 3, 8}) {
      const MemoryPlan plan =
          Plan("numa:" + std::to_string(nodes) + " core:1 pu:1", Placement::kPartition, bytes, 2 * kMiB);
      ASSERT_EQ(plan.copies.size(), 1u);
      ExpectCover(plan.copies[0], bytes, 2 * kMiB);
      int last = -1;
      for (const PlacedRange& range : plan.copies[0]) {
        ASSERT_EQ(range.nodes.size(), 1u);
        EXPECT_GT(range.nodes[0], last);
        last = range.nodes[0];
        if (bytes > 64 * kMiB) {
          EXPECT_NEAR(static_cast<double>(range.bytes), static_cast<double>(bytes) / nodes, 2.0 * kMiB + 192);
        }
      }
      EXPECT_EQ(plan.note.empty(), plan.copies[0].size() == static_cast<size_t>(nodes));
    }
  }
}

TEST(Placement, NamesAreThoseOfTheCommandLine) {
  EXPECT_STREQ(PlacementName(Placement::kReplicate), "replicate");
  EXPECT_STREQ(PlacementName(static_cast<Placement>(99)), "unknown");
  EXPECT_STREQ(PagesName(Pages::kHuge1GiB), "1GiB");
  EXPECT_STREQ(PagesName(static_cast<Pages>(99)), "unknown");
}

}  // namespace
}  // namespace bloomline
