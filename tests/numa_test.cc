// Where memory and threads come to lie on a machine with several NUMA nodes. See numa_util.h for the machine.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/memory.h"
#include "bloomline/thread_pool.h"
#include "bloomline/topology.h"
#include "tests/numa_util.h"
#include "tests/test_util.h"

namespace bloomline::test {
namespace {

std::vector<uint64_t> Keys(size_t count, uint64_t seed = 1) { return Random(seed).Take(count); }

void ExpectHolds(Filter& filter, const std::vector<uint64_t>& keys) {
  filter.InsertBatch(keys);
  std::vector<uint64_t> bitmap(BitmapWords(keys.size()));
  filter.MayContainBatch(keys, bitmap);
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_TRUE(BitOf(bitmap, i)) << i;
}

TEST_F(OnNodes, TheTopologyIsTheKernels) {
  const Topology& machine = *Topology::Machine();
  EXPECT_FALSE(machine.synthetic());
  EXPECT_EQ(machine.note(), "");
  ASSERT_EQ(machine.nodes().size(), nodes_.size());
  ASSERT_EQ(machine.distances().size(), nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    EXPECT_EQ(machine.nodes()[i].number, nodes_[i].number);
    EXPECT_EQ(machine.nodes()[i].cpus, nodes_[i].cpus);
    EXPECT_GT(machine.nodes()[i].memory_bytes, 0U);
    if (ExpectedNodes() == 0) continue;  // nodes without CPUs have distances too
    EXPECT_EQ(machine.distances()[i], nodes_[i].distances);
    EXPECT_EQ(machine.nodes()[i].cpus.size(), 2U);
    for (size_t j = 0; j < nodes_.size(); ++j) EXPECT_EQ(machine.distances()[i][j], i == j ? 10U : 20U);
  }
}

TEST_F(OnNodes, AThreadKnowsItsNode) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const int cpu : nodes_[i].cpus) {
      const Pinned pinned({cpu});
      EXPECT_EQ(Topology::Machine()->NodeOfCpu(cpu), static_cast<int>(i));
      EXPECT_EQ(Topology::Machine()->CurrentNode(), static_cast<int>(i));
    }
  }
}

TEST_F(OnNodes, BoundPagesAreOnTheirNode) {
  for (const Pages pages : {Pages::kDefault, Pages::kTransparentHuge}) {
    for (const KernelNode& node : nodes_) {
      SCOPED_TRACE(std::string(PagesName(pages)) + " on node " + std::to_string(node.number));
      // Created from every node, bound to this one.
      for (const KernelNode& from : nodes_) {
        const Pinned pinned(from.cpus);
        Filter filter(ConfigOfBytes(8 * kMiB, Policy(Placement::kBind, node.number, pages)));
        EXPECT_EQ(BytesPerNode(filter), AllOn(node.number, 8 * kMiB));
        const MemoryReport report = filter.memory();
        EXPECT_EQ(ReportedNodes(report), AllOn(node.number, 8 * kMiB));
        EXPECT_EQ(report.placement, Placement::kBind);
        EXPECT_EQ(report.resident_bytes, 8 * kMiB);
        EXPECT_EQ(report.note, "");
        ExpectHolds(filter, Keys(1000));
      }
    }
  }
}

TEST_F(OnNodes, SmallFiltersAreBoundToo) {
  for (const KernelNode& node : nodes_) {
    const Filter filter(ConfigOfBytes(256 * kKiB, Policy(Placement::kBind, node.number)));
    EXPECT_EQ(BytesPerNode(filter), AllOn(node.number, 256 * kKiB));
    EXPECT_EQ(filter.memory().placement, Placement::kBind);
  }
}

TEST_F(OnNodes, LazyPagesComeOnTheBoundNode) {
  MemoryPolicy policy = Policy(Placement::kBind, nodes_.back().number);
  policy.lazy = true;
  Filter filter(ConfigOfBytes(8 * kMiB, policy));
  EXPECT_EQ(BytesPerNode(filter), (std::map<int, uint64_t>{}));
  OnCpus(nodes_.front().cpus, [&] { filter.InsertBatch(Keys(100)); });
  const std::map<int, uint64_t> bytes = BytesPerNode(filter);
  ASSERT_EQ(bytes.size(), 1U);
  EXPECT_EQ(bytes.begin()->first, nodes_.back().number);
  EXPECT_EQ(ReportedNodes(filter.memory()), bytes);
}

TEST_F(OnNodes, LocalPagesAreOnTheCreatorsNode) {
  for (const Pages pages : {Pages::kDefault, Pages::kTransparentHuge}) {
    for (const KernelNode& node : nodes_) {
      const Pinned pinned(node.cpus);
      const Filter filter(ConfigOfBytes(8 * kMiB, Policy(Placement::kLocal, 0, pages)));
      EXPECT_EQ(BytesPerNode(filter), AllOn(node.number, 8 * kMiB));
      EXPECT_EQ(ReportedNodes(filter.memory()), AllOn(node.number, 8 * kMiB));
      EXPECT_EQ(filter.memory().placement, Placement::kLocal);
      // Large enough for several threads to touch its pages.
      const Filter large(ConfigOfBytes(40 * kMiB, Policy(Placement::kLocal, 0, pages)));
      EXPECT_EQ(BytesPerNode(large), AllOn(node.number, 40 * kMiB));
    }
  }
}

TEST_F(OnNodes, InterleavedPagesAreOnAllNodes) {
  for (const Pages pages : {Pages::kDefault, Pages::kTransparentHuge}) {
    Filter filter(ConfigOfBytes(16 * kMiB, Policy(Placement::kInterleave, 0, pages)));
    const std::map<int, uint64_t> bytes = BytesPerNode(filter);
    EXPECT_EQ(ReportedNodes(filter.memory()), bytes);
    EXPECT_EQ(filter.memory().placement, Placement::kInterleave);
    uint64_t sum = 0;
    for (const KernelNode& node : nodes_) {
      ASSERT_TRUE(bytes.contains(node.number)) << node.number;
      // Evenly, but not to the page: at least half of an even share.
      EXPECT_GE(bytes.at(node.number), 8 * kMiB / nodes_.size());
      sum += bytes.at(node.number);
    }
    EXPECT_EQ(sum, 16 * kMiB);
    ExpectHolds(filter, Keys(1000));
  }
}

TEST_F(OnNodes, PartsAreOnTheirNodesInOrder) {
  // 10 MiB are five huge pages: the parts of two nodes cannot be of one size.
  for (const uint64_t size : {16 * kMiB, 10 * kMiB, 10 * kMiB + 12 * kKiB}) {
    for (const Pages pages : {Pages::kDefault, Pages::kTransparentHuge}) {
      SCOPED_TRACE(std::to_string(size) + " " + PagesName(pages));
      Filter filter(ConfigOfBytes(size, Policy(Placement::kPartition, 0, pages)));
      EXPECT_EQ(filter.memory().placement, Placement::kPartition);
      EXPECT_EQ(ReportedNodes(filter.memory()), BytesPerNode(filter));
      const std::vector<int> of_page = NodesOfPages(filter.words().data(), size);
      std::vector<uint64_t> begins;  // of the parts, in bytes
      for (size_t page = 0; page < of_page.size(); ++page) {
        if (page == 0 || of_page[page] != of_page[page - 1]) begins.push_back(page * size / of_page.size());
        ASSERT_LE(begins.size(), nodes_.size());
        ASSERT_EQ(of_page[page], nodes_[begins.size() - 1].number) << "page " << page;
      }
      ASSERT_EQ(begins.size(), nodes_.size());
      for (size_t i = 1; i < begins.size(); ++i) {
        const uint64_t even = size * i / nodes_.size();
        EXPECT_EQ(begins[i] % (2 * kMiB), 0U) << begins[i];
        EXPECT_LE(begins[i], even);
        EXPECT_GT(begins[i] + 2 * kMiB, even);
      }
      ExpectHolds(filter, Keys(1000));
    }
  }
}

TEST_F(OnNodes, PartsAreFilledAndAskedByPools) {
  const std::vector<uint64_t> keys = Keys(200'000);
  const std::vector<uint64_t> probes = Keys(50'000, 2);
  Filter wanted(ConfigOfBytes(8 * kMiB, Policy(Placement::kLocal)));
  wanted.InsertBatch(keys);
  std::vector<uint64_t> wanted_bitmap(BitmapWords(probes.size()));
  wanted.MayContainBatch(probes, wanted_bitmap);
  for (const int threads : {1, 3, static_cast<int>(ThreadPool::kAuto)}) {
    ThreadPool pool(threads);
    Filter filter(ConfigOfBytes(8 * kMiB, Policy(Placement::kPartition)));
    const std::map<int, uint64_t> before = BytesPerNode(filter);
    filter.InsertBulk(keys, pool);
    EXPECT_TRUE(std::equal(filter.words().begin(), filter.words().end(), wanted.words().begin())) << threads;
    std::vector<uint64_t> bitmap(wanted_bitmap.size(), ~uint64_t{0});
    filter.MayContainBatch(probes, bitmap, pool);
    EXPECT_EQ(bitmap, wanted_bitmap) << threads;
    EXPECT_EQ(BytesPerNode(filter), before);
  }
}

TEST_F(OnNodes, AutoSpreadsWhatNoCacheHolds) {
  const Topology& machine = *Topology::Machine();
  const uint64_t cache = std::max({machine.CacheBytes(2), machine.CacheBytes(3), kMiB});
  if (cache > kGiB) GTEST_SKIP() << "a filter of more than 1 GiB would be needed";
  const Filter large(ConfigOfBytes(cache + 8 * kMiB, Policy(Placement::kAuto)));
  EXPECT_EQ(large.memory().placement, Placement::kInterleave);
  EXPECT_EQ(BytesPerNode(large).size(), nodes_.size());
  const Filter small(ConfigOfBytes(64 * kKiB, Policy(Placement::kAuto)));
  EXPECT_EQ(small.memory().placement, Placement::kLocal);
  EXPECT_EQ(BytesPerNode(small).size(), 1U);
}

TEST_F(OnNodes, LoadedAndClonedFiltersArePlacedAsAsked) {
  Filter filter(ConfigOfBytes(8 * kMiB, Policy(Placement::kBind, nodes_.front().number)));
  filter.InsertBatch(Keys(1000));
  std::vector<std::byte> bytes(filter.SerializedBytes());
  filter.SerializeTo(bytes);
  const Filter loaded = Filter::Deserialize(bytes, Policy(Placement::kBind, nodes_.back().number));
  EXPECT_EQ(BytesPerNode(loaded), AllOn(nodes_.back().number, 8 * kMiB));
  const Pinned pinned(nodes_.front().cpus);
  const Filter clone = loaded.Clone();
  EXPECT_EQ(BytesPerNode(clone), AllOn(nodes_.back().number, 8 * kMiB));
  EXPECT_TRUE(std::equal(clone.words().begin(), clone.words().end(), filter.words().begin()));
}

TEST_F(OnNodes, PoolsArePinnedEvenly) {
  ThreadPool pool;
  EXPECT_TRUE(pool.pinned()) << pool.note();
  std::vector<int> cpu_of(static_cast<size_t>(pool.threads()), -1);
  pool.Run([&](int thread) { cpu_of[static_cast<size_t>(thread)] = sched_getcpu(); });
  std::vector<size_t> on_node(nodes_.size(), 0);
  for (int thread = 0; thread < pool.threads(); ++thread) {
    const int node = pool.NodeOf(thread);
    EXPECT_EQ(Topology::Machine()->NodeOfCpu(cpu_of[static_cast<size_t>(thread)]), node) << "thread " << thread;
    ++on_node.at(static_cast<size_t>(node));
  }
  if (ExpectedNodes() == 0) return;  // a real machine may let this process use part of its CPUs
  for (size_t i = 0; i < nodes_.size(); ++i) EXPECT_EQ(on_node[i], nodes_[i].cpus.size()) << i;
  std::sort(cpu_of.begin(), cpu_of.end());
  EXPECT_EQ(std::adjacent_find(cpu_of.begin(), cpu_of.end()), cpu_of.end()) << "two threads on one CPU";
  const ThreadPool two(static_cast<int>(nodes_.size()));
  for (int i = 0; i < two.threads(); ++i) EXPECT_EQ(two.NodeOf(i), i) << "spread over the nodes in turn";
}

TEST_F(OnNodes, PoolsKeepToTheCallersAffinity) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Pinned pinned(nodes_[i].cpus);
    ThreadPool pool;
    EXPECT_EQ(pool.threads(), static_cast<int>(nodes_[i].cpus.size()));
    std::vector<int> cpu_of(static_cast<size_t>(pool.threads()), -1);
    pool.Run([&](int thread) { cpu_of[static_cast<size_t>(thread)] = sched_getcpu(); });
    for (int thread = 0; thread < pool.threads(); ++thread) {
      EXPECT_EQ(pool.NodeOf(thread), static_cast<int>(i));
      EXPECT_EQ(Topology::Machine()->NodeOfCpu(cpu_of[static_cast<size_t>(thread)]), static_cast<int>(i));
    }
  }
}

// On any machine.
TEST(NumaPolicy, UnknownNodesAreNamed) {
  for (const int node : {99, -1, 1 << 30}) {
    const Result<Filter> filter = Filter::Create(ConfigOfBytes(kMiB, Policy(Placement::kBind, node)));
    ASSERT_FALSE(filter.ok()) << node;
    EXPECT_EQ(filter.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(filter.error().what()).find(std::to_string(node)), std::string::npos)
        << filter.error().what();
  }
}

TEST(NumaPolicy, EveryPlacementWorksOnThisMachine) {
  const std::vector<uint64_t> keys = Keys(1000);
  for (const Placement placement : {Placement::kAuto, Placement::kLocal, Placement::kInterleave, Placement::kBind,
                                    Placement::kReplicate, Placement::kPartition}) {
    for (const uint64_t size : {uint64_t{64}, 64 * kKiB, 4 * kMiB + 64}) {
      SCOPED_TRACE(std::string(PlacementName(placement)) + " " + std::to_string(size));
      Filter filter(ConfigOfBytes(size, Policy(placement, Topology::Machine()->nodes().front().number)));
      ExpectHolds(filter, keys);
      const MemoryReport report = filter.memory();
      EXPECT_EQ(report.bytes, size);
      EXPECT_NE(report.placement, Placement::kAuto);
      const size_t nodes = Topology::Machine()->nodes().size();
      EXPECT_EQ(report.copies, placement == Placement::kReplicate ? static_cast<int>(nodes) : 1);
      EXPECT_EQ(report.resident_bytes, size * static_cast<uint64_t>(report.copies));
    }
  }
}

}  // namespace
}  // namespace bloomline::test
