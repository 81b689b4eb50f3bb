// Replicated filters: one copy per node of a made-up machine whose nodes are this machine's hardware threads, so that
// threads pinned here read the copies that threads of its nodes would. On real nodes: numa_test.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "bloomline/topology.h"
#include "engine/replicas.h"
#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using detail::Replicas;
using detail::ReplicasOf;
using test::Random;
using test::TempDir;

constexpr size_t kNodes = 3;
constexpr uint64_t kKeys = 20'000;

MemoryPolicy Replicated() {
  MemoryPolicy policy;
  policy.placement = Placement::kReplicate;
  policy.topology = Topology::Synthetic("numa:" + std::to_string(kNodes) + " core:1 pu:1").value();
  return policy;
}

FilterConfig Config(Layout layout = Layout::kSplit512, int k = 8) {
  return FilterConfig::ForBits(kKeys * 10, k, layout).WithSeed(3).WithMemory(Replicated());
}

template <class AnyFilter>
void ExpectEqualCopies(const AnyFilter& filter) {
  const Replicas* replicas = ReplicasOf(filter);
  ASSERT_NE(replicas, nullptr);
  ASSERT_EQ(replicas->count, kNodes);
  EXPECT_EQ(replicas->copies[0], filter.words().data());
  for (size_t copy = 1; copy < kNodes; ++copy) {
    EXPECT_EQ(std::memcmp(replicas->copies[copy], replicas->copies[0], filter.memory_bytes()), 0) << "copy " << copy;
  }
}

std::vector<uint64_t> Lookup(const FilterReader& filter, const std::vector<uint64_t>& keys) {
  std::vector<uint64_t> bitmap((keys.size() + 63) / 64);
  filter.MayContainBatch(keys, bitmap);
  return bitmap;
}

bool All(const FilterReader& filter, const std::vector<uint64_t>& keys) {
  std::vector<uint32_t> positions(keys.size());
  const bool batch = filter.SelectBatch(keys, positions) == keys.size();
  const bool one = std::all_of(keys.begin(), keys.end(), [&](uint64_t key) { return filter.MayContain(key); });
  EXPECT_EQ(batch, one);
  return batch;
}

// Runs body() on the hardware thread; false where this process may not use it.
template <class Body>
bool OnCpu(int cpu, const Body& body) {
  bool ran = false;
  std::thread thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) return;
    ran = true;
    body();
  });
  thread.join();
  return ran;
}

TEST(Replicas, EveryInsertGoesToAllCopiesAndAnswersAsCopyZero) {
  for (const auto& [layout, k] :
       {std::pair{Layout::kSplit512, 8}, {Layout::kWord64, 5}, {Layout::kLine512, 7}, {Layout::kSplit256, 8}}) {
    Filter filter(Config(layout, k));
    Filter plain(FilterConfig::ForBits(kKeys * 10, k, layout).WithSeed(3));
    ASSERT_EQ(filter.blocks(), plain.blocks());
    Random random(1);
    const std::vector<uint64_t> keys = random.Take(kKeys / 2);
    filter.InsertBatch(keys);
    plain.InsertBatch(keys);
    for (int i = 0; i < 1000; ++i) {
      const uint64_t key = i % 3 == 0 ? keys[static_cast<size_t>(i)] : random.Next();
      EXPECT_EQ(filter.TryInsert(key), plain.TryInsert(key));
      filter.Insert(key + 1);
      plain.Insert(key + 1);
    }
    const std::vector<std::string> strings = {"", "a", std::string(1000, 'x')};
    filter.InsertBatch(strings);
    plain.InsertBatch(strings);
    std::vector<uint64_t> more = random.Take(1000);
    more.insert(more.end(), keys.begin(), keys.begin() + 500);
    std::vector<uint64_t> changed(24), plain_changed(24);
    filter.TryInsertBatch(more, changed);
    plain.TryInsertBatch(more, plain_changed);
    EXPECT_EQ(changed, plain_changed);
    filter.InsertBulk(keys);
    plain.InsertBulk(keys);
    ExpectEqualCopies(filter);
    EXPECT_TRUE(std::ranges::equal(filter.words(), plain.words()));
    EXPECT_EQ(filter.InsertedCount(), plain.InsertedCount());
    EXPECT_EQ(Lookup(filter, more), Lookup(plain, more));
  }
}

TEST(Replicas, ACorruptedCopyMisleadsTheThreadsOfItsNodeOnly) {
  Filter filter(Config());
  const std::vector<uint64_t> keys = Random(2).Take(1000);
  filter.InsertBatch(keys);
  size_t tried = 0;
  for (size_t corrupted = 0; corrupted < kNodes; ++corrupted) {
    uint64_t* const words = ReplicasOf(filter)->copies[corrupted];
    const std::vector<uint64_t> kept(words, words + filter.words().size());
    std::fill_n(words, kept.size(), uint64_t{0});
    for (size_t cpu = 0; cpu < kNodes; ++cpu) {  // hardware thread i is on node i
      tried += OnCpu(static_cast<int>(cpu), [&] {
        EXPECT_EQ(All(filter, keys), cpu != corrupted) << "copy " << corrupted << " is empty, on thread " << cpu;
        EXPECT_EQ(filter.MayContain(keys[0]), cpu != corrupted);
      });
    }
    std::copy(kept.begin(), kept.end(), words);
  }
  if (tried < 2) GTEST_SKIP() << "this process may use one of the hardware threads 0 … 2 only";
}

TEST(Replicas, ResidentMemoryGrowsByTheCopiesAndNoMore) {
  const uint64_t before = test::ProcValue("/proc/self/status", "VmRSS") * 1024;
  if (before == 0) GTEST_SKIP() << "no /proc";
  constexpr uint64_t kBytes = (uint64_t{64} << 20) + 64;
  // What a process takes once: the topology, the allocator's first pages.
  for (const MemoryPolicy& policy : {Replicated(), MemoryPolicy()}) {
    Filter(FilterConfig::ForBits(kBytes * 8).WithMemory(policy)).InsertBatch(Random(9).Take(10'000));
  }
  for (const bool replicated : {false, true}) {
    const uint64_t start = test::ProcValue("/proc/self/status", "VmRSS") * 1024;
    Filter filter(FilterConfig::ForBits(kBytes * 8).WithMemory(replicated ? Replicated() : MemoryPolicy()));
    const uint64_t wanted = kBytes * (replicated ? kNodes : 1);
    const uint64_t grown = test::ProcValue("/proc/self/status", "VmRSS") * 1024 - start;
    EXPECT_GE(grown, wanted - wanted / 100);
    EXPECT_LE(grown, wanted + wanted / 100);
    filter.InsertBatch(Random(9).Take(10'000));
    EXPECT_LE(test::ProcValue("/proc/self/status", "VmRSS") * 1024 - start, wanted + wanted / 100);
    EXPECT_EQ(filter.memory().resident_bytes, wanted);
  }
}

TEST(Replicas, ThreadsBeyondTheTopologyReadCopyZero) {
  MemoryPolicy policy = Replicated();
  policy.topology = Topology::Synthetic("numa:2 core:1 pu:1").value();
  Filter filter(Config().WithMemory(policy));
  filter.Insert(uint64_t{1});
  const Replicas beyond{nullptr, nullptr, ReplicasOf(filter)->copies, 2, nullptr, 0};
  EXPECT_EQ(detail::NearCopy(beyond), 0u);
}

TEST(Replicas, WholeFilterCallsFollowCopyZero) {
  const std::vector<uint64_t> some = Random(3).Take(1000);
  const std::vector<uint64_t> others = Random(4).Take(1000);
  Filter filter(Config());
  filter.InsertBatch(some);
  Filter other(Config().WithMemory({}));
  other.InsertBatch(others);

  // Copy 1 is spoiled: what follows must not take anything from it, and must repair it.
  std::fill_n(ReplicasOf(filter)->copies[1], filter.words().size(), ~uint64_t{0});
  filter.Merge(other);
  ExpectEqualCopies(filter);
  EXPECT_TRUE(All(filter, some) && All(filter, others));
  EXPECT_LT(filter.FillFraction(), 0.5);

  std::fill_n(ReplicasOf(filter)->copies[2], filter.words().size(), uint64_t{0});
  const TempDir folder;
  filter.Save(folder / "f");
  Filter loaded = Filter::Load(folder / "f", Replicated());
  ExpectEqualCopies(loaded);
  EXPECT_TRUE(std::ranges::equal(loaded.words(), filter.words()));
  loaded.Insert(uint64_t{77});
  ExpectEqualCopies(loaded);

  const Filter clone = filter.Clone();
  ExpectEqualCopies(clone);
  EXPECT_TRUE(std::ranges::equal(clone.words(), filter.words()));
  EXPECT_NE(clone.words().data(), filter.words().data());

  filter.Intersect(other);
  ExpectEqualCopies(filter);
  EXPECT_TRUE(All(filter, others));

  Filter moved = std::move(loaded);
  moved.InsertBatch(others);
  ExpectEqualCopies(moved);
  EXPECT_FALSE(loaded.MayContain(uint64_t{77}));  // NOLINT(bugprone-use-after-move): it holds nothing now

  filter.Clear();
  ExpectEqualCopies(filter);
  EXPECT_EQ(filter.FillFraction(), 0);
  EXPECT_EQ(filter.memory().copies, static_cast<int>(kNodes));
}

TEST(Replicas, CountersAreCopiedWithWhatSpills) {
  for (const OverflowPolicy policy : {OverflowPolicy::kSaturate, OverflowPolicy::kReject, OverflowPolicy::kSpill}) {
    const FilterConfig config = FilterConfig::ForBits(512 * 4, 8, Layout::kCounting4);
    CountingFilter filter(config.WithMemory(Replicated()), policy);
    CountingFilter plain(config, policy);
    Random random(5);
    const std::vector<uint64_t> keys = random.Take(40);
    std::vector<uint64_t> failed(1), plain_failed(1);
    for (int round = 0; round < 20; ++round) {
      EXPECT_EQ(filter.AddBatch(keys, failed), plain.AddBatch(keys, plain_failed));
      EXPECT_EQ(failed, plain_failed);
      const uint64_t key = random.Next();
      EXPECT_EQ(filter.Add(key), plain.Add(key));
      EXPECT_EQ(filter.Remove(keys[3]), plain.Remove(keys[3]));
    }
    EXPECT_EQ(filter.RemoveBatch(keys, failed), plain.RemoveBatch(keys, plain_failed));
    EXPECT_EQ(failed, plain_failed);
    ExpectEqualCopies(filter);
    EXPECT_TRUE(std::ranges::equal(filter.words(), plain.words()));
    for (const uint64_t key : keys) EXPECT_EQ(filter.Count(key), plain.Count(key));
    EXPECT_EQ(filter.TryMerge(plain.Clone()).ok(), policy != OverflowPolicy::kReject);  // refused: 15 would be exceeded
    ExpectEqualCopies(filter);
    ExpectEqualCopies(filter.Clone());
    ExpectEqualCopies(filter.ToFilter());
    filter.Clear();
    ExpectEqualCopies(filter);
  }
}

}  // namespace
}  // namespace bloomline
