// CountingFilter's calls beside its histories (counting_history_test.cc): what is refused, absent, cleared, moved from,
// expanded. Merging, snapshots and threads have tests of their own; kernels are in counting_kernel_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "bloomline/counting_filter.h"
#include "bloomline/target.h"
#include "tests/counting_util.h"

namespace bloomline {
namespace {

using test::BitmapWords;
using test::BitOf;
using test::CounterModel;
using test::Random;
using test::WordsOf;

constexpr uint64_t kSeed = 0xc0ffee;

using Parameters = std::tuple<Layout, OverflowPolicy>;
std::string NameOf(const ::testing::TestParamInfo<Parameters>& info) {
  return LayoutName(std::get<0>(info.param), 8) + "_" + OverflowPolicyName(std::get<1>(info.param));
}

class CountingTest : public ::testing::TestWithParam<Parameters> {
 protected:
  Layout layout() const { return std::get<0>(GetParam()); }
  OverflowPolicy policy() const { return std::get<1>(GetParam()); }
  uint64_t max() const { return layout() == Layout::kCounting4 ? 15 : 255; }
  CountingFilter Make(uint64_t blocks) const {
    return CountingFilter(test::SmallConfig(layout(), 8, blocks, "", kSeed), policy());
  }
};
INSTANTIATE_TEST_SUITE_P(All, CountingTest,
                         ::testing::Combine(::testing::ValuesIn(test::kCountingLayouts),
                                            ::testing::ValuesIn(test::kPolicies)),
                         NameOf);

// 16 adds and 15 removes of one key (256 and 255 in 8 bits): still there, under every policy.
TEST_P(CountingTest, OneMoreAddThanRemovesIsStillPresent) {
  for (const bool batch : {false, true}) {
    CountingFilter filter = Make(5);
    const std::vector<uint64_t> adds(max() + 1, 77), removes(max(), 77);
    const bool refuses = policy() == OverflowPolicy::kReject;
    std::vector<uint64_t> bitmap(BitmapWords(adds.size()));
    if (batch) {
      EXPECT_EQ(filter.AddBatch(adds, bitmap), refuses ? 1U : 0U);
      for (size_t i = 0; i < adds.size(); ++i) ASSERT_EQ(BitOf(bitmap, i), refuses && i == max()) << i;
    } else {
      for (size_t i = 0; i < adds.size(); ++i) ASSERT_EQ(filter.Add(adds[i]), !refuses || i < max()) << i;
    }
    EXPECT_EQ(filter.InsertedCount(), refuses ? max() : max() + 1);
    EXPECT_EQ(filter.Count(uint64_t{77}), policy() == OverflowPolicy::kSpill ? max() + 1 : max());
    if (batch) {
      EXPECT_EQ(filter.RemoveBatch(removes, bitmap), 0U);
    } else {
      for (const uint64_t key : removes) ASSERT_TRUE(filter.Remove(key));
    }
    // Under reject the last add was never made and its caller was told so.
    EXPECT_EQ(filter.MayContain(uint64_t{77}), !refuses);
    EXPECT_EQ(filter.Count(uint64_t{77}), refuses ? 0U : policy() == OverflowPolicy::kSpill ? 1U : max());
    EXPECT_EQ(filter.Remove(uint64_t{77}), !refuses);
    EXPECT_EQ(test::AllZero(filter), policy() != OverflowPolicy::kSaturate);
    EXPECT_EQ(filter.InsertedCount(), 0U);
  }
}

// A key far beyond the maximum: exact under spill.
TEST_P(CountingTest, ManyCopiesOfOneKey) {
  CountingFilter filter = Make(3);
  const std::vector<std::string> copies(5000, "the same");
  const size_t refused = filter.AddBatch(std::span<const std::string>(copies));
  EXPECT_EQ(refused, policy() == OverflowPolicy::kReject ? copies.size() - max() : 0);
  const uint64_t expected = policy() == OverflowPolicy::kSpill ? copies.size() : max();
  EXPECT_EQ(filter.Count("the same"), expected);
  uint32_t count = 0;
  filter.CountBatch(std::span(copies).first(1), {&count, 1});
  EXPECT_EQ(count, expected);
  if (policy() == OverflowPolicy::kSpill) {
    const OverflowReport report = filter.Overflow();
    EXPECT_EQ(report.spilled_counters, 8U);
    EXPECT_EQ(report.spilled_keys, 8 * (copies.size() - max()));
    EXPECT_GE(report.spill_bytes, 8 * 16U);
    EXPECT_LT(report.spill_bytes, 8 * 1024U);
    EXPECT_EQ(filter.RemoveBatch(std::span<const std::string>(copies).first(4999)), 0U);
    EXPECT_EQ(filter.Count("the same"), 1U);
  }
}

// Removing what is certainly absent, and adding what is refused, changes no bit and no count.
TEST_P(CountingTest, WhatIsRefusedOrAbsentChangesNothing) {
  CountingFilter filter = Make(2);
  Random random(5);
  const std::vector<uint64_t> members = random.Take(12);
  CounterModel model(layout(), policy(), 2);
  for (size_t copy = 0; copy < max(); ++copy) {
    filter.AddBatch(members);
    for (const uint64_t key : members) model.Add(HashInteger(key, kSeed));
  }
  const std::vector<uint64_t> before = WordsOf(filter);
  const uint64_t inserted = filter.InsertedCount();
  const OverflowReport report = filter.Overflow();
  EXPECT_GT(report.full_counters, 0U);
  std::vector<uint64_t> absent;
  while (absent.size() < 300) {
    const uint64_t key = random.Next();
    if (!filter.MayContain(key)) absent.push_back(key);
  }
  std::vector<uint64_t> bitmap(BitmapWords(absent.size()));
  EXPECT_EQ(filter.RemoveBatch(absent, bitmap), absent.size());
  for (size_t i = 0; i < absent.size(); ++i) {
    ASSERT_TRUE(BitOf(bitmap, i));
    ASSERT_FALSE(filter.Remove(absent[i]));
  }
  EXPECT_EQ(filter.RemoveBatch(absent), absent.size());
  if (policy() == OverflowPolicy::kReject) {
    std::vector<uint64_t> full;
    for (const uint64_t key : members) {
      if (model.Largest(HashInteger(key, kSeed)) == max()) full.push_back(key);
    }
    ASSERT_FALSE(full.empty());
    EXPECT_EQ(filter.AddBatch(full, bitmap), full.size());
    for (const uint64_t key : full) EXPECT_FALSE(filter.Add(key));
  }
  EXPECT_EQ(WordsOf(filter), before);
  EXPECT_EQ(filter.InsertedCount(), inserted);
  EXPECT_EQ(filter.Overflow().spilled_keys, report.spilled_keys);
  EXPECT_EQ(filter.Overflow().spilled_counters, report.spilled_counters);
}

// Where a bitmap or an array of counts is too short, only the keys that it has room for are worked on.
TEST_P(CountingTest, ShortBitmapsAndCounts) {
  Random random(17);
  const std::vector<uint64_t> keys = random.Take(200);
  const std::vector<uint64_t> hashes = random.Take(200);
  std::vector<std::string> texts;
  for (const uint64_t key : keys) texts.push_back(std::to_string(key));
  CountingFilter filter = Make(100);
  uint64_t word = 0;
  EXPECT_EQ(filter.AddBatch(keys, {&word, 1}), 0U);
  EXPECT_EQ(filter.InsertedCount(), 64U);
  EXPECT_EQ(filter.AddHashBatch(hashes, {&word, 1}), 0U);
  EXPECT_EQ(filter.AddBatch(std::span<const std::string>(texts), {&word, 1}), 0U);
  EXPECT_EQ(filter.InsertedCount(), 3 * 64U);
  std::vector<uint32_t> counts(201, 0xeeee);
  filter.CountBatch(keys, std::span(counts).first(10));
  EXPECT_EQ(counts[9], filter.Count(keys[9]));
  EXPECT_EQ(counts[10], 0xeeeeU);
  filter.CountBatch(keys, counts);
  EXPECT_EQ(counts[200], 0xeeeeU);
  EXPECT_EQ(filter.RemoveBatch(std::span<const std::string>(texts), {&word, 1}), 0U);
  EXPECT_EQ(filter.RemoveHashBatch(hashes, {&word, 1}), 0U);
  EXPECT_EQ(filter.RemoveBatch(keys, {&word, 1}), 0U);
  EXPECT_TRUE(test::AllZero(filter));
  EXPECT_EQ(filter.AddBatch(std::span<const uint64_t>()), 0U);
  EXPECT_EQ(filter.RemoveBatch(std::span<const uint64_t>()), 0U);
}

// 32-bit keys are their 64-bit values.
TEST_P(CountingTest, NarrowKeysAreWideKeys) {
  CountingFilter filter = Make(10);
  for (uint32_t key = 0; key < 50; ++key) filter.Add(key);
  for (uint64_t key = 0; key < 50; ++key) EXPECT_TRUE(filter.Remove(key));
  EXPECT_TRUE(test::AllZero(filter));
}

TEST_P(CountingTest, MovedFrom) {
  CountingFilter filter = Make(4);
  filter.Add("key");
  CountingFilter moved = std::move(filter);
  EXPECT_TRUE(moved.MayContain("key"));
  EXPECT_EQ(moved.overflow_policy(), policy());
  // NOLINTBEGIN(bugprone-use-after-move): what is documented of it.
  EXPECT_EQ(filter.blocks(), 0U);
  EXPECT_EQ(filter.InsertedCount(), 0U);
  EXPECT_FALSE(filter.Add("key"));
  EXPECT_FALSE(filter.Remove("key"));
  EXPECT_FALSE(filter.MayContain("key"));
  EXPECT_EQ(filter.Count("key"), 0U);
  const std::vector<uint64_t> keys(70, 3);
  std::vector<uint64_t> bitmap(2);
  EXPECT_EQ(filter.AddBatch(keys, bitmap), 70U);
  EXPECT_EQ(bitmap, (std::vector<uint64_t>{~uint64_t{0}, 63}));
  bitmap = {0, 0};
  EXPECT_EQ(filter.RemoveBatch(keys, bitmap), 70U);
  EXPECT_EQ(bitmap, (std::vector<uint64_t>{~uint64_t{0}, 63}));
  EXPECT_EQ(filter.AddBatch(keys), 70U);
  std::vector<uint32_t> counts(70, 9);
  filter.CountBatch(keys, counts);
  EXPECT_EQ(counts, std::vector<uint32_t>(70, 0));
  filter.Clear();
  EXPECT_EQ(filter.Overflow().counters, 0U);
  EXPECT_FALSE(filter.Saturated());
  EXPECT_EQ(filter.FillFraction(), 0);
  EXPECT_EQ(filter.EstimatedCount(), 0);
  EXPECT_EQ(filter.Clone().blocks(), 0U);
  EXPECT_EQ(filter.ToFilter().blocks(), 0U);
  filter = Make(2);
  EXPECT_TRUE(filter.Add("key"));
  EXPECT_EQ(filter.Count("key"), 1U);
  // NOLINTEND
  filter = std::move(moved);
  EXPECT_EQ(filter.blocks(), 4U);
  EXPECT_EQ(filter.Count("key"), 1U);
}

TEST_P(CountingTest, ClearAndClone) {
  CountingFilter filter = Make(2);
  Random random(8);
  const std::vector<uint64_t> keys = random.Take(200);
  for (int i = 0; i < 30; ++i) filter.AddBatch(keys);
  CountingFilter clone = filter.Clone();
  EXPECT_EQ(WordsOf(clone), WordsOf(filter));
  EXPECT_EQ(clone.InsertedCount(), filter.InsertedCount());
  EXPECT_EQ(clone.overflow_policy(), policy());
  EXPECT_EQ(clone.Overflow().spilled_keys, filter.Overflow().spilled_keys);
  for (const uint64_t key : keys) ASSERT_EQ(clone.Count(key), filter.Count(key));
  const std::vector<uint64_t> before = WordsOf(filter);
  const uint64_t spilled = filter.Overflow().spilled_keys;
  EXPECT_EQ(spilled != 0, policy() == OverflowPolicy::kSpill);
  // They share nothing.
  clone.Clear();
  EXPECT_TRUE(test::AllZero(clone));
  EXPECT_EQ(clone.InsertedCount(), 0U);
  EXPECT_EQ(clone.Overflow().spilled_counters, 0U);
  EXPECT_EQ(clone.Overflow().spilled_keys, 0U);
  EXPECT_EQ(WordsOf(filter), before);
  EXPECT_EQ(filter.Overflow().spilled_keys, spilled);
  // And a cleared one works as a new one.
  CountingFilter fresh = Make(2);
  clone.AddBatch(keys);
  fresh.AddBatch(keys);
  EXPECT_EQ(WordsOf(clone), WordsOf(fresh));
}

TEST_P(CountingTest, ToFilterAnswersTheSame) {
  for (const std::string& target : SupportedTargets()) {
    CountingFilter counting(test::SmallConfig(layout(), 8, 50, target, kSeed).WithKeyKind(KeyKind::kU64), policy());
    Random random(21);
    const std::vector<uint64_t> members = random.Take(600);
    counting.AddBatch(members);
    for (int i = 0; i < 20; ++i) counting.AddBatch(std::span(members).first(30));
    counting.RemoveBatch(std::span(members).subspan(500));
    const Filter filter = counting.ToFilter();
    EXPECT_EQ(filter.layout(), Layout::kSplit512);
    EXPECT_EQ(filter.blocks(), counting.blocks());
    EXPECT_EQ(filter.seed(), counting.seed());
    EXPECT_EQ(filter.key_kind(), KeyKind::kU64);
    EXPECT_EQ(filter.target(), target);
    EXPECT_EQ(filter.overflow_policy(), OverflowPolicy::kNone);
    EXPECT_EQ(filter.InsertedCount(), counting.InsertedCount());
    EXPECT_NEAR(filter.MeasuredFillFpr(), counting.MeasuredFillFpr(), 1e-12);
    EXPECT_NEAR(filter.FillFraction(), counting.FillFraction(), 1e-12);
    std::vector<uint64_t> probes = random.Take(100'000);
    probes.insert(probes.end(), members.begin(), members.end());
    std::vector<uint64_t> expected(BitmapWords(probes.size())), bitmap(expected.size());
    counting.MayContainBatch(probes, expected);
    filter.MayContainBatch(probes, bitmap);
    EXPECT_EQ(bitmap, expected);
    for (size_t i = 0; i < probes.size(); ++i) {
      const bool maybe = BitOf(expected, i);
      ASSERT_EQ(filter.MayContain(probes[i]), maybe);
      ASSERT_EQ(counting.MayContain(probes[i]), maybe);
    }
    for (size_t i = 0; i < 500; ++i) ASSERT_TRUE(filter.MayContain(members[i]));
    std::vector<uint32_t> positions(probes.size()), of_counting(probes.size());
    const size_t found = filter.SelectBatch(probes, positions);
    ASSERT_EQ(counting.SelectBatch(probes, of_counting), found);
    EXPECT_TRUE(
        std::equal(positions.begin(), positions.begin() + static_cast<std::ptrdiff_t>(found), of_counting.begin()));
  }
}

// ---- What cannot be made.

void ExpectInvalid(const Status& status, const std::string& text) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(status.error().what()).find(text), std::string::npos) << status.error().what();
}
template <class T>
Status StatusOf(const Result<T>& result) {
  if (result.ok()) return {};
  return result.error();
}

TEST(CountingErrors, LayoutsAndPolicies) {
  for (const Layout layout : {Layout::kWord64, Layout::kSplit512, Layout::kLine512, Layout::kSplit256}) {
    const FilterConfig config = FilterConfig::ForBits(4096, 8, layout);
    ExpectInvalid(StatusOf(CountingFilter::Create(config)), "layout = " + LayoutNameWithK(layout, 8));
    EXPECT_THROW(CountingFilter{config}, Error);
  }
  for (const Layout layout : test::kCountingLayouts) {
    const FilterConfig config = FilterConfig::ForBits(4096, 8, layout);
    ExpectInvalid(StatusOf(Filter::Create(config)), "CountingFilter");
    EXPECT_THROW(Filter{config}, Error);
    ExpectInvalid(StatusOf(CountingFilter::Create(config, OverflowPolicy::kNone)), "policy = 0");
    ExpectInvalid(StatusOf(CountingFilter::Create(config, static_cast<OverflowPolicy>(4))), "policy = 4");
    ExpectInvalid(StatusOf(CountingFilter::Create(config, static_cast<OverflowPolicy>(255))), "policy = 255");
    EXPECT_THROW(CountingFilter(config, OverflowPolicy::kNone), Error);
    for (const int k : {1, 7, 9, 16, 17}) ExpectInvalid(StatusOf(FilterConfig::TryForBits(4096, k, layout)), "k");
  }
}

TEST(CountingErrors, PolicyNames) {
  EXPECT_STREQ(OverflowPolicyName(OverflowPolicy::kNone), "none");
  EXPECT_STREQ(OverflowPolicyName(OverflowPolicy::kSaturate), "saturate");
  EXPECT_STREQ(OverflowPolicyName(OverflowPolicy::kReject), "reject");
  EXPECT_STREQ(OverflowPolicyName(OverflowPolicy::kSpill), "spill");
}

}  // namespace
}  // namespace bloomline
