// CountingFilter against a multiset of keys and a model of its counters: random histories of adds and removes under
// every policy, with every form of key, single and in batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bloomline/counting_filter.h"
#include "bloomline/target.h"
#include "tests/counting_util.h"

namespace bloomline {
namespace {

using test::BitmapWords;
using test::BitOf;
using test::CounterModel;
using test::KeyForm;
using test::NumberedKeys;
using test::Random;
using test::WordsOf;

constexpr uint64_t kSeed = 0xc0ffee;

// A filter, the same in slow, and how often each key is in it.
class History {
 public:
  History(Layout layout, OverflowPolicy policy, KeyForm form, uint64_t blocks, size_t keys, const std::string& target,
          uint64_t seed)
      : policy_(policy),
        keys_(form, keys, kSeed),
        filter_(test::SmallConfig(layout, 8, blocks, target, kSeed), policy),
        model_(layout, policy, blocks),
        copies_(keys),
        random_(seed) {
    for (size_t i = 0; i < keys; ++i) hashes_.push_back(keys_.HashOf(i));
  }

  bool saw_full() const { return saw_full_; }  // whether a counter was full at any check

  // A single operation or a batch, with a bitmap or without one. Returns how many operations it was.
  size_t Step(bool add) {
    // Now and then all of a batch is one key, or few different ones.
    const size_t from = static_cast<size_t>(random_.Below(copies_.size()));
    const uint64_t spread = random_.Below(4) == 0 ? 1 + random_.Below(4) : copies_.size();
    const size_t length = random_.Below(3) == 0 ? 1 : static_cast<size_t>(random_.Below(300));
    const bool single = length == 1 && random_.Below(2) == 0;
    numbers_.clear();
    std::vector<bool> failed;
    for (size_t i = 0; i < length; ++i) {
      const size_t number = (from + static_cast<size_t>(random_.Below(spread))) % copies_.size();
      if (add) {
        failed.push_back(!model_.Add(hashes_[number]));
        if (!failed.back()) ++copies_[number];
      } else {
        // Never a false positive: what its removal does to others is no fault.
        if (copies_[number] == 0 && model_.Count(hashes_[number]) != 0) continue;
        failed.push_back(!model_.Remove(hashes_[number]));
        EXPECT_EQ(failed.back(), copies_[number] == 0);
        if (!failed.back()) --copies_[number];
      }
      numbers_.push_back(number);
    }
    const auto failures = static_cast<size_t>(std::count(failed.begin(), failed.end(), true));
    if (single && numbers_.size() == 1) {
      const bool done = add ? keys_.Add(filter_, numbers_[0]) : keys_.Remove(filter_, numbers_[0]);
      EXPECT_EQ(done, !failed[0]);
      return 1;
    }
    std::vector<uint64_t> bitmap;
    if (random_.Below(4) != 0) bitmap.assign(BitmapWords(numbers_.size()) + 1, ~uint64_t{0});
    const size_t result =
        add ? keys_.AddBatch(filter_, numbers_, bitmap) : keys_.RemoveBatch(filter_, numbers_, bitmap);
    EXPECT_EQ(result, failures);
    if (!bitmap.empty()) {
      std::vector<uint64_t> expected(BitmapWords(numbers_.size()));
      for (size_t i = 0; i < failed.size(); ++i) expected[i / 64] |= uint64_t{failed[i]} << (i % 64);
      expected.push_back(~uint64_t{0});  // not written
      EXPECT_EQ(bitmap, expected);
    }
    return numbers_.size();
  }

  // Everything that can be asked.
  void Check() {
    ASSERT_EQ(WordsOf(filter_), model_.Words());
    ASSERT_EQ(filter_.InsertedCount(), model_.inserted());
    model_.ExpectOverflow(filter_.Overflow());
    saw_full_ = saw_full_ || filter_.Overflow().full_counters != 0;
    numbers_.resize(copies_.size());
    for (size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = i;
    std::vector<uint32_t> counts(numbers_.size());
    std::vector<uint64_t> bitmap(BitmapWords(numbers_.size()));
    keys_.CountBatch(filter_, numbers_, counts);
    keys_.MayContainBatch(filter_, numbers_, bitmap);
    for (size_t i = 0; i < copies_.size(); ++i) {
      const uint64_t count = model_.Count(hashes_[i]);
      ASSERT_EQ(counts[i], count) << "key " << i;
      ASSERT_EQ(keys_.Count(filter_, i), count) << "key " << i;
      ASSERT_EQ(BitOf(bitmap, i), count != 0) << "key " << i;
      ASSERT_EQ(keys_.MayContain(filter_, i), count != 0) << "key " << i;
      // What the counts are for: never below the truth.
      const uint64_t truth =
          policy_ == OverflowPolicy::kSpill ? copies_[i] : std::min<uint64_t>(copies_[i], model_.max());
      ASSERT_GE(count, truth) << "key " << i;
    }
  }

  // Takes out what is in, in random order.
  void RemoveEverything() {
    numbers_.clear();
    for (size_t i = 0; i < copies_.size(); ++i) {
      for (; copies_[i] != 0; --copies_[i]) numbers_.push_back(i);
    }
    for (size_t i = numbers_.size(); i > 1; --i) std::swap(numbers_[i - 1], numbers_[random_.Below(i)]);
    for (const size_t number : numbers_) ASSERT_TRUE(model_.Remove(hashes_[number]));
    EXPECT_EQ(keys_.RemoveBatch(filter_, numbers_, {}), 0U);
    EXPECT_EQ(filter_.InsertedCount(), 0U);
    EXPECT_EQ(WordsOf(filter_), model_.Words());
    const OverflowReport report = filter_.Overflow();
    if (policy_ == OverflowPolicy::kSaturate) {  // what is full stays
      EXPECT_EQ(test::AllZero(filter_), report.full_counters == 0);
    } else {
      EXPECT_TRUE(test::AllZero(filter_));
      EXPECT_EQ(report.full_counters, 0U);
      EXPECT_EQ(report.spilled_counters, 0U);
      EXPECT_EQ(report.spilled_keys, 0U);
    }
  }

 private:
  OverflowPolicy policy_;
  NumberedKeys keys_;
  CountingFilter filter_;
  CounterModel model_;
  std::vector<uint64_t> copies_;  // the multiset
  Random random_;
  bool saw_full_ = false;
  std::vector<uint64_t> hashes_;
  std::vector<size_t> numbers_;
};

using Parameters = std::tuple<Layout, OverflowPolicy>;
std::string NameOf(const ::testing::TestParamInfo<Parameters>& info) {
  return LayoutName(std::get<0>(info.param), 8) + "_" + OverflowPolicyName(std::get<1>(info.param));
}

class CountingHistory : public ::testing::TestWithParam<Parameters> {
 protected:
  Layout layout() const { return std::get<0>(GetParam()); }
  OverflowPolicy policy() const { return std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(All, CountingHistory,
                         ::testing::Combine(::testing::ValuesIn(test::kCountingLayouts),
                                            ::testing::ValuesIn(test::kPolicies)),
                         NameOf);

TEST_P(CountingHistory, RandomHistories) {
  const std::vector<std::string> targets = SupportedTargets();
  size_t turn = 0;
  for (const KeyForm form : test::kKeyForms) {
    for (const uint64_t blocks : {uint64_t{1}, uint64_t{3}, uint64_t{40}}) {
      SCOPED_TRACE("form " + std::to_string(static_cast<int>(form)) + ", blocks " + std::to_string(blocks));
      History history(layout(), policy(), form, blocks, 400, targets[turn % targets.size()], turn);
      ++turn;
      for (int step = 0; step < 240; ++step) {
        // Waves: the filter fills and empties again.
        history.Step(step / 40 % 2 == 0 ? step % 4 != 0 : step % 4 == 0);
        if (step % 24 == 23) {
          ASSERT_NO_FATAL_FAILURE(history.Check());
        }
        ASSERT_FALSE(HasFailure()) << "step " << step;
      }
      if (blocks == 1) {
        EXPECT_TRUE(history.saw_full()) << "no overflow was tested";
      }
      ASSERT_NO_FATAL_FAILURE(history.RemoveEverything());
      ASSERT_NO_FATAL_FAILURE(history.Check());
    }
  }
}

class LargeCountingHistory : public CountingHistory {};
INSTANTIATE_TEST_SUITE_P(All, LargeCountingHistory,
                         ::testing::Combine(::testing::ValuesIn(test::kCountingLayouts),
                                            ::testing::ValuesIn(test::kPolicies)),
                         NameOf);

TEST_P(LargeCountingHistory, TenMillionAddsAndRemoves) {
  // About 4 counters per key that is in: some of them overflow, in 4 bits at least.
  for (const KeyForm form : {KeyForm::kU64, KeyForm::kStringView}) {
    History history(layout(), policy(), form, 1 << 13, 400'000, "", 99);
    uint64_t operations = 0;
    while (operations < 10'000'000) {
      operations += history.Step(operations / 500'000 % 2 == 0 ? operations % 4 != 0 : operations % 4 == 0);
      ASSERT_FALSE(HasFailure()) << operations;
    }
    ASSERT_NO_FATAL_FAILURE(history.Check());
    ASSERT_NO_FATAL_FAILURE(history.RemoveEverything());
    ASSERT_NO_FATAL_FAILURE(history.Check());
  }
}

}  // namespace
}  // namespace bloomline
