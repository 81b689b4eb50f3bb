// The figures of counting filters: false positives, estimated counts, saturation, overflow chances; and what their
// calls promise: noexcept, and no allocation under saturate and reject.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "bloomline/counting_filter.h"
#include "bloomline/fpr_model.h"
#include "tests/counting_util.h"

namespace bloomline {
namespace {

using test::RandomKey;

constexpr double kSigmas = 5;

// Adds distinct keys first … first + count − 1.
void AddKeys(CountingFilter& filter, uint64_t first, uint64_t count) {
  std::vector<uint64_t> keys;
  for (uint64_t i = first; i < first + count; ++i) keys.push_back(RandomKey(i));
  ASSERT_EQ(filter.AddBatch(keys), 0U);
}

FilterConfig TenCounters(uint64_t keys, Layout layout) {
  return FilterConfig::ForBits(10 * keys * static_cast<uint64_t>(test::CounterBitsOf(layout)), 8, layout);
}

TEST(CountingFpr, TenCountersPerKey) {
  constexpr uint64_t kKeys = 200'000, kProbes = 2'000'000;
  for (const Layout layout : test::kCountingLayouts) {
    SCOPED_TRACE(LayoutName(layout, 8));
    CountingFilter filter(TenCounters(kKeys, layout), OverflowPolicy::kSpill);
    const double counters = static_cast<double>(filter.blocks()) * CellsPerBlock(layout);
    EXPECT_NEAR(counters, 10.0 * kKeys, CellsPerBlock(layout));
    AddKeys(filter, 0, kKeys);
    const double model = filter.PredictedFpr();
    // The goldens of the design: a few percent above classic's at the same rate; the exact figures are
    // fpr_model_test's.
    EXPECT_GT(model, ClassicFpr(kKeys, counters, 8));
    const double content = ContentRelativeDeviation(layout, 8, filter.blocks(), kKeys);
    const double fill = filter.MeasuredFillFpr();
    EXPECT_NEAR(fill, model, kSigmas * model * content);
    const uint64_t maybe = test::CountMaybe(filter, kKeys, kProbes, RandomKey);
    const double rate = static_cast<double>(maybe) / kProbes;
    EXPECT_NEAR(rate, model, kSigmas * test::RateDeviation(model, kProbes, content));
    EXPECT_NEAR(rate, fill, kSigmas * test::RateDeviation(fill, kProbes, 0));
    EXPECT_EQ(test::CountMaybe(filter, 0, kKeys, RandomKey), kKeys);
  }
}

// Additions of half of the keys and their removal leave the rate of the other half.
TEST(CountingFpr, RemovalBringsTheRateBack) {
  constexpr uint64_t kKeys = 50'000;
  for (const Layout layout : test::kCountingLayouts) {
    CountingFilter filter(TenCounters(kKeys, layout), OverflowPolicy::kReject);
    AddKeys(filter, 0, kKeys);
    const double before = filter.MeasuredFillFpr();
    const double estimate = filter.EstimatedCount();
    const std::vector<uint64_t> words = test::WordsOf(filter);
    AddKeys(filter, kKeys, kKeys / 4);
    EXPECT_GT(filter.MeasuredFillFpr(), before);
    std::vector<uint64_t> keys;
    for (uint64_t i = kKeys; i < kKeys + kKeys / 4; ++i) keys.push_back(RandomKey(i));
    EXPECT_EQ(filter.RemoveBatch(keys), 0U);
    EXPECT_EQ(test::WordsOf(filter), words);
    EXPECT_EQ(filter.MeasuredFillFpr(), before);
    EXPECT_EQ(filter.EstimatedCount(), estimate);
  }
}

TEST(CountingFpr, FprConfigKeepsItsPromise) {
  for (const Layout layout : test::kCountingLayouts) {
    for (const double target : {0.1, 0.01, 0.001}) {
      for (const uint64_t n : {1u, 20u, 12'345u}) {
        const FilterConfig config = FilterConfig::ForFpr(n, target, layout);
        EXPECT_LE(config.PredictedFpr(), target) << n;
        CountingFilter filter(config);
        EXPECT_EQ(filter.PredictedFpr(n), config.PredictedFpr());
      }
    }
  }
}

TEST(CountingEstimate, WithinItsErrorFromNearlyEmptyToNearlyFull) {
  constexpr uint64_t kBlocks = 5000;
  for (const Layout layout : test::kCountingLayouts) {
    CountingFilter filter(test::SmallConfig(layout, 8, kBlocks), OverflowPolicy::kSaturate);
    uint64_t n = 0;
    for (const double fill : {0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99}) {
      const auto wanted = static_cast<uint64_t>(std::ceil(EstimateCount(layout, 8, kBlocks, fill)));
      AddKeys(filter, n, wanted - n);
      n = wanted;
      EXPECT_NEAR(filter.FillFraction(), fill, 0.1 * fill);
      const double error = EstimateCountError(layout, 8, kBlocks, static_cast<double>(n));
      EXPECT_LT(error, 0.25 * static_cast<double>(n));
      EXPECT_NEAR(filter.EstimatedCount(), static_cast<double>(n), kSigmas * error) << "fill " << fill;
    }
    EXPECT_FALSE(filter.Saturated());
  }
}

// Every counter above 0, whatever it holds: every answer is "maybe".
TEST(CountingEstimate, Saturated) {
  for (const Layout layout : test::kCountingLayouts) {
    for (const OverflowPolicy policy : {OverflowPolicy::kSaturate, OverflowPolicy::kSpill}) {
      CountingFilter filter(test::SmallConfig(layout, 8, 3), policy);
      EXPECT_FALSE(filter.Saturated());
      uint64_t i = 0;
      std::vector<uint64_t> last;
      while (!filter.Saturated()) {
        EXPECT_LT(filter.FillFraction(), 1);
        last = test::WordsOf(filter);
        filter.AddHash(RandomKey(i++));
        ASSERT_LT(i, 1'000'000U);
      }
      EXPECT_EQ(filter.FillFraction(), 1);
      EXPECT_EQ(filter.MeasuredFillFpr(), 1);
      EXPECT_TRUE(std::isinf(filter.EstimatedCount()));
      EXPECT_TRUE(filter.ToFilter().Saturated());
      EXPECT_EQ(test::CountMaybe(filter, 1'000'000, 5000, RandomKey), 5000U);
      EXPECT_LT(filter.Overflow().full_counters, filter.Overflow().counters);
      // One counter that is 0 again: saturated no more.
      const uint64_t hash = RandomKey(i - 1);
      ASSERT_TRUE(filter.RemoveHash(hash));
      EXPECT_FALSE(filter.Saturated());
    }
  }
}

// ---- Overflow.

TEST(CounterOverflowChance, AgainstSimulation) {
  constexpr uint64_t kRuns = 2000;
  struct Case {
    Layout layout;
    uint64_t blocks;
    double wanted;
  };
  // Loads at which some runs overflow and some do not.
  for (const auto& [layout, blocks, wanted] :
       {Case{Layout::kCounting4, 1, 0.2}, Case{Layout::kCounting4, 4, 0.1}, Case{Layout::kCounting4, 4, 0.5},
        Case{Layout::kCounting4, 30, 0.8}, Case{Layout::kCounting8, 1, 0.2}, Case{Layout::kCounting8, 2, 0.5}}) {
    uint64_t n = 1;
    while (CounterOverflowChance(layout, blocks, n) < wanted) ++n;
    const double model = CounterOverflowChance(layout, blocks, n);
    ASSERT_LT(model, wanted + 0.1);
    const uint64_t runs = layout == Layout::kCounting4 ? kRuns : kRuns / 4;
    CountingFilter filter(test::SmallConfig(layout, 8, blocks), OverflowPolicy::kSpill);
    uint64_t overflowed = 0;
    std::vector<uint64_t> hashes(n);
    uint64_t next = 0;
    for (uint64_t run = 0; run < runs; ++run) {
      for (uint64_t& hash : hashes) hash = RandomKey(next++);
      filter.AddHashBatch(hashes);
      overflowed += filter.Overflow().spilled_counters != 0;
      filter.Clear();
    }
    const double rate = static_cast<double>(overflowed) / static_cast<double>(runs);
    const double deviation = std::sqrt(model * (1 - model) / static_cast<double>(runs));
    // The counters of a word share their keys: the model is off by a little, on the side of too many overflows.
    EXPECT_NEAR(rate, model, kSigmas * deviation + 0.05 * model) << LayoutName(layout, 8) << " " << blocks << " " << n;
  }
}

TEST(CounterOverflowChance, MonotoneAndAtItsEnds) {
  for (const Layout layout : test::kCountingLayouts) {
    const uint64_t max = layout == Layout::kCounting4 ? 15 : 255;
    for (const uint64_t blocks :
         {uint64_t{1}, uint64_t{2}, uint64_t{1000}, uint64_t{1} << 24, (uint64_t{1} << 32) - 1}) {
      EXPECT_EQ(CounterOverflowChance(layout, blocks, 0), 0);
      EXPECT_EQ(CounterOverflowChance(layout, blocks, max), 0);
      EXPECT_GE(CounterOverflowChance(layout, blocks, max + 1), 0);  // 0: below what a double holds
      const uint64_t everything = 64 * blocks * (max + 1);
      EXPECT_EQ(CounterOverflowChance(layout, blocks, everything), 1);
      EXPECT_EQ(CounterOverflowChance(layout, blocks, uint64_t{1} << 63), 1);
      double last = 0;
      for (uint64_t n = max + 1; n < everything; n += 1 + n / 37) {
        const double chance = CounterOverflowChance(layout, blocks, n);
        ASSERT_GE(chance, last) << blocks << " " << n;
        ASSERT_LE(chance, 1) << blocks << " " << n;
        // More blocks for the same keys: less.
        if (blocks < (uint64_t{1} << 31)) {
          ASSERT_LE(CounterOverflowChance(layout, 2 * blocks, n), chance) << n;
        }
        last = chance;
      }
    }
  }
  // Neighbouring n, at sizes where a difference of two large logarithms would be all noise.
  for (const uint64_t n : {uint64_t{1000}, uint64_t{1} << 30, uint64_t{1} << 36}) {
    const uint64_t blocks = n / 13 + 1;
    double last = 0;
    for (uint64_t more = 0; more < 100; ++more) {
      const double chance = CounterOverflowChance(Layout::kCounting4, blocks, n + more * (n / 1'000'000 + 1));
      ASSERT_GT(chance, last) << n << " " << more;
      last = chance;
    }
  }
  // A key overflows a counter only by all of 16 adds of it: C(16, 16) · p^16 of each counter, small enough to add up.
  const double p = 8.0 / (128.0 * 1000);
  EXPECT_NEAR(CounterOverflowChance(Layout::kCounting4, 1000, 16) / (128'000 * std::pow(p, 16)), 1, 1e-9);
  EXPECT_TRUE(std::isnan(CounterOverflowChance(Layout::kSplit512, 10, 10)));
  EXPECT_TRUE(std::isnan(CounterOverflowChance(Layout::kCounting4, 0, 10)));
}

TEST(CounterOverflowChance, IsReported) {
  CountingFilter filter(test::SmallConfig(Layout::kCounting4, 8, 4), OverflowPolicy::kSaturate);
  EXPECT_EQ(filter.Overflow().predicted_any, 0);
  AddKeys(filter, 0, 200);
  EXPECT_EQ(filter.Overflow().predicted_any, CounterOverflowChance(Layout::kCounting4, 4, 200));
}

}  // namespace
}  // namespace bloomline
