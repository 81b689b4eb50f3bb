// Snapshots of counting filters: round trips with and without spilled counters, views of them, bytes that are pinned.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bloomline/counting_filter.h"
#include "bloomline/target.h"
#include "tests/counting_util.h"
#include "tests/snapshot_util.h"

namespace bloomline {
namespace {

using test::AlignedBytes;
using test::CodeOf;
using test::Get;
using test::MessageOf;
using test::Random;
using test::SampleCounting;
using test::SampleKeys;
using test::Serialized;
using test::TempDir;
using test::WordsOf;

constexpr size_t kHeader = 4096;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

void ExpectSameCounting(const CountingFilter& a, const CountingFilter& b) {
  test::ExpectSame(a, b);
  EXPECT_EQ(a.overflow_policy(), b.overflow_policy());
  const OverflowReport mine = a.Overflow(), theirs = b.Overflow();
  EXPECT_EQ(mine.policy, theirs.policy);
  EXPECT_EQ(mine.full_counters, theirs.full_counters);
  EXPECT_EQ(mine.spilled_counters, theirs.spilled_counters);
  EXPECT_EQ(mine.spilled_keys, theirs.spilled_keys);
  EXPECT_EQ(mine.predicted_any, theirs.predicted_any);
  for (const uint64_t key : SampleKeys()) ASSERT_EQ(a.Count(key), b.Count(key));
  EXPECT_EQ(Serialized(a), Serialized(b));
}

// Lookups of a view, single and in batches.
void ExpectAnswers(const CountingFilter& filter, const FilterView& view) {
  test::ExpectSame(filter, view);
  EXPECT_EQ(view.overflow_policy(), filter.overflow_policy());
  EXPECT_EQ(view.MeasuredFillFpr(), filter.MeasuredFillFpr());
  EXPECT_EQ(view.EstimatedCount(), filter.EstimatedCount());
  EXPECT_EQ(view.FillFraction(), filter.FillFraction());
  EXPECT_EQ(view.PredictedFpr(), filter.PredictedFpr());
  EXPECT_EQ(view.Saturated(), filter.Saturated());
  std::vector<uint64_t> probes = Random(99).Take(3000);
  for (const uint64_t key : SampleKeys()) {
    probes.push_back(key);
    EXPECT_TRUE(view.MayContain(key));
  }
  std::vector<uint64_t> bitmap(test::BitmapWords(probes.size())), expected(bitmap.size());
  view.MayContainBatch(probes, bitmap);
  filter.MayContainBatch(probes, expected);
  EXPECT_EQ(bitmap, expected);
  for (size_t i = 0; i < probes.size(); ++i) ASSERT_EQ(view.MayContain(probes[i]), test::BitOf(expected, i));
}

TEST(CountingSnapshot, RoundTripThroughEveryDoor) {
  const TempDir folder;
  const std::string path = folder / "f.blm";
  for (const Layout layout : test::kCountingLayouts) {
    for (const OverflowPolicy policy : test::kPolicies) {
      for (const bool full : {false, true}) {
        for (const uint64_t blocks : {uint64_t{1}, uint64_t{64}, uint64_t{65}}) {
          SCOPED_TRACE(LayoutName(layout, 8) + " " + OverflowPolicyName(policy) + " " + std::to_string(blocks));
          const CountingFilter filter = SampleCounting(layout, policy, full, blocks);
          const bool spilled = full && policy == OverflowPolicy::kSpill;
          EXPECT_EQ(filter.Overflow().spilled_counters != 0, spilled);
          const std::vector<std::byte> bytes = Serialized(filter);
          const size_t payload_end = kHeader + blocks * 64;
          EXPECT_EQ(bytes.size(), spilled ? (payload_end + 4095) / 4096 * 4096 + 16 * filter.Overflow().spilled_counters
                                          : payload_end);
          filter.Save(path);
          EXPECT_EQ(test::ReadBytes(path), bytes);
          CountingFilter loaded = CountingFilter::Load(path);
          ExpectSameCounting(filter, loaded);
          ExpectSameCounting(filter, CountingFilter::Deserialize(bytes));
          ExpectAnswers(filter, FilterView::Map(path));
          ExpectAnswers(filter, FilterView::Map(path, Verify::kHeaderOnly));
          AlignedBytes aligned(bytes);
          ExpectAnswers(filter, FilterView::Wrap(aligned.span()));
          ExpectAnswers(filter, FilterView::Wrap(aligned.span(), Verify::kHeaderOnly));
          // A view is a snapshot's content, side table and all.
          EXPECT_EQ(Serialized(FilterView::Map(path)), bytes);
          // What was loaded goes on as the filter itself would.
          CountingFilter twin = filter.Clone();
          for (const uint64_t key : SampleKeys()) {
            ASSERT_EQ(loaded.Remove(key), twin.Remove(key));
            ASSERT_EQ(loaded.Add(key), twin.Add(key));
            ASSERT_EQ(loaded.Add(key), twin.Add(key));
          }
          ExpectSameCounting(twin, loaded);
          // A batch of them through the vector kernels, too.
          EXPECT_EQ(loaded.RemoveBatch(SampleKeys()), twin.RemoveBatch(SampleKeys()));
          ExpectSameCounting(twin, loaded);
        }
      }
    }
  }
}

TEST(CountingSnapshot, HeaderFieldsAreWhereTheFormatSays) {
  for (const Layout layout : test::kCountingLayouts) {
    const CountingFilter filter = SampleCounting(layout, OverflowPolicy::kSpill, true);
    const std::vector<std::byte> bytes = Serialized(filter);
    EXPECT_EQ(Get(bytes, 32, 4), 2U);  // a counting filter
    EXPECT_EQ(Get(bytes, 36, 4), 2U);  // sections
    EXPECT_EQ(Get(bytes, 40, 1), layout == Layout::kCounting4 ? 7U : 8U);
    EXPECT_EQ(Get(bytes, 41, 1), 8U);  // zones
    EXPECT_EQ(Get(bytes, 42, 1), 8U);  // k
    EXPECT_EQ(Get(bytes, 43, 1), layout == Layout::kCounting4 ? 4U : 8U);
    EXPECT_EQ(Get(bytes, 44, 1), 3U);  // spill
    EXPECT_EQ(Get(bytes, 288, 4), 2U);
    EXPECT_EQ(Get(bytes, 296, 8), 8192U);
    EXPECT_EQ(Get(bytes, 304, 8), bytes.size() - 8192);
    EXPECT_EQ(Get(bytes, 312, 8), XXH3_64bits(bytes.data() + 8192, bytes.size() - 8192));
    EXPECT_EQ(Get(bytes, 16, 8), bytes.size());
    // Entries (place, count) in ascending order of their places.
    uint64_t sum = 0, last = 0;
    for (size_t at = 8192; at < bytes.size(); at += 16) {
      const uint64_t place = Get(bytes, at, 8);
      if (at > 8192) {
        EXPECT_GT(place, last);
      }
      last = place;
      sum += Get(bytes, at + 8, 8);
    }
    EXPECT_EQ(sum, filter.Overflow().spilled_keys);
  }
}

// Counters are part of the format. Pinned for the u64 keys 0 … 999 and 0 … 9 again 20 (300) times each in 211 blocks,
// seed 42; computed in Python's unbounded integers from the design's text, without the library.
TEST(CountingSnapshot, GoldenBytes) {
  struct Golden {
    Layout layout;
    size_t repeats;
    uint64_t payload;
    uint64_t spilled_counters;
    uint64_t spilled_keys;
    uint64_t spill_section;
  };
  constexpr Golden kGolden[] = {
      {Layout::kCounting4, 20, 0xdc0c945001b66189, 80, 502, 0x58df8de96eb89987},
      {Layout::kCounting8, 300, 0x702ac2a9bed9977e, 80, 3723, 0xcb9da59ea0600d15},
  };
  std::vector<uint64_t> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  for (const std::string& target : SupportedTargets()) {
    for (const Golden& golden : kGolden) {
      std::vector<uint64_t> all = keys;
      for (size_t i = 0; i < 10 * golden.repeats; ++i) all.push_back(i / golden.repeats);
      for (const OverflowPolicy policy : {OverflowPolicy::kSaturate, OverflowPolicy::kSpill}) {
        for (const bool batch : {false, true}) {
          SCOPED_TRACE(target + " " + LayoutName(golden.layout, 8) + " " + OverflowPolicyName(policy));
          CountingFilter filter(test::SmallConfig(golden.layout, 8, 211, target, 42), policy);
          if (batch) {
            EXPECT_EQ(filter.AddBatch(all), 0U);
          } else {
            for (const uint64_t key : all) ASSERT_TRUE(filter.Add(key));
          }
          EXPECT_EQ(test::Fnv1a(filter.words()), golden.payload);
          if (policy != OverflowPolicy::kSpill) continue;
          EXPECT_EQ(filter.Overflow().spilled_counters, golden.spilled_counters);
          EXPECT_EQ(filter.Overflow().spilled_keys, golden.spilled_keys);
          const std::vector<std::byte> bytes = Serialized(filter);
          const size_t begin = (kHeader + 211 * 64 + 4095) / 4096 * 4096;
          std::vector<uint64_t> section((bytes.size() - begin) / 8);
          for (size_t i = 0; i < section.size(); ++i) section[i] = Get(bytes, begin + 8 * i, 8);
          EXPECT_EQ(section.size(), 2 * golden.spilled_counters);
          EXPECT_EQ(test::Fnv1a(section), golden.spill_section);
        }
      }
    }
  }
}

TEST(CountingSnapshot, TheOtherKindIsRefused) {
  const TempDir folder;
  const std::string path = folder / "f";
  const auto expect = [&](const auto& result, const std::string& text) {
    EXPECT_EQ(CodeOf(result), kUnsupported);
    EXPECT_NE(MessageOf(result).find(text), std::string::npos) << MessageOf(result);
  };
  const CountingFilter counting = SampleCounting(Layout::kCounting4, OverflowPolicy::kSpill, true);
  counting.Save(path);
  expect(Filter::TryLoad(path), "holds a counting filter; a filter is wanted here");
  expect(Filter::TryLoad(path), path);
  expect(Filter::TryDeserialize(Serialized(counting)), "holds a counting filter; a filter is wanted here");
  const Filter plain = test::SampleFilter(Layout::kSplit512, 8, 3, 20);
  plain.Save(path);
  expect(CountingFilter::TryLoad(path), "holds a filter; a counting filter is wanted here");
  expect(CountingFilter::TryLoad(path), path);
  expect(CountingFilter::TryDeserialize(Serialized(plain)), "holds a filter; a counting filter is wanted here");
  EXPECT_THROW((void)CountingFilter::Load(path), Error);
  // What a counting filter was expanded to is a filter.
  counting.ToFilter().Save(path);
  test::ExpectSame(counting.ToFilter(), Filter::Load(path));
  EXPECT_EQ(CodeOf(CountingFilter::TryLoad(folder / "missing")), ErrorCode::kIo);
}

TEST(CountingSnapshot, MovedFromAndTooSmall) {
  CountingFilter filter = SampleCounting(Layout::kCounting4, OverflowPolicy::kSpill, true);
  std::vector<std::byte> bytes(filter.SerializedBytes() - 1);
  const auto small = filter.TrySerializeTo(bytes);
  EXPECT_EQ(CodeOf(small), ErrorCode::kInvalidArgument);
  const CountingFilter moved = std::move(filter);
  const TempDir folder;
  EXPECT_FALSE(filter.TrySave(folder / "f").ok());  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(folder.Names().empty());
}

}  // namespace
}  // namespace bloomline
