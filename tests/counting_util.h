// What the tests of counting filters share: a slow counting filter under every policy, and keys of every form by
// number.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bloomline/counting_filter.h"
#include "tests/test_util.h"

namespace bloomline::test {

inline constexpr Layout kCountingLayouts[] = {Layout::kCounting4, Layout::kCounting8};
inline constexpr OverflowPolicy kPolicies[] = {OverflowPolicy::kSaturate, OverflowPolicy::kReject,
                                               OverflowPolicy::kSpill};

inline int CounterBitsOf(Layout layout) { return layout == Layout::kCounting4 ? 4 : 8; }

// The bytes of a filter, to be compared later.
inline std::vector<uint64_t> WordsOf(const FilterReader& filter) {
  return {filter.words().begin(), filter.words().end()};
}

inline bool AllZero(const FilterReader& filter) {
  return std::all_of(filter.words().begin(), filter.words().end(), [](uint64_t word) { return word == 0; });
}

// Counters as wide as they need to be, found through the design's text (test_util.h) and one at a time.
class CounterModel {
 public:
  CounterModel(Layout layout, OverflowPolicy policy, uint64_t blocks)
      : bits_(static_cast<unsigned>(CounterBitsOf(layout))), policy_(policy), blocks_(blocks) {
    counters_.resize(static_cast<size_t>(blocks) * 512 / bits_);
  }

  uint64_t max() const { return (uint64_t{1} << bits_) - 1; }
  uint64_t inserted() const { return inserted_; }

  // The key's smallest counter, with what is beyond the maximum under spill.
  uint64_t Count(uint64_t hash) const {
    uint64_t smallest = ~uint64_t{0};
    for (const size_t c : CountersOf(hash)) smallest = std::min(smallest, counters_[c]);
    return smallest;
  }
  // Under reject a key whose largest counter is full is refused.
  uint64_t Largest(uint64_t hash) const {
    uint64_t largest = 0;
    for (const size_t c : CountersOf(hash)) largest = std::max(largest, counters_[c]);
    return largest;
  }

  bool Add(uint64_t hash) {
    const std::array<size_t, 8> mine = CountersOf(hash);
    if (policy_ == OverflowPolicy::kReject) {
      for (const size_t c : mine) {
        if (counters_[c] == max()) return false;
      }
    }
    for (const size_t c : mine) {
      if (policy_ != OverflowPolicy::kSaturate || counters_[c] < max()) ++counters_[c];
    }
    ++inserted_;
    return true;
  }

  bool Remove(uint64_t hash) {
    if (Count(hash) == 0) return false;
    for (const size_t c : CountersOf(hash)) {
      if (policy_ != OverflowPolicy::kSaturate || counters_[c] < max()) --counters_[c];
    }
    --inserted_;
    return true;
  }

  // The filter's words.
  std::vector<uint64_t> Words() const {
    std::vector<uint64_t> words(static_cast<size_t>(blocks_) * 8);
    const size_t per_word = 64 / bits_;
    for (size_t c = 0; c < counters_.size(); ++c) {
      words[c / per_word] |= std::min(counters_[c], max()) << (c % per_word * bits_);
    }
    return words;
  }

  void ExpectOverflow(const OverflowReport& report) const {
    uint64_t full = 0, beyond = 0, spilled = 0;
    for (const uint64_t counter : counters_) {
      full += counter >= max();
      beyond += counter > max();
      spilled += counter > max() ? counter - max() : 0;
    }
    EXPECT_EQ(report.policy, policy_);
    EXPECT_EQ(report.counters, counters_.size());
    EXPECT_EQ(report.full_counters, full);
    EXPECT_EQ(report.spilled_counters, beyond);
    EXPECT_EQ(report.spilled_keys, spilled);
    if (policy_ != OverflowPolicy::kSpill) {
      EXPECT_EQ(report.spill_bytes, 0U);
    } else {
      EXPECT_GE(report.spill_bytes, 16 * beyond);
    }
  }

 private:
  std::array<size_t, 8> CountersOf(uint64_t hash) const {
    const uint64_t block = slow::BlockIndex(Layout::kSplit512, hash, blocks_);
    slow::Fields fields(hash);
    std::array<size_t, 8> mine{};
    for (size_t w = 0; w < 8; ++w) {
      mine[w] = static_cast<size_t>(block) * (512 / bits_) + (64 * w + fields.Take(6)) / bits_;
    }
    return mine;
  }

  unsigned bits_;
  OverflowPolicy policy_;
  uint64_t blocks_;
  uint64_t inserted_ = 0;
  std::vector<uint64_t> counters_;
};

enum class KeyForm { kU64, kU32, kString, kStringView, kColumn, kHashed };
inline constexpr KeyForm kKeyForms[] = {KeyForm::kU64,        KeyForm::kU32,    KeyForm::kString,
                                        KeyForm::kStringView, KeyForm::kColumn, KeyForm::kHashed};

// Keys number 0 … count − 1 of one form, all different, and the calls of a filter on them by number.
class NumberedKeys {
  // Calls on the key, or on what stands for it where it is a hash.
  template <class OnKey, class OnHash>
  auto OnOne(size_t i, const OnKey& on_key, const OnHash& on_hash) const {
    switch (form_) {
      case KeyForm::kU64:
        return on_key(wide_[i]);
      case KeyForm::kU32:
        return on_key(narrow_[i]);
      case KeyForm::kString:
        return on_key(texts_[i]);
      case KeyForm::kHashed:
        return on_hash(wide_[i]);
      default:
        return on_key(std::string_view(texts_[i]));
    }
  }

  template <class OnKeys, class OnHashes>
  size_t OnBatch(std::span<const size_t> numbers, const OnKeys& on_keys, const OnHashes& on_hashes) const {
    const auto gather = [&](const auto& from) {
      std::vector<typename std::decay_t<decltype(from)>::value_type> keys;
      for (const size_t i : numbers) keys.push_back(from[i]);
      return keys;
    };
    switch (form_) {
      case KeyForm::kU64:
        return on_keys(std::span<const uint64_t>(gather(wide_)));
      case KeyForm::kU32:
        return on_keys(std::span<const uint32_t>(gather(narrow_)));
      case KeyForm::kString:
        return on_keys(std::span<const std::string>(gather(texts_)));
      case KeyForm::kStringView: {
        std::vector<std::string_view> keys;
        for (const size_t i : numbers) keys.push_back(texts_[i]);
        return on_keys(std::span<const std::string_view>(keys));
      }
      case KeyForm::kColumn: {
        std::string bytes;
        std::vector<int32_t> offsets = {0};
        for (const size_t i : numbers) {
          bytes += texts_[i];
          offsets.push_back(static_cast<int32_t>(bytes.size()));
        }
        return on_keys(BinaryColumn(std::span<const int32_t>(offsets), bytes));
      }
      case KeyForm::kHashed:
        return on_hashes(std::span<const uint64_t>(gather(wide_)));
    }
    return 0;
  }

 public:
  NumberedKeys(KeyForm form, size_t count, uint64_t seed) : form_(form), seed_(seed) {
    for (size_t i = 0; i < count; ++i) {
      wide_.push_back(RandomKey(i + 1));
      narrow_.push_back(static_cast<uint32_t>(i) * 2654435761U);
      // "", then strings of every length up to 40, with NUL bytes in them.
      std::string text = i == 0 ? std::string() : std::to_string(i) + std::string(i % 41, '\0');
      texts_.push_back(std::move(text));
    }
  }

  uint64_t HashOf(size_t i) const {
    switch (form_) {
      case KeyForm::kU64:
        return HashInteger(wide_[i], seed_);
      case KeyForm::kU32:
        return HashInteger(narrow_[i], seed_);
      case KeyForm::kHashed:
        return wide_[i];
      default:
        return HashBytes(texts_[i], seed_);
    }
  }

  bool Add(CountingFilter& filter, size_t i) const {
    return OnOne(
        i, [&](const auto& key) { return filter.Add(key); }, [&](uint64_t h) { return filter.AddHash(h); });
  }
  bool Remove(CountingFilter& filter, size_t i) const {
    return OnOne(
        i, [&](const auto& key) { return filter.Remove(key); }, [&](uint64_t h) { return filter.RemoveHash(h); });
  }
  uint64_t Count(const CountingFilter& filter, size_t i) const {
    return OnOne(
        i, [&](const auto& key) { return filter.Count(key); }, [&](uint64_t h) { return filter.CountHash(h); });
  }
  bool MayContain(const FilterReader& filter, size_t i) const {
    return OnOne(
        i, [&](const auto& key) { return filter.MayContain(key); },
        [&](uint64_t h) { return filter.MayContainHash(h); });
  }
  size_t AddBatch(CountingFilter& filter, std::span<const size_t> numbers, std::span<uint64_t> refused) const {
    return OnBatch(
        numbers, [&](const auto& keys) { return filter.AddBatch(keys, refused); },
        [&](const auto& hashes) { return filter.AddHashBatch(hashes, refused); });
  }
  size_t RemoveBatch(CountingFilter& filter, std::span<const size_t> numbers, std::span<uint64_t> absent) const {
    return OnBatch(
        numbers, [&](const auto& keys) { return filter.RemoveBatch(keys, absent); },
        [&](const auto& hashes) { return filter.RemoveHashBatch(hashes, absent); });
  }
  void CountBatch(const CountingFilter& filter, std::span<const size_t> numbers, std::span<uint32_t> counts) const {
    OnBatch(
        numbers, [&](const auto& keys) { return filter.CountBatch(keys, counts), size_t{0}; },
        [&](const auto& hashes) { return filter.CountHashBatch(hashes, counts), size_t{0}; });
  }
  void MayContainBatch(const FilterReader& filter, std::span<const size_t> numbers, std::span<uint64_t> bitmap) const {
    OnBatch(
        numbers, [&](const auto& keys) { return filter.MayContainBatch(keys, bitmap), size_t{0}; },
        [&](const auto& hashes) { return filter.MayContainHashBatch(hashes, bitmap), size_t{0}; });
  }

 private:
  KeyForm form_;
  uint64_t seed_;
  std::vector<uint64_t> wide_;
  std::vector<uint32_t> narrow_;
  std::vector<std::string> texts_;
};

inline std::vector<uint64_t> SampleKeys() { return Random(31).Take(40); }

// A small filter with something in it; with `full`, counters beyond their maximum.
inline CountingFilter SampleCounting(Layout layout, OverflowPolicy policy, bool full, uint64_t blocks = 3) {
  CountingFilter filter(SmallConfig(layout, 8, blocks, "", 7).WithKeyKind(KeyKind::kU64), policy);
  const std::vector<uint64_t> keys = SampleKeys();
  filter.AddBatch(keys);
  if (full) {
    for (int i = 0; i < 300; ++i) filter.AddBatch(std::span(keys).first(5));
  }
  return filter;
}

}  // namespace bloomline::test
