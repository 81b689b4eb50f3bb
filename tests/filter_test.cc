// Filter as filter.h documents it: shape, counts, estimates, whole-filter operations, moves.
#include "bloomline/filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bloomline/fpr_model.h"
#include "bloomline/target.h"
#include "tests/test_util.h"

namespace bloomline {
namespace {

using test::LayoutAndK;
using test::Random;
using test::SmallConfig;

std::vector<uint64_t> Content(const FilterReader& filter) { return {filter.words().begin(), filter.words().end()}; }

// ---- Making one.
TEST(FilterMade, FieldsComeFromTheConfig) {
  for (const std::string& target : SupportedTargets()) {
    for (const auto& [layout, k] : test::AllLayouts()) {
      const FilterConfig config = SmallConfig(layout, k, 37, target, 0xfeedface).WithKeyKind(KeyKind::kBytes);
      const Filter filter(config);
      EXPECT_EQ(filter.layout(), layout);
      EXPECT_EQ(filter.k(), k);
      EXPECT_EQ(filter.blocks(), 37u);
      EXPECT_EQ(filter.bits(), 37u * static_cast<uint64_t>(BlockBits(layout)));
      EXPECT_EQ(filter.bits(), config.bits());
      EXPECT_EQ(filter.memory_bytes(), filter.bits() / 8);
      EXPECT_EQ(filter.words().size(), filter.bits() / 64);
      EXPECT_EQ(filter.seed(), 0xfeedfaceu);
      EXPECT_EQ(filter.key_kind(), KeyKind::kBytes);
      EXPECT_EQ(filter.target(), target);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(filter.words().data()) % 64, 0u);
      EXPECT_EQ(filter.InsertedCount(), 0u);
      EXPECT_EQ(filter.EstimatedCount(), 0);
      EXPECT_EQ(filter.PredictedFpr(), 0);
      EXPECT_EQ(filter.MeasuredFillFpr(), 0);
      EXPECT_EQ(filter.FillFraction(), 0);
      EXPECT_FALSE(filter.Saturated());
      EXPECT_TRUE(std::ranges::all_of(filter.words(), [](uint64_t word) { return word == 0; }));
    }
  }
  const Filter filter(FilterConfig::ForFpr(12345, 0.01));
  EXPECT_EQ(filter.expected_keys(), 12345u);
  EXPECT_EQ(filter.target_fpr(), 0.01);
  EXPECT_LE(filter.PredictedFpr(12345), 0.01);
  const MemoryReport memory = filter.memory();
  EXPECT_EQ(memory.bytes, filter.memory_bytes());
  EXPECT_FALSE(memory.granted.empty());
}

TEST(FilterMade, UnknownTargetIsAnError) {
  const FilterConfig config = FilterConfig::ForBits(4096).WithTarget("AVX1024");
  const Result<Filter> result = Filter::Create(config);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(result.error().what()).find("AVX1024"), std::string::npos) << result.error().what();
  EXPECT_THROW(Filter{config}, Error);
}

TEST(FilterMade, TargetsOfAnyCase) {
  std::string lower = SupportedTargets().back();
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  for (const std::string& name : {lower, SupportedTargets().back()}) {
    const Result<Filter> filter = Filter::Create(FilterConfig::ForBits(4096).WithTarget(name));
    ASSERT_TRUE(filter.ok()) << filter.error().what();
    EXPECT_EQ(filter->target(), SupportedTargets().back());
  }
  const Result<Filter> best = Filter::Create(FilterConfig::ForBits(4096).WithTarget("best"));
  ASSERT_TRUE(best.ok()) << best.error().what();
  EXPECT_EQ(best->target(), SupportedTargets().front());
}

TEST(FilterMade, MoreThanTheMachineHasIsAnErrorBeforeAllocation) {
  const FilterConfig config = FilterConfig::ForBits(uint64_t{512} * 0xffffffff);  // 256 GiB
  if (sysconf(_SC_PHYS_PAGES) >= (long{1} << 26)) GTEST_SKIP() << "this machine has the memory";
  const Result<Filter> result = Filter::Create(config);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_THROW(Filter{config}, Error);
}

// ---- Counting and rates, against the slow filter and the formulas written out.
// The n for which this fill is the expected one: a key leaves a bit clear with probability 1 − Z / words · set_by_one,
// independently of the other keys. (With words → ∞ that is the exponential of the Poisson form.)
double SlowEstimate(Layout layout, int k, uint64_t blocks, double fill) {
  const double zones = layout == Layout::kLine512 ? 1 : static_cast<double>(ZonesOf(layout));
  const double bins = layout == Layout::kLine512 ? 512 : layout == Layout::kSplit256 ? 32 : 64;
  const double words = static_cast<double>(blocks) * (layout == Layout::kLine512 ? 1 : 8);
  const double set_by_one = 1 - std::pow(1 - 1 / bins, k / zones);
  return std::log1p(-fill) / std::log1p(-zones / words * set_by_one);
}

TEST(FilterCounts, AgainstTheSlowFilter) {
  for (const auto& [layout, k] : test::AllLayouts()) {
    SCOPED_TRACE((LayoutAndK{layout, k}.Name()));
    constexpr uint64_t kBlocks = 57;
    Filter filter(SmallConfig(layout, k, kBlocks));
    test::slow::Filter slow(layout, k, kBlocks);
    Random random(static_cast<uint64_t>(k));
    uint64_t count = 0;
    for (const uint64_t step : {1u, 20u, 200u, 800u, 1500u}) {
      for (uint64_t i = 0; i < step; ++i) {
        const uint64_t hash = random.Next();
        filter.InsertHash(hash);
        slow.Insert(hash);
      }
      count += step;
      ASSERT_EQ(Content(filter), slow.words());
      EXPECT_EQ(filter.InsertedCount(), count);
      EXPECT_NEAR(filter.MeasuredFillFpr(), slow.FillFpr(), 1e-9 * slow.FillFpr() + 1e-300);
      uint64_t set = 0;
      for (const uint64_t word : slow.words()) set += static_cast<uint64_t>(std::popcount(word));
      const double fill = static_cast<double>(set) / static_cast<double>(filter.bits());
      EXPECT_DOUBLE_EQ(filter.FillFraction(), fill);
      const double estimate = SlowEstimate(layout, k, kBlocks, fill);
      EXPECT_NEAR(filter.EstimatedCount(), estimate, 1e-9 * estimate);
      const double deviation = EstimateCountError(layout, k, kBlocks, static_cast<double>(count));
      EXPECT_NEAR(filter.EstimatedCount(), static_cast<double>(count), 6 * deviation + 0.5) << count;
      EXPECT_EQ(filter.PredictedFpr(), filter.PredictedFpr(count));
      EXPECT_DOUBLE_EQ(filter.PredictedFpr(), PredictedFpr(layout, k, kBlocks, count));
      EXPECT_GE(filter.PredictedFpr(), 0);
      EXPECT_LE(filter.PredictedFpr(), 1);
      EXPECT_FALSE(filter.Saturated());
    }
  }
}

TEST(FilterCounts, RepeatsCountAsInsertions) {
  Filter filter(SmallConfig(Layout::kSplit512, 8, 64));
  for (int i = 0; i < 5; ++i) filter.Insert(7u);
  EXPECT_FALSE(filter.TryInsert(7u));
  EXPECT_TRUE(filter.TryInsert(8u));
  filter.InsertBatch(std::vector<uint64_t>(3, 7));
  std::vector<uint64_t> changed(1);
  filter.TryInsertBatch(std::vector<uint64_t>{7, 8, 9, 9}, changed);
  EXPECT_EQ(changed[0], 0b0100u);
  EXPECT_EQ(filter.InsertedCount(), 14u);
  EXPECT_NEAR(filter.EstimatedCount(), 3, 0.2);
}

// Every bit set: said the same on every target.
TEST(FilterCounts, Saturation) {
  for (const std::string& target : SupportedTargets()) {
    for (const auto& [layout, k] : test::AllLayouts()) {
      SCOPED_TRACE((LayoutAndK{layout, k}.Name() + " " + target));
      Filter filter(SmallConfig(layout, k, 2, target));
      for (uint64_t key = 0; key < 300'000 && !filter.Saturated(); ++key) filter.Insert(key);
      ASSERT_TRUE(filter.Saturated());
      EXPECT_EQ(filter.FillFraction(), 1);
      EXPECT_EQ(filter.MeasuredFillFpr(), 1);
      EXPECT_EQ(filter.EstimatedCount(), std::numeric_limits<double>::infinity());
      EXPECT_LE(filter.PredictedFpr(), 1);
      EXPECT_NEAR(filter.PredictedFpr(~uint64_t{0}), 1, 1e-9);
      EXPECT_TRUE(filter.MayContain(~uint64_t{0}));
      EXPECT_FALSE(filter.TryInsert(~uint64_t{0}));
      filter.Clear();
      EXPECT_FALSE(filter.Saturated());
    }
  }
}

TEST(FilterCounts, OneBitShortOfSaturation) {
  Filter filter(SmallConfig(Layout::kWord64, 1, 1));
  uint64_t key = 0;
  while (filter.FillFraction() < 511.0 / 512) filter.Insert(key++);
  EXPECT_FALSE(filter.Saturated());
  EXPECT_TRUE(std::isfinite(filter.EstimatedCount()));
  EXPECT_LT(filter.MeasuredFillFpr(), 1);
}

TEST(FilterCounts, ClearForgetsEverything) {
  Filter filter(SmallConfig(Layout::kLine512, 7, 33));
  filter.InsertBatch(Random(1).Take(500));
  filter.Clear();
  EXPECT_EQ(filter.InsertedCount(), 0u);
  EXPECT_EQ(filter.EstimatedCount(), 0);
  EXPECT_TRUE(std::ranges::all_of(filter.words(), [](uint64_t word) { return word == 0; }));
  EXPECT_TRUE(filter.TryInsert(uint64_t{1}));
}

// ---- Two filters.
TEST(FilterPairs, MergeAndIntersect) {
  for (const auto& [layout, k] : test::AllLayouts()) {
    SCOPED_TRACE((LayoutAndK{layout, k}.Name()));
    const FilterConfig config = SmallConfig(layout, k, 101);
    Filter left(config), right(config), both(config);
    for (uint64_t key = 0; key < 900; ++key) {
      if (key < 600) left.Insert(key);
      if (key >= 300) right.Insert(key);
      both.Insert(key);
    }
    const std::vector<uint64_t> a = Content(left), b = Content(right);
    Filter merged = left.Clone(), met = left.Clone();
    merged.Merge(right);
    EXPECT_EQ(Content(merged), Content(both));
    EXPECT_NEAR(static_cast<double>(merged.InsertedCount()), merged.EstimatedCount(), 1);
    met.Intersect(right);
    std::vector<uint64_t> conjunction(a.size());
    for (size_t i = 0; i < a.size(); ++i) conjunction[i] = a[i] & b[i];
    EXPECT_EQ(Content(met), conjunction);
    EXPECT_NEAR(static_cast<double>(met.InsertedCount()), met.EstimatedCount(), 1);
    for (uint64_t key = 300; key < 600; ++key) ASSERT_TRUE(met.MayContain(key));
    EXPECT_EQ(Content(right), b) << "the argument is read only";
    // With itself and with an empty one.
    merged.Merge(merged);
    EXPECT_EQ(Content(merged), Content(both));
    ASSERT_TRUE(merged.TryMerge(Filter(config)).ok());
    EXPECT_EQ(Content(merged), Content(both));
    ASSERT_TRUE(merged.TryIntersect(Filter(config)).ok());
    EXPECT_EQ(merged.FillFraction(), 0);
    EXPECT_EQ(merged.InsertedCount(), 0u);
  }
}

// The target of the other filter, its design and its memory are no part of what its bits mean.
TEST(FilterPairs, AcrossTargets) {
  Filter best(SmallConfig(Layout::kSplit512, 8, 50, SupportedTargets().front()));
  Filter plain(SmallConfig(Layout::kSplit512, 8, 50, SupportedTargets().back()));
  plain.Insert(5u);
  best.Merge(plain);
  EXPECT_TRUE(best.MayContain(5u));
}

TEST(FilterPairs, SaturatedByMerging) {
  const FilterConfig config = SmallConfig(Layout::kSplit512, 8, 1);
  Filter left(config), right(config);
  for (uint64_t key = 0; key < 4000; ++key) (key % 2 ? left : right).Insert(key);
  left.Merge(right);
  EXPECT_TRUE(left.Saturated());
  EXPECT_EQ(left.EstimatedCount(), std::numeric_limits<double>::infinity());
  EXPECT_GE(left.InsertedCount(), 2000u) << "no finite estimate: at least what each had";
}

struct Mismatch {
  const char* what;
  FilterConfig config;
  std::string its;
  std::string other;
};

TEST(FilterPairs, MismatchesNameBothValuesAndChangeNothing) {
  const auto base = [] { return SmallConfig(Layout::kSector512z2, 6, 70, "", 1234); };
  const Mismatch mismatches[] = {
      {"layout", SmallConfig(Layout::kLine512, 6, 70, "", 1234), "sector512z2", "line512"},
      {"k", SmallConfig(Layout::kSector512z2, 8, 70, "", 1234), "6", "8"},
      {"blocks", SmallConfig(Layout::kSector512z2, 6, 71, "", 1234), "70", "71"},
      {"seed", SmallConfig(Layout::kSector512z2, 6, 70, "", 5678), "1234", "5678"},
      {"key kind", base().WithKeyKind(KeyKind::kBytes), "u64", "bytes"},
  };
  for (const Mismatch& mismatch : mismatches) {
    SCOPED_TRACE(mismatch.what);
    Filter filter(base().WithKeyKind(KeyKind::kU64));
    Filter other(std::string(mismatch.what) == "key kind" ? mismatch.config
                                                          : mismatch.config.WithKeyKind(KeyKind::kU64));
    filter.InsertBatch(Random(1).Take(100));
    other.InsertBatch(Random(2).Take(100));
    const std::vector<uint64_t> before = Content(filter);
    const auto expect = [&](const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMismatch);
      const std::string message = error.what();
      EXPECT_NE(message.find(mismatch.its), std::string::npos) << message;
      EXPECT_NE(message.find(mismatch.other), std::string::npos) << message;
      EXPECT_NE(message.find(mismatch.what), std::string::npos) << message;
      EXPECT_EQ(Content(filter), before);
      EXPECT_EQ(filter.InsertedCount(), 100u);
    };
    const Status merge = filter.TryMerge(other);
    ASSERT_FALSE(merge.ok());
    expect(merge.error());
    const Status intersect = filter.TryIntersect(other);
    ASSERT_FALSE(intersect.ok());
    expect(intersect.error());
    EXPECT_THROW(filter.Merge(other), Error);
    EXPECT_THROW(filter.Intersect(other), Error);
    EXPECT_EQ(Content(filter), before);
  }
}

// ---- Copies and moves.
TEST(FilterMoves, CloneIsItsOwn) {
  Filter filter(SmallConfig(Layout::kLine512, 9, 40, SupportedTargets().back(), 9).WithKeyKind(KeyKind::kU64));
  filter.Insert(uint64_t{1});
  Filter clone = filter.Clone();
  EXPECT_EQ(Content(clone), Content(filter));
  EXPECT_EQ(clone.InsertedCount(), 1u);
  EXPECT_EQ(clone.layout(), Layout::kLine512);
  EXPECT_EQ(clone.k(), 9);
  EXPECT_EQ(clone.seed(), 9u);
  EXPECT_EQ(clone.key_kind(), KeyKind::kU64);
  EXPECT_EQ(clone.target(), filter.target());
  EXPECT_NE(clone.words().data(), filter.words().data());
  clone.Insert(uint64_t{2});
  EXPECT_FALSE(filter.MayContain(uint64_t{2}));
  EXPECT_TRUE(clone.TryClone().value().MayContain(uint64_t{2}));
}

TEST(FilterMoves, MovedFromAnswersNothingAndTakesNothing) {
  for (const auto& [layout, k] :
       {LayoutAndK{Layout::kSplit512, 8}, LayoutAndK{Layout::kLine512, 7}, LayoutAndK{Layout::kSplit256, 8}}) {
    Filter filter(SmallConfig(layout, k, 40));
    const std::vector<uint64_t> keys = Random(1).Take(100);
    filter.InsertBatch(keys);
    Filter moved(std::move(filter));
    EXPECT_EQ(moved.InsertedCount(), 100u);
    const std::vector<uint64_t> content = Content(moved);
    for (const uint64_t key : keys) ASSERT_TRUE(moved.MayContain(key));

    // NOLINTBEGIN(bugprone-use-after-move)
    EXPECT_EQ(filter.blocks(), 0u);
    std::vector<uint64_t> bitmap(2, ~uint64_t{0});
    std::vector<uint32_t> positions(100);
    for (int pass = 0; pass < 2; ++pass) {
      for (const uint64_t key : keys) ASSERT_FALSE(filter.MayContain(key));
      EXPECT_FALSE(filter.MayContain("string"));
      filter.MayContainBatch(keys, bitmap);
      EXPECT_EQ(bitmap, std::vector<uint64_t>(2, 0));
      EXPECT_EQ(filter.SelectBatch(keys, positions), 0u);
      filter.Insert(keys[0]);
      (void)filter.TryInsert(keys[1]);
      filter.InsertBatch(keys);
      filter.TryInsertBatch(keys, bitmap);
      filter.InsertBatch(std::vector<std::string>{"string"});
    }
    EXPECT_FALSE(filter.Saturated());
    EXPECT_EQ(filter.memory().bytes, 0u);
    EXPECT_NE(filter.memory().note.find("moved from"), std::string::npos);
    EXPECT_EQ(filter.EstimatedCount(), 0);
    EXPECT_EQ(filter.MeasuredFillFpr(), 0);
    filter.Clear();
    EXPECT_FALSE(moved.TryMerge(filter).ok()) << "no blocks and 40 do not match";
    EXPECT_EQ(Content(moved), content);
    filter = Filter(SmallConfig(layout, k, 3));
    filter.Insert(keys[0]);
    EXPECT_TRUE(filter.MayContain(keys[0]));
    filter = std::move(moved);
    EXPECT_EQ(Content(filter), content);
    // NOLINTEND(bugprone-use-after-move)
  }
}

// A lazy filter may be larger than memory as long as it stays sparse: calls on all of it must not fill it with zeros.
TEST(FilterLazy, WholeFilterCallsKeepItSparse) {
  const MemoryPolicy lazy = {.pages = Pages::kDefault, .lazy = true};
  constexpr uint64_t kBlocks = 1 << 20;  // 64 MiB
  constexpr uint64_t kSparse = 8 << 20;
  const FilterConfig config = SmallConfig(Layout::kSplit512, 8, kBlocks).WithMemory(lazy);
  Filter filter(config), other(config);
  const std::vector<uint64_t> keys = Random(4).Take(200);
  filter.InsertBatch(std::span<const uint64_t>(keys).first(120));
  other.InsertBatch(std::span<const uint64_t>(keys).last(120));
  ASSERT_LT(filter.memory().resident_bytes, kSparse);
  Filter clone = filter.Clone();
  EXPECT_LT(clone.memory().resident_bytes, kSparse) << "Clone";
  EXPECT_TRUE(std::ranges::equal(clone.words(), filter.words()));
  const Filter read(config);
  EXPECT_EQ(read.FillFraction(), 0);
  if (read.memory().resident_bytes >= kSparse) GTEST_SKIP() << "this kernel gives memory to what is only read";

  filter.Merge(other);
  EXPECT_LT(filter.memory().resident_bytes, kSparse) << "Merge";
  for (const uint64_t key : keys) ASSERT_TRUE(filter.MayContain(key));
  filter.Intersect(other);
  EXPECT_LT(filter.memory().resident_bytes, kSparse) << "Intersect";
  filter.Clear();
  EXPECT_LT(filter.memory().resident_bytes, kSparse) << "Clear";
  EXPECT_EQ(filter.FillFraction(), 0);
}

}  // namespace
}  // namespace bloomline
