// Bulk insertion and batch lookups by a pool of threads: the bits and bitmaps of one thread, whatever the number of
// threads, the kind of keys, their distribution and the memory to sort them in.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/thread_pool.h"
#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using test::Random;

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::vector<std::string_view> Views(const std::vector<std::string>& strings) {
  return {strings.begin(), strings.end()};
}

// Keys with repeats: every fourth is one that came before.
std::vector<uint64_t> KeysWithRepeats(size_t count) {
  std::vector<uint64_t> keys = Random(11).Take(count);
  for (size_t i = 3; i < count; i += 4) keys[i] = keys[i / 2];
  return keys;
}

void ExpectSame(const Filter& filter, const Filter& expected, const std::string& what) {
  EXPECT_TRUE(std::ranges::equal(filter.words(), expected.words())) << what;
  EXPECT_EQ(filter.InsertedCount(), expected.InsertedCount()) << what;
}

TEST(ParallelInsert, TheBitsAreThoseOfOneThread) {
  const std::vector<uint64_t> keys = KeysWithRepeats(300'001);
  for (const int threads : {1, 2, 3, 4, 7}) {
    ThreadPool pool(threads);
    for (const auto& [layout, k] :
         {std::pair{Layout::kSplit512, 8}, {Layout::kWord64, 5}, {Layout::kLine512, 7}, {Layout::kSplit256, 8}}) {
      for (const uint64_t bits : {uint64_t{1}, uint64_t{64'000}, 8 * kMiB, 64 * kMiB}) {
        const FilterConfig config = FilterConfig::ForBits(bits, k, layout).WithSeed(5);
        Filter expected(config);
        expected.InsertBatch(keys);
        Filter filter(config);
        filter.InsertBulk(keys, pool);
        ExpectSame(filter, expected, LayoutNameWithK(layout, k) + ", threads " + std::to_string(threads));
      }
    }
  }
}

TEST(ParallelInsert, ScratchMemoryDecidesNothingButTime) {
  const std::vector<uint64_t> keys = KeysWithRepeats(200'000);
  const FilterConfig config = FilterConfig::ForBits(32 * kMiB);
  Filter expected(config);
  expected.InsertBatch(keys);
  ThreadPool pool(3);
  for (const uint64_t scratch :
       {uint64_t{1}, uint64_t{64}, uint64_t{4096}, uint64_t{100'000}, kMiB, 64 * kMiB, ~uint64_t{0}}) {
    Filter filter(config);
    filter.InsertBulk(keys, pool, scratch);
    ExpectSame(filter, expected, "scratch " + std::to_string(scratch));
  }
}

TEST(ParallelInsert, SkewedHashesAreSlowAtWorst) {
  ThreadPool pool(4);
  const FilterConfig config = FilterConfig::ForBits(32 * kMiB);
  std::vector<uint64_t> narrow = Random(12).Take(200'000);
  for (uint64_t& hash : narrow) hash >>= 9;  // all in the first part
  std::vector<uint64_t> equal(150'000, ~uint64_t{0});
  for (const std::vector<uint64_t>& hashes : {narrow, equal}) {
    Filter expected(config);
    expected.InsertHashBatch(hashes);
    Filter filter(config);
    filter.InsertHashBulk(hashes, pool, kMiB);
    ExpectSame(filter, expected, "skewed");
  }
}

TEST(ParallelInsert, StringsToo) {
  std::vector<std::string> strings;
  for (size_t i = 0; i < 120'000; ++i) strings.push_back(std::string(i % 40, 'x') + std::to_string(i / 2));
  const std::vector<std::string_view> keys = Views(strings);
  const FilterConfig config = FilterConfig::ForBits(16 * kMiB).WithSeed(1);
  Filter expected(config);
  expected.InsertBatch(keys);
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    Filter filter(config);
    filter.InsertBulk(keys, pool);
    ExpectSame(filter, expected, "strings");
  }
}

TEST(ParallelInsert, NoKeysAndNoFilterAreNoTrouble) {
  ThreadPool pool(2);
  Filter filter(FilterConfig::ForBits(16 * kMiB));
  EXPECT_TRUE(filter.TryInsertBulk(std::span<const uint64_t>(), pool, ~uint64_t{0}).ok());
  EXPECT_EQ(filter.FillFraction(), 0);
  Filter moved = std::move(filter);
  const std::vector<uint64_t> keys = KeysWithRepeats(100'000);
  EXPECT_TRUE(filter.TryInsertBulk(keys, pool).ok());  // NOLINT(bugprone-use-after-move): it holds nothing now
  EXPECT_EQ(filter.InsertedCount(), 0u);
}

TEST(ParallelInsert, PartitionedAndReplicatedFilters) {
  const std::vector<uint64_t> keys = KeysWithRepeats(300'000);
  Filter expected(FilterConfig::ForBits(64 * kMiB));
  expected.InsertBatch(keys);
  const auto made = Topology::Synthetic("numa:3 core:1 pu:1").value();
  for (const Placement placement : {Placement::kPartition, Placement::kReplicate}) {
    MemoryPolicy policy;
    policy.placement = placement;
    policy.topology = made;
    for (const int threads : {2, 3, 6}) {  // with two threads, a node has none
      ThreadPool pool(threads, made);
      Filter filter(FilterConfig::ForBits(64 * kMiB).WithMemory(policy));
      filter.InsertBulk(keys, pool);
      ExpectSame(filter, expected, PlacementName(placement));
    }
  }
}

// ---- Lookups.

std::vector<uint64_t> Bitmap(size_t count) { return std::vector<uint64_t>((count + 63) / 64 + 1, 0xabababababababab); }

TEST(ParallelLookup, TheBitmapIsThatOfOneThread) {
  const std::vector<uint64_t> members = Random(13).Take(100'000);
  std::vector<uint64_t> probes = Random(14).Take(200'000);
  for (size_t i = 0; i < probes.size(); i += 2) probes[i] = members[i / 2];
  std::vector<std::string> strings;
  for (const uint64_t probe : probes) strings.push_back(std::to_string(probe));
  const std::vector<std::string_view> views = Views(strings);
  const auto made = Topology::Synthetic("numa:3 core:1 pu:1").value();
  for (const Placement placement : {Placement::kLocal, Placement::kPartition}) {
    MemoryPolicy policy;
    policy.placement = placement;
    policy.topology = made;
    for (const Layout layout : {Layout::kSplit512, Layout::kSplit256}) {
      Filter filter(FilterConfig::ForBits(16 * kMiB, 8, layout).WithMemory(policy));
      filter.InsertBatch(members);
      for (size_t i = 0; i < strings.size(); i += 2) filter.Insert(strings[i]);
      for (const int threads : {1, 2, 3, 5}) {
        ThreadPool pool(threads, made);
        // Around the least number of keys that is shared out, the slices and whole words.
        for (const size_t count : {size_t{0}, size_t{1}, size_t{64}, size_t{65'535}, size_t{65'536}, size_t{65'537},
                                   size_t{81'920}, size_t{81'921}, size_t{131'071}, size_t{200'000}}) {
          const std::span<const uint64_t> keys(probes.data(), count);
          std::vector<uint64_t> expected = Bitmap(count);
          std::vector<uint64_t> bitmap = Bitmap(count);
          const auto words = [](std::vector<uint64_t>& map) { return std::span(map).first(map.size() - 1); };
          filter.MayContainBatch(keys, words(expected));
          filter.MayContainBatch(keys, words(bitmap), pool);
          EXPECT_EQ(bitmap, expected) << count << " keys, " << threads << " threads";
          filter.MayContainHashBatch(keys, words(expected));
          filter.MayContainHashBatch(keys, words(bitmap), pool);
          EXPECT_EQ(bitmap, expected) << count << " hashes, " << threads << " threads";
          filter.MayContainBatch(std::span(views).first(count), words(expected));
          filter.MayContainBatch(std::span(views).first(count), words(bitmap), pool);
          EXPECT_EQ(bitmap, expected) << count << " strings, " << threads << " threads";
        }
        // A bitmap that is too short: only the keys that it has bits for.
        std::vector<uint64_t> expected(1500), bitmap(1500);
        filter.MayContainBatch(probes, expected);
        filter.MayContainBatch(probes, bitmap, pool);
        EXPECT_EQ(bitmap, expected);
      }
    }
  }
}

TEST(ParallelLookup, PartitionedRoundsOfMoreThanAMillionKeys) {
  const auto made = Topology::Synthetic("numa:2 core:1 pu:1").value();
  MemoryPolicy policy;
  policy.placement = Placement::kPartition;
  policy.topology = made;
  Filter filter(FilterConfig::ForBits(64 * kMiB).WithMemory(policy));
  std::vector<uint64_t> keys = Random(15).Take(2'300'000);
  ThreadPool pool(2, made);
  filter.InsertBulk(std::span(keys).first(1'000'000), pool);
  std::vector<uint64_t> expected((keys.size() + 63) / 64), bitmap(expected.size(), ~uint64_t{0});
  filter.MayContainBatch(keys, expected);
  filter.MayContainBatch(keys, bitmap, pool);
  EXPECT_TRUE(bitmap == expected);
}

}  // namespace
}  // namespace bloomline
