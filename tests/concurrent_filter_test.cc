// ConcurrentFilter: many threads end with exactly the bits of one, readers see every key whose insert has returned, and
// copies and files taken meanwhile are sound. To be run under ThreadSanitizer too.
#include "bloomline/concurrent_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bloomline/target.h"
#include "bloomline/topology.h"
#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using test::Random;
using test::TempDir;

constexpr size_t kThreads = 4;
constexpr size_t kKeys = 20'000;

template <class Body>
void InThreads(size_t count, const Body& body) {
  std::vector<std::thread> threads;
  for (size_t t = 0; t < count; ++t) threads.emplace_back([&body, t] { body(t); });
  for (std::thread& thread : threads) thread.join();
}

struct Case {
  Layout layout;
  int k;
  std::string target;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const std::string& target : SupportedTargets()) {
    for (const auto& [layout, k] : {std::pair{Layout::kSplit512, 8},
                                    {Layout::kSector512z8, 16},
                                    {Layout::kWord64, 5},
                                    {Layout::kSector512z2, 6},
                                    {Layout::kSector512z4, 8},
                                    {Layout::kLine512, 7},
                                    {Layout::kLine512, 16},
                                    {Layout::kSplit256, 8}}) {
      cases.push_back({layout, k, target});
    }
  }
  return cases;
}

class ConcurrentFilterTest : public ::testing::TestWithParam<Case> {
 protected:
  FilterConfig Config(uint64_t bits) const {
    return FilterConfig::ForBits(bits, GetParam().k, GetParam().layout).WithSeed(4).WithTarget(GetParam().target);
  }
};
std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  return test::LayoutAndK{info.param.layout, info.param.k}.Name() + "_" + info.param.target;
}
INSTANTIATE_TEST_SUITE_P(All, ConcurrentFilterTest, ::testing::ValuesIn(Cases()), CaseName);

// One thread: the answers, bitmaps and bytes of a Filter.
TEST_P(ConcurrentFilterTest, OneThreadIsAFilter) {
  Filter plain(Config(4096));
  ConcurrentFilter concurrent(Config(4096));
  Random random(1);
  uint64_t inserted = 0;
  for (size_t count = 0; count <= 130; ++count) {
    std::vector<std::byte> memory(count * 8 + 1);  // at any alignment
    const std::vector<uint64_t> keys = random.Take(count);
    if (count != 0) std::memcpy(memory.data() + 1, keys.data(), count * 8);
    const std::span<const uint64_t> odd(reinterpret_cast<const uint64_t*>(memory.data() + 1), count);
    std::vector<uint64_t> changed((count + 63) / 64, ~uint64_t{0}), plain_changed(changed.size());
    if (count % 2 == 0) {
      plain.TryInsertBatch(odd, plain_changed);
      concurrent.TryInsertBatch(odd, changed);
      EXPECT_EQ(changed, plain_changed) << count;
    } else {
      plain.InsertBatch(odd);
      concurrent.InsertBatch(odd);
    }
    inserted += count;
    const std::vector<uint64_t> probes = random.Take(count);
    std::vector<uint64_t> bitmap(changed.size()), plain_bitmap(changed.size());
    plain.MayContainBatch(probes, plain_bitmap);
    concurrent.MayContainBatch(probes, bitmap);
    EXPECT_EQ(bitmap, plain_bitmap);
  }
  for (int i = 0; i < 200; ++i) {
    const uint64_t key = random.Below(300);
    EXPECT_EQ(concurrent.TryInsert(key), plain.TryInsert(key));
    EXPECT_EQ(concurrent.TryInsert(std::to_string(key)), plain.TryInsert(std::to_string(key)));
    concurrent.Insert(static_cast<uint32_t>(i));
    plain.Insert(static_cast<uint32_t>(i));
    EXPECT_EQ(concurrent.MayContain(key + 1), plain.MayContain(key + 1));
    EXPECT_TRUE(concurrent.MayContain(std::to_string(key)));
  }
  EXPECT_EQ(concurrent.InsertedCount(), inserted + 600);
  const Filter released = std::move(concurrent).Release();
  EXPECT_TRUE(std::ranges::equal(released.words(), plain.words()));
  EXPECT_EQ(released.InsertedCount(), plain.InsertedCount());
}

// Threads that insert at once: into few lines, so that they meet; each key by two threads.
TEST_P(ConcurrentFilterTest, NoBitIsLost) {
  const std::vector<uint64_t> keys = Random(2).Take(kKeys);
  // The last is large enough for inserts to prefetch.
  for (const uint64_t bits : {uint64_t{512}, uint64_t{4096}, uint64_t{kKeys * 12}, uint64_t{16} << 23}) {
    Filter plain(Config(bits));
    plain.InsertBatch(keys);
    ConcurrentFilter concurrent(Config(bits));
    std::vector<std::atomic<uint8_t>> heard_new(kKeys);
    InThreads(kThreads, [&](size_t t) {
      const size_t from = t % 2 * (kKeys / 2);  // threads 0 and 2 have the same keys, as have 1 and 3
      for (size_t i = 0; i < kKeys / 2; i += 100) {
        const std::span<const uint64_t> some(keys.data() + from + i, 100);
        if (i / 100 % 2 == 0) {
          std::vector<uint64_t> changed(2);
          concurrent.TryInsertBatch(some, changed);
          for (size_t j = 0; j < 100; ++j) {
            if ((changed[j / 64] >> (j % 64) & 1) != 0) heard_new[from + i + j] = 1;
          }
        } else {
          for (size_t j = 0; j < 100; ++j) {
            if (concurrent.TryInsert(some[j])) heard_new[from + i + j] = 1;
          }
        }
      }
    });
    EXPECT_EQ(concurrent.InsertedCount(), 2 * kKeys);
    Result<Filter> copy = concurrent.TryCopy();
    ASSERT_TRUE(copy.ok());
    EXPECT_TRUE(std::ranges::equal(copy->words(), plain.words())) << bits;
    const Filter released = std::move(concurrent).Release();
    EXPECT_TRUE(std::ranges::equal(released.words(), plain.words())) << bits;
    if (bits >= kKeys * 12) {
      // Nearly all keys set a bit that no other does; of two threads at least one was told so.
      const auto news = std::count(heard_new.begin(), heard_new.end(), 1);
      EXPECT_GT(news, static_cast<std::ptrdiff_t>(kKeys * 9 / 10));
    }
  }
}

TEST_P(ConcurrentFilterTest, ReadersFindWhatWasInsertedBefore) {
  const std::vector<uint64_t> keys = Random(3).Take(kKeys);
  ConcurrentFilter filter(Config(kKeys * 10));
  std::atomic<size_t> published[2] = {0, 0};  // how many of each writer's half are in
  std::atomic<size_t> missed{0};
  InThreads(4, [&](size_t t) {
    constexpr size_t kHalf = kKeys / 2;
    if (t < 2) {
      for (size_t i = 0; i < kHalf; i += 50) {
        filter.InsertBatch(std::span(keys).subspan(t * kHalf + i, 50));
        published[t].store(i + 50, std::memory_order_release);
      }
      return;
    }
    Random random(t);
    std::vector<uint64_t> bitmap(1);
    for (size_t done = 0; done < kKeys;) {
      done = published[0].load(std::memory_order_acquire) + published[1].load(std::memory_order_acquire);
      for (size_t half = 0; half < 2; ++half) {
        const size_t size = published[half].load(std::memory_order_acquire);
        if (size == 0) continue;
        const size_t first = random.Below(size - 49);
        const std::span<const uint64_t> some = std::span(keys).subspan(half * kHalf + first, 50);
        filter.MayContainBatch(some, bitmap);
        if (bitmap[0] != (uint64_t{1} << 50) - 1) ++missed;
        if (!filter.MayContain(some[0])) ++missed;
      }
    }
  });
  EXPECT_EQ(missed, 0u);
}

// Saved and copied while others write: sound, and complete as to what was there before.
TEST(ConcurrentFilter, FilesAndCopiesOfALiveFilterAreSound) {
  const std::vector<uint64_t> keys = Random(5).Take(200'000);
  const std::span<const uint64_t> before = std::span(keys).first(50'000);
  ConcurrentFilter filter(FilterConfig::ForBits(keys.size() * 10).WithKeyKind(KeyKind::kU64));
  filter.InsertBatch(before);
  const TempDir folder;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (size_t i = 50'000; !stop; i = i + 1000 < keys.size() ? i + 1000 : 50'000) {
      filter.InsertBatch(std::span(keys).subspan(i, 1000));
    }
  });
  for (int i = 0; i < 10; ++i) {
    filter.Save(folder / "live");
    const Filter loaded = Filter::Load(folder / "live");
    Result<Filter> copy = filter.TryCopy();
    ASSERT_TRUE(copy.ok());
    for (const Filter* one : {&loaded, static_cast<const Filter*>(&copy.value())}) {
      std::vector<uint32_t> positions(before.size());
      EXPECT_EQ(one->SelectBatch(before, positions), before.size());
      EXPECT_GE(one->InsertedCount(), before.size());
      EXPECT_EQ(one->key_kind(), KeyKind::kU64);
    }
  }
  stop = true;
  writer.join();
}

TEST(ConcurrentFilter, StringsHashesAndCounts) {
  ConcurrentFilter filter(FilterConfig::ForFpr(10'000, 0.01).WithSeed(8));
  const std::vector<std::string_view> keys = {"", "a", "bc", std::string_view("\0x", 2)};
  std::vector<uint64_t> bitmap(1);
  filter.TryInsertBatch(keys, bitmap);
  EXPECT_EQ(bitmap[0], 0xfu);
  filter.InsertBatch(keys);
  filter.MayContainBatch(keys, bitmap);
  EXPECT_EQ(bitmap[0], 0xfu);
  for (const std::string_view key : keys) EXPECT_TRUE(filter.MayContain(key));
  const std::vector<uint32_t> small = {1, 2, 3};
  filter.TryInsertBatch(small, bitmap);
  EXPECT_EQ(bitmap[0], 7u);
  filter.TryInsertBatch(small, bitmap);
  EXPECT_EQ(bitmap[0], 0u);
  filter.InsertBatch(small);
  filter.MayContainBatch(small, bitmap);
  EXPECT_EQ(bitmap[0], 7u);
  EXPECT_TRUE(filter.MayContain(uint64_t{2}));
  const std::vector<uint64_t> hashes = {1, ~uint64_t{0}, 0};
  filter.InsertHashBatch(hashes);
  filter.TryInsertHashBatch(hashes, bitmap);
  EXPECT_EQ(bitmap[0], 0u);
  filter.MayContainHashBatch(hashes, bitmap);
  EXPECT_EQ(bitmap[0], 7u);
  EXPECT_EQ(filter.InsertedCount(), 4u + 4 + 3 + 3 + 3 + 3 + 3);
  EXPECT_GT(filter.PredictedFpr(), 0);
  EXPECT_EQ(filter.PredictedFpr(), filter.PredictedFpr(filter.InsertedCount()));
}

// It describes itself as the filter does that it was made of, and that it gives back.
TEST(ConcurrentFilter, DescribesItself) {
  Filter plain(FilterConfig::ForFpr(10'000, 0.01).WithSeed(8));
  const Layout layout = plain.layout();
  const int k = plain.k();
  const uint64_t blocks = plain.blocks();
  ConcurrentFilter filter(std::move(plain));
  EXPECT_EQ(filter.layout(), layout);
  EXPECT_EQ(filter.k(), k);
  EXPECT_EQ(filter.blocks(), blocks);
  EXPECT_EQ(filter.seed(), 8u);
  EXPECT_FALSE(filter.target().empty());
  EXPECT_EQ(filter.memory().bytes, filter.memory_bytes());
  const Filter released = std::move(filter).Release();
  EXPECT_EQ(released.memory_bytes(), blocks * static_cast<uint64_t>(BlockBits(layout)) / 8);
}

TEST(ConcurrentFilter, WhatCannotBeIsRefused) {
  EXPECT_FALSE(ConcurrentFilter::Create(FilterConfig::ForBits(512, 8, Layout::kCounting4)).ok());
  Filter filter(FilterConfig::ForBits(512));
  const Filter taken = std::move(filter);
  EXPECT_EQ(test::CodeOf(ConcurrentFilter::Create(std::move(filter))),  // NOLINT(bugprone-use-after-move): the case
            ErrorCode::kInvalidArgument);
  Result<std::unique_ptr<ConcurrentFilter>> made = ConcurrentFilter::Create(taken.Clone());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(test::CodeOf((*made)->TrySave("/no/such/directory/file")), ErrorCode::kIo);
}

TEST(ConcurrentFilter, ReplicasAllFollow) {
  MemoryPolicy policy;
  policy.placement = Placement::kReplicate;
  policy.topology = Topology::Synthetic("numa:2 core:1 pu:1").value();
  ConcurrentFilter filter(FilterConfig::ForBits(kKeys * 10).WithMemory(policy));
  const std::vector<uint64_t> keys = Random(6).Take(kKeys);
  InThreads(kThreads, [&](size_t t) {
    for (size_t i = t; i < kKeys; i += kThreads) filter.Insert(keys[i]);
  });
  std::atomic<size_t> missed{0};
  InThreads(kThreads, [&](size_t) {
    for (const uint64_t key : keys) missed += !filter.MayContain(key);
  });
  EXPECT_EQ(missed, 0u);
}

}  // namespace
}  // namespace bloomline
