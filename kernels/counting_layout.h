// The counting layouts, and the scalar oracle that their kernels are tested against.
//
// A counting line is laid over a split512 line (layout.h): the same block, the same g, the same eight 6-bit fields p,
// one per word. What covers bit p of word w is a counter:
//
//   counting4   word w   63      60 59      56            4 3       0
//                        |  c15    |  c14    |    …      |   c0     |    16 counters of 4 bits, at shift p & 60
//   counting8   word w   63            56               7          0
//                        |     c7      |        …       |    c0    |     8 counters of 8 bits, at shift p & 56
//
// A key may be present when its eight counters are all above 0. Setting all bits of each counter above 0 makes the
// split512 filter with the same answers.
//
// A counter at its maximum (15, 255) is full. saturate: it stays so for good, since nobody knows how often it was
// counted. reject: a key that meets a full counter is not added. spill: what is beyond the maximum is in a side table,
// so that a full counter with an entry there comes down only when the entry is gone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "bloomline/overflow_policy.h"
#include "kernels/layout.h"

namespace bloomline::kernels {

constexpr int CounterBits(Layout layout) { return layout == Layout::kCounting4 ? 4 : 8; }
constexpr uint64_t CounterMax(int counter_bits) { return (uint64_t{1} << counter_bits) - 1; }

// Where the key's counter of word w starts.
constexpr int CounterShift(int counter_bits, uint64_t g, size_t w) {
  const auto p = static_cast<int>((g >> kSpecOf<SpecId{Layout::kSplit512, 8}>.probes[w].bit_shift) & 63);
  return p & (64 - counter_bits);
}
constexpr uint64_t CounterGOf(uint64_t hash) { return hash * kFirstG; }

// ---- The oracle. `line` is the key's line of 8 words.

constexpr uint64_t CounterOf(int counter_bits, const uint64_t* line, uint64_t g, size_t w) {
  return (line[w] >> CounterShift(counter_bits, g, w)) & CounterMax(counter_bits);
}

// The key's smallest counter: 0 means certainly absent.
constexpr uint64_t SmallestCounter(int counter_bits, const uint64_t* line, uint64_t g) {
  uint64_t smallest = CounterMax(counter_bits);
  for (size_t w = 0; w < 8; ++w) smallest = std::min(smallest, CounterOf(counter_bits, line, g, w));
  return smallest;
}

constexpr bool AnyCounterFull(int counter_bits, const uint64_t* line, uint64_t g) {
  for (size_t w = 0; w < 8; ++w) {
    if (CounterOf(counter_bits, line, g, w) == CounterMax(counter_bits)) return true;
  }
  return false;
}

// Adds a key under saturate or reject; false: refused, nothing changed. (Spill: reject, and the side table where it
// refuses.)
constexpr bool AddCounters(int counter_bits, OverflowPolicy policy, uint64_t* line, uint64_t g) {
  if (policy != OverflowPolicy::kSaturate && AnyCounterFull(counter_bits, line, g)) return false;
  for (size_t w = 0; w < 8; ++w) {
    if (CounterOf(counter_bits, line, g, w) == CounterMax(counter_bits)) continue;
    line[w] += uint64_t{1} << CounterShift(counter_bits, g, w);
  }
  return true;
}

// Removes a key under saturate or reject; false: certainly absent, nothing changed.
constexpr bool RemoveCounters(int counter_bits, OverflowPolicy policy, uint64_t* line, uint64_t g) {
  if (SmallestCounter(counter_bits, line, g) == 0) return false;
  for (size_t w = 0; w < 8; ++w) {
    const bool full = CounterOf(counter_bits, line, g, w) == CounterMax(counter_bits);
    if (full && policy == OverflowPolicy::kSaturate) continue;
    line[w] -= uint64_t{1} << CounterShift(counter_bits, g, w);
  }
  return true;
}

}  // namespace bloomline::kernels
