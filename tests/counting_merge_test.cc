// CountingFilter::Merge under each policy: one filter that saw both histories, or an error and nothing changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bloomline/counting_filter.h"
#include "tests/counting_util.h"

namespace bloomline {
namespace {

using test::CounterModel;
using test::Random;
using test::WordsOf;

constexpr uint64_t kSeed = 77;

CountingFilter Make(Layout layout, OverflowPolicy policy, uint64_t blocks = 3) {
  return CountingFilter(test::SmallConfig(layout, 8, blocks, "", kSeed), policy);
}

uint64_t MaxOf(Layout layout) { return layout == Layout::kCounting4 ? 15 : 255; }

// What a refusal must not touch.
struct State {
  explicit State(const CountingFilter& filter)
      : words(WordsOf(filter)), inserted(filter.InsertedCount()), report(filter.Overflow()) {}
  void ExpectStill(const CountingFilter& filter) const {
    EXPECT_EQ(WordsOf(filter), words);
    EXPECT_EQ(filter.InsertedCount(), inserted);
    EXPECT_EQ(filter.Overflow().spilled_counters, report.spilled_counters);
    EXPECT_EQ(filter.Overflow().spilled_keys, report.spilled_keys);
  }
  std::vector<uint64_t> words;
  uint64_t inserted;
  OverflowReport report;
};

void ExpectMismatch(CountingFilter& target, const CountingFilter& other, std::initializer_list<std::string> texts) {
  const State before(target);
  const State other_before(other);
  const Status status = target.TryMerge(other);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::kMismatch);
  for (const std::string& text : texts) {
    EXPECT_NE(std::string(status.error().what()).find(text), std::string::npos) << status.error().what();
  }
  EXPECT_THROW(target.Merge(other), Error);
  before.ExpectStill(target);
  other_before.ExpectStill(other);
}

// Two random histories, `copies` times each key on average.
struct Halves {
  Halves(Layout layout, OverflowPolicy policy, uint64_t blocks, size_t keys, uint64_t operations, uint64_t seed)
      : first(Make(layout, policy, blocks)), second(Make(layout, policy, blocks)), both(layout, policy, blocks) {
    Random random(seed);
    hashes = random.Take(keys);
    for (uint64_t i = 0; i < operations; ++i) {
      const uint64_t hash = hashes[random.Below(keys)];
      CountingFilter& filter = random.Below(2) == 0 ? first : second;
      // Removals only of what the filter itself holds, so that each history is a sound one.
      if (random.Below(3) == 0 && held[&filter == &first][hash] > 0) {
        --held[&filter == &first][hash];
        EXPECT_TRUE(filter.RemoveHash(hash));
        ops.push_back({hash, false});
      } else if (filter.AddHash(hash)) {
        ++held[&filter == &first][hash];
        ops.push_back({hash, true});
      }
    }
  }
  CountingFilter first, second;
  CounterModel both;
  std::vector<uint64_t> hashes;
  std::map<uint64_t, uint64_t> held[2];
  std::vector<std::pair<uint64_t, bool>> ops;
};

TEST(CountingMerge, ExactPoliciesEqualOneFilterThatSawBoth) {
  for (const Layout layout : test::kCountingLayouts) {
    for (const OverflowPolicy policy : {OverflowPolicy::kReject, OverflowPolicy::kSpill}) {
      for (const uint64_t blocks : {uint64_t{1}, uint64_t{7}, uint64_t{200}}) {
        // Under reject so little that no counter overflows; under spill so much that many do, on both sides.
        const uint64_t operations = policy == OverflowPolicy::kReject ? 60 * blocks : 4000 + 600 * blocks;
        const size_t keys = policy == OverflowPolicy::kReject ? 400 * blocks : 40;
        Halves halves(layout, policy, blocks, keys, operations, blocks);
        for (const auto& [hash, add] : halves.ops) ASSERT_TRUE(add ? halves.both.Add(hash) : halves.both.Remove(hash));
        const uint64_t spilled = halves.first.Overflow().spilled_keys;
        const State second(halves.second);
        ASSERT_TRUE(halves.first.TryMerge(halves.second).ok());
        EXPECT_EQ(WordsOf(halves.first), halves.both.Words());
        EXPECT_EQ(halves.first.InsertedCount(), halves.both.inserted());
        halves.both.ExpectOverflow(halves.first.Overflow());
        if (policy == OverflowPolicy::kSpill) {
          EXPECT_GT(halves.first.Overflow().spilled_keys, spilled) << "nothing was carried";
        }
        for (const uint64_t hash : halves.hashes) {
          ASSERT_EQ(halves.first.CountHash(hash), halves.both.Count(hash));
        }
        second.ExpectStill(halves.second);
        // All can be taken out again.
        for (const auto& held : halves.held) {
          for (const auto& [hash, count] : held) {
            for (uint64_t i = 0; i < count; ++i) ASSERT_TRUE(halves.first.RemoveHash(hash));
          }
        }
        EXPECT_TRUE(test::AllZero(halves.first));
        EXPECT_EQ(halves.first.Overflow().spilled_counters, 0U);
        EXPECT_EQ(halves.first.InsertedCount(), 0U);
      }
    }
  }
}

// Sums stop at the maximum, for good. Without removals that is one filter that saw all adds.
TEST(CountingMerge, SaturateStopsAtTheMaximum) {
  for (const Layout layout : test::kCountingLayouts) {
    for (const uint64_t blocks : {uint64_t{1}, uint64_t{5}}) {
      CountingFilter first = Make(layout, OverflowPolicy::kSaturate, blocks);
      CountingFilter second = Make(layout, OverflowPolicy::kSaturate, blocks);
      CountingFilter both = Make(layout, OverflowPolicy::kSaturate, blocks);
      Random random(blocks);
      const std::vector<uint64_t> hashes = random.Take(60);
      for (uint64_t i = 0; i < 400 * MaxOf(layout) / 15; ++i) {
        const uint64_t hash = hashes[random.Below(1 + random.Below(hashes.size()))];
        (i % 3 == 0 ? first : second).AddHash(hash);
        both.AddHash(hash);
      }
      const OverflowReport before = first.Overflow();
      first.Merge(second);
      EXPECT_EQ(WordsOf(first), WordsOf(both));
      EXPECT_EQ(first.InsertedCount(), both.InsertedCount());
      EXPECT_GT(first.Overflow().full_counters, before.full_counters) << "no sum was beyond the maximum";
      for (const uint64_t hash : hashes) EXPECT_EQ(first.CountHash(hash), both.CountHash(hash));
    }
  }
}

// Every pair of counter values at every place of a word.
TEST(CountingMerge, EveryPairOfValues) {
  for (const Layout layout : test::kCountingLayouts) {
    const uint64_t max = MaxOf(layout);
    for (const OverflowPolicy policy : test::kPolicies) {
      for (uint64_t a = 0; a <= max; a += max == 15 ? 1 : 17) {
        for (uint64_t b = 0; b <= max; b += max == 15 ? 1 : 15) {
          CountingFilter first = Make(layout, policy, 1), second = Make(layout, policy, 1);
          const uint64_t hash = test::RandomKey(a * 256 + b), other = test::RandomKey(a * 256 + b + 7777);
          for (uint64_t i = 0; i < a; ++i) first.AddHash(hash);
          for (uint64_t i = 0; i < b; ++i) second.AddHash(hash);
          if (a < max) first.AddHash(other);  // neighbours that must not be carried into
          const uint64_t sum = a + b;
          if (policy == OverflowPolicy::kReject && sum > max) {
            ExpectMismatch(first, second, {"block 0", std::to_string(max)});
            continue;
          }
          if (policy == OverflowPolicy::kReject && !first.TryMerge(second).ok()) continue;  // the neighbour's counters
          if (policy != OverflowPolicy::kReject) first.Merge(second);
          const uint64_t count = first.CountHash(hash);
          ASSERT_GE(count, policy == OverflowPolicy::kSaturate ? std::min(sum, max) : sum) << a << " " << b;
          CounterModel model(layout, policy, 1);
          for (uint64_t i = 0; i < sum; ++i) model.Add(hash);
          if (a < max) model.Add(other);
          ASSERT_EQ(WordsOf(first), model.Words()) << a << " " << b;
          model.ExpectOverflow(first.Overflow());
          ASSERT_EQ(count, model.Count(hash));
        }
      }
    }
  }
}

// One counter too many, in the last block: refused as a whole, and not even the first block is changed.
TEST(CountingMerge, RejectRefusesAsAWhole) {
  for (const Layout layout : test::kCountingLayouts) {
    CountingFilter first = Make(layout, OverflowPolicy::kReject, 100);
    CountingFilter second = Make(layout, OverflowPolicy::kReject, 100);
    Random random(3);
    for (const uint64_t hash : random.Take(300)) first.AddHash(hash / 2);  // the lower blocks
    for (const uint64_t hash : random.Take(300)) second.AddHash(hash / 2);
    const uint64_t last = ~uint64_t{0};  // the last block
    while (first.CountHash(last) < MaxOf(layout) && first.AddHash(last)) {
    }
    second.AddHash(last);
    ExpectMismatch(first, second, {"reject", "block 99", std::to_string(MaxOf(layout))});
    // Nor the other way round.
    ExpectMismatch(second, first, {"block 99"});
    // One less, and it fits.
    ASSERT_TRUE(first.RemoveHash(last));
    const uint64_t sum = first.InsertedCount() + second.InsertedCount();
    ASSERT_TRUE(first.TryMerge(second).ok());
    EXPECT_EQ(first.InsertedCount(), sum);
  }
}

TEST(CountingMerge, MismatchesNameBothValues) {
  const auto make = [](uint64_t blocks, uint64_t seed, Layout layout, OverflowPolicy policy, KeyKind kind) {
    CountingFilter filter(test::SmallConfig(layout, 8, blocks, "", seed).WithKeyKind(kind), policy);
    for (uint64_t key = 0; key < 100; ++key) filter.Add(key % 5);
    return filter;
  };
  for (const OverflowPolicy policy : test::kPolicies) {
    CountingFilter target = make(3, 42, Layout::kCounting4, policy, KeyKind::kU64);
    ExpectMismatch(target, make(4, 42, Layout::kCounting4, policy, KeyKind::kU64), {"3 blocks", "4 blocks"});
    ExpectMismatch(target, make(3, 43, Layout::kCounting4, policy, KeyKind::kU64), {"seed", "42", "43"});
    ExpectMismatch(target, make(3, 42, Layout::kCounting8, policy, KeyKind::kU64), {"counting4", "counting8"});
    ExpectMismatch(target, make(3, 42, Layout::kCounting4, policy, KeyKind::kBytes), {"key kind", "u64", "bytes"});
    for (const OverflowPolicy other : test::kPolicies) {
      if (other == policy) continue;
      ExpectMismatch(target, make(3, 42, Layout::kCounting4, other, KeyKind::kU64),
                     {"overflow policy", OverflowPolicyName(policy), OverflowPolicyName(other)});
    }
  }
}

TEST(CountingMerge, PlainFiltersDoNotMix) {
  CountingFilter counting = Make(Layout::kCounting4, OverflowPolicy::kSaturate);
  counting.Add("key");
  Filter plain(test::SmallConfig(Layout::kSplit512, 8, 3, "", kSeed));
  plain.Insert("other");
  const std::vector<uint64_t> before = WordsOf(plain);
  for (const Status& status : {plain.TryMerge(counting), plain.TryIntersect(counting)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), ErrorCode::kMismatch);
    EXPECT_NE(std::string(status.error().what()).find("counting4"), std::string::npos) << status.error().what();
  }
  EXPECT_EQ(WordsOf(plain), before);
  // What it was expanded to does.
  plain.Merge(counting.ToFilter());
  EXPECT_TRUE(plain.MayContain("key"));
  EXPECT_TRUE(plain.MayContain("other"));
}

TEST(CountingMerge, WithItself) {
  for (const Layout layout : test::kCountingLayouts) {
    for (const OverflowPolicy policy : test::kPolicies) {
      CountingFilter filter = Make(layout, policy);
      CounterModel model(layout, policy, 3);
      Random random(4);
      const std::vector<uint64_t> hashes = random.Take(30);
      for (const uint64_t hash : hashes) ASSERT_TRUE(filter.AddHash(hash));
      for (int twice = 0; twice < 2; ++twice) {
        for (const uint64_t hash : hashes) model.Add(hash);
      }
      filter.Merge(filter);
      EXPECT_EQ(WordsOf(filter), model.Words());
      EXPECT_EQ(filter.InsertedCount(), 2 * hashes.size());
      // Until it overflows.
      uint64_t copies = 2;
      while (copies <= 2 * MaxOf(layout)) {
        const State before(filter);
        if (!filter.TryMerge(filter).ok()) {
          EXPECT_EQ(policy, OverflowPolicy::kReject);
          before.ExpectStill(filter);
          break;
        }
        copies *= 2;
      }
      if (policy == OverflowPolicy::kReject) {
        EXPECT_LE(copies, MaxOf(layout));
        continue;
      }
      CounterModel many(layout, policy, 3);
      for (uint64_t i = 0; i < copies; ++i) {
        for (const uint64_t hash : hashes) many.Add(hash);
      }
      EXPECT_EQ(WordsOf(filter), many.Words());
      many.ExpectOverflow(filter.Overflow());
      for (const uint64_t hash : hashes) EXPECT_EQ(filter.CountHash(hash), many.Count(hash));
    }
  }
}

// Doubling the spilled counts for ever ends in an error, not in sums that wrap around; and what was merged can be
// saved and read.
TEST(CountingMerge, SpilledCountsDoNotWrapAround) {
  CountingFilter filter = Make(Layout::kCounting4, OverflowPolicy::kSpill);
  for (int i = 0; i < 20; ++i) filter.Add("key");
  uint64_t count = 20;
  int merges = 0;
  for (; merges < 100; ++merges) {
    const State before(filter);
    const Status status = filter.TryMerge(filter);
    if (!status.ok()) {
      before.ExpectStill(filter);
      EXPECT_EQ(status.error().code(), ErrorCode::kMismatch);
      break;
    }
    count *= 2;
    ASSERT_EQ(filter.Count("key"), count);
    ASSERT_EQ(filter.Overflow().spilled_keys, 8 * (count - 15));
    std::vector<std::byte> bytes(filter.SerializedBytes());
    filter.SerializeTo(bytes);
    const auto read = CountingFilter::TryDeserialize(bytes);
    ASSERT_TRUE(read.ok()) << read.error().what();
    ASSERT_EQ(read->Count("key"), count);
  }
  EXPECT_GT(merges, 50);
  EXPECT_LT(merges, 64);
}

TEST(CountingMerge, MovedFrom) {
  for (const OverflowPolicy policy : test::kPolicies) {
    CountingFilter filter = Make(Layout::kCounting4, policy);
    CountingFilter moved = std::move(filter);
    moved.Add("key");
    // NOLINTBEGIN(bugprone-use-after-move)
    ExpectMismatch(moved, filter, {"3 blocks", "0 blocks"});
    ExpectMismatch(filter, moved, {"0 blocks", "3 blocks"});
    EXPECT_TRUE(filter.TryMerge(filter).ok());
    // NOLINTEND
    EXPECT_EQ(moved.Count("key"), 1U);
  }
}

}  // namespace
}  // namespace bloomline
