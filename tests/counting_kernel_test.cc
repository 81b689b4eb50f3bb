// The kernels of the counting layouts on every target, for every policy, against the scalar oracle; and the oracle
// against the design as test_util.h reads split512's bits, one at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "bloomline/target.h"
#include "kernels/counting_layout.h"
#include "kernels/kernels.h"
#include "tests/test_util.h"

namespace bloomline {
namespace {

using detail::BlockBits;
using detail::BlockOps;
using detail::CountingOps;
using detail::KeyForm;
using detail::KeySpan;
using detail::SpillHandler;
using test::BitmapWords;
using test::BitOf;
using test::Guarded;
using test::Random;

constexpr uint64_t kSeed = 0x5eed;
constexpr size_t kMaxLength = 130;
constexpr Layout kCountingLayouts[] = {Layout::kCounting4, Layout::kCounting8};
constexpr OverflowPolicy kPolicies[] = {OverflowPolicy::kSaturate, OverflowPolicy::kReject, OverflowPolicy::kSpill};

// The design's words: the counter that covers a key's split512 bit, as (counter's index in the line, value).
std::array<unsigned, 8> CountersOf(int counter_bits, uint64_t hash) {
  std::array<unsigned, 8> counters{};
  const std::vector<unsigned> bits = test::slow::BitsOf(Layout::kSplit512, 8, hash);
  for (size_t i = 0; i < 8; ++i) counters[i] = bits[i] / static_cast<unsigned>(counter_bits);
  return counters;
}

TEST(CountingOracle, CountsTheCountersThatCoverSplit512sBits) {
  Random random(3);
  for (const Layout layout : kCountingLayouts) {
    const int bits = kernels::CounterBits(layout);
    std::array<uint64_t, 8> line{};
    std::map<unsigned, uint64_t> model;
    for (int i = 0; i < 200; ++i) {
      const uint64_t hash = random.Take(1)[0];
      const uint64_t g = kernels::CounterGOf(hash);
      const bool add = i % 3 != 2;
      std::array<unsigned, 8> counters = CountersOf(bits, hash);
      bool present = true;
      bool full = false;
      for (const unsigned c : counters) {
        present = present && model[c] != 0;
        full = full || model[c] == kernels::CounterMax(bits);
      }
      if (add) {
        ASSERT_EQ(kernels::AddCounters(bits, OverflowPolicy::kReject, line.data(), g), !full);
        if (!full) {
          for (const unsigned c : counters) ++model[c];
        }
      } else {
        ASSERT_EQ(kernels::RemoveCounters(bits, OverflowPolicy::kReject, line.data(), g), present);
        if (present) {
          for (const unsigned c : counters) --model[c];
        }
      }
      for (const auto& [c, value] : model) {
        const unsigned bit = c * static_cast<unsigned>(bits);
        ASSERT_EQ((line[bit / 64] >> (bit % 64)) & kernels::CounterMax(bits), value) << c;
      }
    }
  }
}

TEST(CountingTables, OnlyCountingLayouts) {
  for (const std::string& target : SupportedTargets()) {
    for (const OverflowPolicy policy : kPolicies) {
      EXPECT_EQ(kernels::FindCountingOps(Layout::kSplit512, policy, target), nullptr);
      for (const Layout layout : kCountingLayouts) {
        EXPECT_NE(kernels::FindCountingOps(layout, policy, target), nullptr) << target;
        EXPECT_EQ(kernels::FindCountingOps(layout, OverflowPolicy::kNone, target), nullptr);
      }
    }
  }
  EXPECT_EQ(kernels::FindBlockOps(Layout::kCounting4, 7, SupportedTargets().front()), nullptr);
}

// Under spill the kernels hand over keys that meet a full counter; this stands in for the side table: it notes them,
// and lets every third fail.
struct Handed {
  std::vector<std::pair<uint64_t, uint64_t>> keys;
  bool Take(uint64_t block, uint64_t g) {
    keys.emplace_back(block, g);
    return keys.size() % 3 != 0;
  }
  SpillHandler Handler() {
    const auto take = [](void* context, uint64_t block, uint64_t g) noexcept {
      return static_cast<Handed*>(context)->Take(block, g);
    };
    return {this, take, take};
  }
};

class CountingKernelTest : public ::testing::TestWithParam<std::tuple<std::string, Layout, OverflowPolicy>> {
 protected:
  CountingKernelTest()
      : target_(std::get<0>(GetParam())),
        layout_(std::get<1>(GetParam())),
        policy_(std::get<2>(GetParam())),
        bits_(kernels::CounterBits(layout_)),
        lookups_(*kernels::FindBlockOps(layout_, 8, target_)),
        ops_(*kernels::FindCountingOps(layout_, policy_, target_)) {}

  uint64_t* LineOf(std::vector<uint64_t>& words, uint64_t hash) const {
    return words.data() + kernels::BlockOf(Layout::kSplit512, hash, words.size() / 8) * 8;
  }
  // One key by the oracle. Returns whether it was done.
  bool Oracle(std::vector<uint64_t>& words, uint64_t hash, bool add, Handed& handed) const {
    uint64_t* line = LineOf(words, hash);
    const uint64_t g = kernels::CounterGOf(hash);
    if (policy_ == OverflowPolicy::kSpill) {
      const bool present = kernels::SmallestCounter(bits_, line, g) != 0;
      if (!add && !present) return false;
      if (kernels::AnyCounterFull(bits_, line, g)) {
        return handed.Take(kernels::BlockOf(Layout::kSplit512, hash, words.size() / 8), g);
      }
    }
    return add ? kernels::AddCounters(bits_, policy_, line, g) : kernels::RemoveCounters(bits_, policy_, line, g);
  }

  std::string target_;
  Layout layout_;
  OverflowPolicy policy_;
  int bits_;
  const BlockOps& lookups_;
  const CountingOps& ops_;
};

// Batches of every length, misaligned, ending at guard pages, over counters from empty to overflowing, with repeats of
// a key and several keys of a line: bytes, bitmaps, counts and what goes to the side table are the oracle's.
TEST_P(CountingKernelTest, BatchesEqualTheOracle) {
  Random random(7);
  for (const uint64_t blocks : {uint64_t{1}, uint64_t{5}}) {
    Guarded memory(static_cast<size_t>(blocks) * 64);
    const std::span<uint64_t> words = memory.TailOf<uint64_t>(static_cast<size_t>(blocks) * 8);
    std::fill(words.begin(), words.end(), uint64_t{0});
    std::vector<uint64_t> oracle(words.size());
    BlockBits filter{words.data(), blocks, kSeed, 0};
    // Few different keys, so that counters fill: 4-bit ones soon, 8-bit ones too.
    const std::vector<uint64_t> pool = random.Take(40);
    Guarded key_memory(kMaxLength * 8 + 64);
    Guarded bitmap_memory(BitmapWords(kMaxLength) * 8);
    for (size_t round = 0; round < 3 * kMaxLength; ++round) {
      const size_t length = round % (kMaxLength + 1);
      const bool add = round % 5 != 4;
      const KeyForm form = round % 2 == 0 ? KeyForm::kHash : KeyForm::kU64;
      const size_t misaligned = round % 64;
      std::byte* const at = key_memory.TailOf<std::byte>(length * 8 + misaligned).data();
      std::vector<uint64_t> hashes(length);
      for (size_t i = 0; i < length; ++i) {
        // Half of the rounds mostly repeat one key.
        const uint64_t key = pool[round % 2 == 0 && i % 4 != 0 ? round % 7 : random.Take(1)[0] % pool.size()];
        std::memcpy(at + i * 8, &key, 8);
        hashes[i] = form == KeyForm::kHash ? key : detail::Mix(key, kSeed);
      }
      filter.prefetch = static_cast<uint32_t>(round / 2 % 2);
      const KeySpan keys{at, length, form};
      const bool want_bitmap = round % 3 != 0;
      const std::span<uint64_t> bitmap = bitmap_memory.TailOf<uint64_t>(BitmapWords(length));
      std::fill(bitmap.begin(), bitmap.end(), ~uint64_t{0});
      Handed handed;
      Handed expected_handed;
      const auto batch = add ? ops_.add_batch : ops_.remove_batch;
      const size_t failed = batch(filter, keys, want_bitmap ? bitmap.data() : nullptr, handed.Handler());
      size_t expected_failed = 0;
      for (size_t i = 0; i < length; ++i) {
        const bool done = Oracle(oracle, hashes[i], add, expected_handed);
        expected_failed += !done;
        if (want_bitmap) {
          ASSERT_EQ(BitOf(bitmap, i), !done) << "round " << round << " key " << i;
        }
      }
      ASSERT_EQ(failed, expected_failed) << "round " << round;
      ASSERT_EQ(handed.keys, expected_handed.keys) << "round " << round;
      ASSERT_TRUE(std::equal(oracle.begin(), oracle.end(), words.begin())) << "round " << round;
      if (want_bitmap && length % 64 != 0) {
        ASSERT_EQ(bitmap.back() >> (length % 64), 0U);
      }

      // Lookups and counts, of present and absent keys.
      lookups_.contains_batch(filter, keys, bitmap.data());
      std::vector<uint32_t> counts(length + 1, 0xabcdabcd);
      ops_.count_batch(filter, keys, counts.data());
      ASSERT_EQ(counts[length], 0xabcdabcdU);
      for (size_t i = 0; i < length; ++i) {
        const uint64_t count =
            kernels::SmallestCounter(bits_, LineOf(oracle, hashes[i]), kernels::CounterGOf(hashes[i]));
        ASSERT_EQ(counts[i], count);
        ASSERT_EQ(ops_.count(filter, hashes[i]), count);
        ASSERT_EQ(BitOf(bitmap, i), count != 0);
        ASSERT_EQ(lookups_.contains(filter, hashes[i]), count != 0);
      }
    }
    for (const uint64_t hash : random.Take(200)) {
      const uint64_t count = kernels::SmallestCounter(bits_, LineOf(oracle, hash), kernels::CounterGOf(hash));
      ASSERT_EQ(ops_.count(filter, hash), count);
    }
    ASSERT_TRUE(memory.CanaryIntact(static_cast<size_t>(blocks) * 64));
  }
}

TEST_P(CountingKernelTest, SinglesEqualTheOracle) {
  Random random(11);
  alignas(64) std::array<uint64_t, 24> words{};
  std::vector<uint64_t> oracle(words.size());
  const BlockBits filter{words.data(), 3, kSeed, 0};
  std::vector<uint64_t> pool = random.Take(30);
  pool.push_back(0);
  pool.push_back(~uint64_t{0});
  Handed handed;
  Handed expected_handed;
  for (int i = 0; i < 5000; ++i) {
    const uint64_t hash = pool[random.Take(1)[0] % pool.size()];
    const bool add = i % 5 != 0 && (i / 1000) % 2 == 0;
    const bool done = (add ? ops_.add : ops_.remove)(filter, hash, handed.Handler());
    ASSERT_EQ(done, Oracle(oracle, hash, add, expected_handed)) << i;
    ASSERT_TRUE(std::equal(oracle.begin(), oracle.end(), words.begin())) << i;
  }
  ASSERT_EQ(handed.keys, expected_handed.keys);
}

INSTANTIATE_TEST_SUITE_P(AllTargets, CountingKernelTest,
                         ::testing::Combine(::testing::ValuesIn(SupportedTargets()),
                                            ::testing::ValuesIn(kCountingLayouts), ::testing::ValuesIn(kPolicies)),
                         [](const auto& parameter) {
                           return std::get<0>(parameter.param) + "_" + LayoutName(std::get<1>(parameter.param), 8) +
                                  "_" + OverflowPolicyName(std::get<2>(parameter.param));
                         });

}  // namespace
}  // namespace bloomline
