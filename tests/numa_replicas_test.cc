// Filters with a copy on each NUMA node: where the copies lie, who reads which, and that copy 0 decides. A copy that is
// made to differ on purpose shows which one was asked. See numa_util.h for the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "bloomline/memory.h"
#include "bloomline/thread_pool.h"
#include "bloomline/topology.h"
#include "engine/replicas.h"
#include "tests/numa_util.h"
#include "tests/test_util.h"

namespace bloomline::test {
namespace {

constexpr uint64_t kBytes = 4 * kMiB;

std::span<uint64_t> CopyOf(const FilterReader& filter, size_t copy) {
  const detail::Replicas* const replicas = detail::ReplicasOf(filter);
  if (replicas == nullptr || copy >= replicas->count) return {};
  return {replicas->copies[copy], filter.words().size()};
}
void Fill(std::span<uint64_t> words, unsigned char byte) { std::memset(words.data(), byte, words.size_bytes()); }
std::vector<uint64_t> Contents(std::span<const uint64_t> words) { return {words.begin(), words.end()}; }
bool Same(std::span<const uint64_t> a, std::span<const uint64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}
bool AllZero(std::span<const uint64_t> words) {
  return std::all_of(words.begin(), words.end(), [](uint64_t word) { return word == 0; });
}
bool AllSet(std::span<const uint64_t> bitmap, size_t keys) {
  for (size_t i = 0; i < keys; ++i) {
    if (!BitOf(bitmap, i)) return false;
  }
  return true;
}

class Replicas : public OnNodes {
 protected:
  // The copy at the end, which is never copy 0.
  size_t Last() const { return nodes_.size() - 1; }
  static Filter Make() { return Filter(ConfigOfBytes(kBytes, Policy(Placement::kReplicate))); }
  static CountingFilter MakeCounting(OverflowPolicy policy) {
    const FilterConfig config = FilterConfig::ForBits(kBytes * 8, 8, Layout::kCounting4);
    return CountingFilter(config.WithMemory(Policy(Placement::kReplicate)), policy);
  }
  void ExpectEqualCopies(const FilterReader& filter) const {
    ASSERT_NE(detail::ReplicasOf(filter), nullptr);
    ASSERT_EQ(detail::ReplicasOf(filter)->count, nodes_.size());
    EXPECT_EQ(filter.words().data(), CopyOf(filter, 0).data());
    EXPECT_FALSE(AllZero(filter.words()));
    for (size_t i = 1; i < nodes_.size(); ++i) EXPECT_TRUE(Same(CopyOf(filter, i), filter.words())) << "copy " << i;
  }

  const std::vector<uint64_t> keys_ = Random(1).Take(5000);
  const std::vector<uint64_t> others_ = Random(2).Take(5000);
  std::vector<uint64_t> bitmap_ = std::vector<uint64_t>(BitmapWords(5000));
};

TEST_F(Replicas, EachCopyIsOnItsNode) {
  for (const Pages pages : {Pages::kDefault, Pages::kTransparentHuge}) {
    const Filter filter(ConfigOfBytes(kBytes, Policy(Placement::kReplicate, 0, pages)));
    ASSERT_NE(detail::ReplicasOf(filter), nullptr);
    ASSERT_EQ(detail::ReplicasOf(filter)->count, nodes_.size());
    std::map<int, uint64_t> wanted;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      EXPECT_EQ(BytesPerNode(CopyOf(filter, i).data(), kBytes), AllOn(nodes_[i].number, kBytes)) << "copy " << i;
      wanted[nodes_[i].number] = kBytes;
    }
    const MemoryReport report = filter.memory();
    EXPECT_EQ(ReportedNodes(report), wanted);
    EXPECT_EQ(report.copies, static_cast<int>(nodes_.size()));
    EXPECT_EQ(report.bytes, kBytes);
    EXPECT_EQ(report.resident_bytes, kBytes * nodes_.size());
    EXPECT_EQ(report.placement, Placement::kReplicate);
    EXPECT_EQ(report.note, "");
  }
}

TEST_F(Replicas, LazyCopiesComeOnTheirNodes) {
  MemoryPolicy policy = Policy(Placement::kReplicate);
  policy.lazy = true;
  Filter filter(ConfigOfBytes(kBytes, policy));
  for (size_t i = 0; i < nodes_.size(); ++i) EXPECT_TRUE(BytesPerNode(CopyOf(filter, i).data(), kBytes).empty());
  OnCpus(nodes_[0].cpus, [&] { filter.InsertBatch(std::span(keys_).first(50)); });
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const std::map<int, uint64_t> bytes = BytesPerNode(CopyOf(filter, i).data(), kBytes);
    ASSERT_EQ(bytes.size(), 1U) << "copy " << i;
    EXPECT_EQ(bytes.begin()->first, nodes_[i].number);
  }
}

TEST_F(Replicas, EveryInsertGoesToAllCopies) {
  const std::vector<std::string> strings = {"", "a", "bc"};
  const std::vector<uint32_t> narrow = {1, 2, 3, 1U << 31};
  std::vector<uint64_t> changed(bitmap_.size());
  const std::vector<std::pair<const char*, std::function<void(Filter&)>>> ways = {
      {"Insert", [&](Filter& filter) { filter.Insert(keys_[0]); }},
      {"InsertHash", [&](Filter& filter) { filter.InsertHash(keys_[0]); }},
      {"string", [&](Filter& filter) { filter.Insert(strings[1]); }},
      {"TryInsert", [&](Filter& filter) { EXPECT_TRUE(filter.TryInsert(keys_[0])); }},
      {"InsertBatch", [&](Filter& filter) { filter.InsertBatch(keys_); }},
      {"narrow", [&](Filter& filter) { filter.InsertBatch(narrow); }},
      {"strings", [&](Filter& filter) { filter.InsertBatch(strings); }},
      {"InsertHashBatch", [&](Filter& filter) { filter.InsertHashBatch(keys_); }},
      {"TryInsertBatch", [&](Filter& filter) { filter.TryInsertBatch(keys_, changed); }},
      {"TryInsertHashBatch", [&](Filter& filter) { filter.TryInsertHashBatch(keys_, changed); }},
      {"InsertBulk", [&](Filter& filter) { filter.InsertBulk(Random(3).Take(100'000)); }},
      {"InsertBulk by a pool",
       [&](Filter& filter) {
         ThreadPool pool;
         filter.InsertBulk(Random(3).Take(100'000), pool);
       }},
  };
  for (const KernelNode& node : nodes_) {
    const Pinned pinned(node.cpus);
    for (const auto& [name, insert] : ways) {
      SCOPED_TRACE(name);
      Filter filter = Make();
      insert(filter);
      ExpectEqualCopies(filter);
      Filter single(ConfigOfBytes(kBytes, Policy(Placement::kLocal)));
      insert(single);
      EXPECT_TRUE(Same(filter.words(), single.words()));
      EXPECT_EQ(filter.InsertedCount(), single.InsertedCount());
    }
  }
}

// What the issue of replicas asks for: exactly the threads of one node read that node's copy.
TEST_F(Replicas, ACorruptedCopyIsSeenOnItsNodeOnly) {
  for (size_t damaged = 0; damaged < nodes_.size(); ++damaged) {
    Filter filter = Make();
    filter.InsertBatch(keys_);
    Fill(CopyOf(filter, damaged), 0);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const int cpu : nodes_[i].cpus) {
        SCOPED_TRACE("copy " + std::to_string(damaged) + " is damaged, CPU " + std::to_string(cpu));
        OnCpus({cpu}, [&] {
          const bool wanted = i != damaged;
          for (size_t key = 0; key < 100; ++key) ASSERT_EQ(filter.MayContain(keys_[key]), wanted);
          filter.MayContainBatch(keys_, bitmap_);
          EXPECT_EQ(wanted ? AllSet(bitmap_, keys_.size()) : AllZero(bitmap_), true);
          std::vector<uint32_t> positions(keys_.size());
          EXPECT_EQ(filter.SelectBatch(keys_, positions), wanted ? keys_.size() : 0);
        });
      }
    }
    // The threads of a pool, all at once.
    ThreadPool pool;
    std::vector<std::vector<uint64_t>> found(static_cast<size_t>(pool.threads()), bitmap_);
    pool.Run([&](int thread) { filter.MayContainBatch(keys_, found[static_cast<size_t>(thread)]); });
    for (int thread = 0; thread < pool.threads(); ++thread) {
      const std::vector<uint64_t>& bitmap = found[static_cast<size_t>(thread)];
      const bool wanted = pool.NodeOf(thread) != static_cast<int>(damaged);
      EXPECT_TRUE(wanted ? AllSet(bitmap, keys_.size()) : AllZero(bitmap)) << "thread " << thread;
    }
  }
}

TEST_F(Replicas, CopyZeroAnswersTryInsert) {
  for (const KernelNode& node : nodes_) {
    const Pinned pinned(node.cpus);
    Filter filter = Make();
    filter.InsertBatch(keys_);
    Fill(CopyOf(filter, Last()), 0);
    // Copy 0 knows these keys, the other does not; afterwards it does.
    EXPECT_FALSE(filter.TryInsert(keys_[0]));
    filter.TryInsertBatch(keys_, bitmap_);
    EXPECT_TRUE(AllZero(bitmap_));
    ExpectEqualCopies(filter);

    Fill(CopyOf(filter, 0), 0);
    // Now only the other knows them.
    EXPECT_TRUE(filter.TryInsert(keys_[0]));
    filter.TryInsertBatch(std::span(keys_).subspan(1, 64), bitmap_);
    EXPECT_TRUE(AllSet(bitmap_, 64));
  }
}

TEST_F(Replicas, CopyZeroIsWhatIsSavedAndCounted) {
  Filter filter = Make();
  filter.InsertBatch(keys_);
  const double fill = filter.FillFraction();
  std::vector<std::byte> wanted(filter.SerializedBytes());
  filter.SerializeTo(wanted);
  Fill(CopyOf(filter, Last()), 0x5a);
  const Pinned pinned(nodes_.back().cpus);
  std::vector<std::byte> bytes(filter.SerializedBytes());
  filter.SerializeTo(bytes);
  EXPECT_EQ(bytes, wanted);
  EXPECT_EQ(filter.FillFraction(), fill);

  const std::string path = ::testing::TempDir() + "numa_replicas_" + std::to_string(getpid());
  filter.Save(path);
  const Filter loaded = Filter::Load(path, Policy(Placement::kReplicate));
  ExpectEqualCopies(loaded);
  EXPECT_TRUE(Same(loaded.words(), filter.words()));
  for (size_t i = 0; i < nodes_.size(); ++i) {
    EXPECT_EQ(BytesPerNode(CopyOf(loaded, i).data(), kBytes), AllOn(nodes_[i].number, kBytes));
  }
  std::remove(path.c_str());
}

TEST_F(Replicas, AllCopiesFollowWholeFilterCalls) {
  const Pinned pinned(nodes_.back().cpus);
  Filter single(ConfigOfBytes(kBytes, Policy(Placement::kLocal)));
  single.InsertBatch(others_);
  Filter other = Make();
  other.InsertBatch(others_);
  Fill(CopyOf(other, Last()), 0xff);  // must not be read
  for (const FilterReader* from :
       {static_cast<const FilterReader*>(&single), static_cast<const FilterReader*>(&other)}) {
    Filter filter = Make();
    filter.InsertBatch(keys_);
    std::vector<uint64_t> wanted = Contents(filter.words());
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] |= single.words()[i];
    Fill(CopyOf(filter, Last()), 0);
    filter.Merge(*from);
    EXPECT_TRUE(Same(filter.words(), wanted));
    ExpectEqualCopies(filter);

    Fill(CopyOf(filter, Last()), 0);
    filter.Intersect(*from);
    EXPECT_TRUE(Same(filter.words(), single.words()));
    ExpectEqualCopies(filter);

    Fill(CopyOf(filter, Last()), 0x11);
    const Filter clone = filter.Clone();
    ExpectEqualCopies(clone);
    EXPECT_TRUE(Same(clone.words(), single.words()));
    EXPECT_NE(CopyOf(clone, Last()).data(), CopyOf(filter, Last()).data());

    filter.Clear();
    for (size_t i = 0; i < nodes_.size(); ++i) EXPECT_TRUE(AllZero(CopyOf(filter, i))) << "copy " << i;
  }
  // A plain filter merged with a replicated one.
  Filter plain(ConfigOfBytes(kBytes, Policy(Placement::kLocal)));
  plain.Merge(other);
  EXPECT_TRUE(Same(plain.words(), single.words()));
}

TEST_F(Replicas, MovedFiltersKeepTheirCopies) {
  Filter filter = Make();
  filter.InsertBatch(keys_);
  Filter moved(std::move(filter));
  moved.InsertBatch(others_);
  ExpectEqualCopies(moved);
  EXPECT_FALSE(filter.MayContain(keys_[0]));  // NOLINT(bugprone-use-after-move): it has no blocks
  filter.Insert(keys_[0]);
  filter = std::move(moved);
  Fill(CopyOf(filter, Last()), 0);
  OnCpus(nodes_.front().cpus, [&] { EXPECT_TRUE(filter.MayContain(keys_[0])); });
  OnCpus(nodes_.back().cpus, [&] { EXPECT_FALSE(filter.MayContain(keys_[0])); });
}

TEST_F(Replicas, CountersAreCopiedAndReadNear) {
  for (const OverflowPolicy policy : {OverflowPolicy::kSaturate, OverflowPolicy::kReject, OverflowPolicy::kSpill}) {
    SCOPED_TRACE(static_cast<int>(policy));
    const Pinned pinned(nodes_.back().cpus);
    CountingFilter filter = MakeCounting(policy);
    filter.AddBatch(keys_);
    for (int i = 0; i < 20; ++i) filter.Add(keys_[0]);  // beyond what a counter of 4 bits holds
    filter.AddBatch(others_);
    ExpectEqualCopies(filter);
    EXPECT_EQ(filter.RemoveBatch(others_), 0U);
    EXPECT_TRUE(filter.Remove(keys_[1]));
    ExpectEqualCopies(filter);
    if (policy == OverflowPolicy::kSpill) {
      EXPECT_GE(filter.Count(keys_[0]), 21U);
    } else {
      EXPECT_GE(filter.Count(keys_[0]), 14U);  // a counter that it shares may have been full before
    }
    const CountingFilter clone = filter.Clone();
    ExpectEqualCopies(clone);
    CountingFilter merged = MakeCounting(policy);
    merged.AddBatch(others_);
    Fill(CopyOf(merged, Last()), 0);
    merged.Merge(filter);
    ExpectEqualCopies(merged);
    ExpectEqualCopies(filter.ToFilter());

    Fill(CopyOf(filter, Last()), 0);
    std::vector<uint32_t> counts(keys_.size());
    OnCpus(nodes_.front().cpus, [&] {
      EXPECT_TRUE(filter.MayContain(keys_[2]));
      EXPECT_GE(filter.Count(keys_[2]), 1U);
      filter.CountBatch(keys_, counts);
      EXPECT_GE(counts[2], 1U);
    });
    OnCpus(nodes_.back().cpus, [&] {
      EXPECT_FALSE(filter.MayContain(keys_[2]));
      EXPECT_EQ(filter.Count(keys_[2]), 0U);
      filter.CountBatch(keys_, counts);
      EXPECT_EQ(counts[2], 0U);
    });
    filter.Clear();
    for (size_t i = 0; i < nodes_.size(); ++i) EXPECT_TRUE(AllZero(CopyOf(filter, i))) << "copy " << i;
  }
}

}  // namespace
}  // namespace bloomline::test
