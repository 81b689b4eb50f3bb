// Adds and removes of a key that meets full counters under the spill policy: the side table's part of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bloomline/layout.h"
#include "engine/spill_table.h"
#include "kernels/counting_layout.h"

namespace bloomline::detail {

inline constexpr size_t kWordsPerLine = 8;

// A key's counters: one in each word of its line.
struct KeyCounters {
  int bits = 4;              // per counter
  uint64_t* line = nullptr;  // its 8 words, or a copy of them
  uint64_t block = 0;
  uint64_t g = 0;

  uint64_t Value(size_t w) const { return kernels::CounterOf(bits, line, g, w); }
  bool Full(size_t w) const { return Value(w) == kernels::CounterMax(bits); }
  uint64_t Unit(size_t w) const { return uint64_t{1} << kernels::CounterShift(bits, g, w); }
  // The counter's place in SpillTable.
  uint64_t Place(size_t w) const {
    const auto per_word = static_cast<uint64_t>(64 / bits);
    return (block * kWordsPerLine + w) * per_word + static_cast<uint64_t>(kernels::CounterShift(bits, g, w) / bits);
  }
};

// False: no memory, nothing changed.
inline bool AddSpilled(const KeyCounters& key, SpillTable& table) noexcept {
  for (size_t w = 0; w < kWordsPerLine; ++w) {
    if (!key.Full(w) || table.Add(key.Place(w), 1)) continue;
    while (w-- > 0) {
      if (key.Full(w)) table.TakeOne(key.Place(w));
    }
    return false;
  }
  for (size_t w = 0; w < kWordsPerLine; ++w) {
    if (!key.Full(w)) key.line[w] += key.Unit(w);
  }
  return true;
}

// Only where all of the key's counters are above 0.
inline void RemoveSpilled(const KeyCounters& key, SpillTable& table) noexcept {
  for (size_t w = 0; w < kWordsPerLine; ++w) {
    if (!(key.Full(w) && table.TakeOne(key.Place(w)))) key.line[w] -= key.Unit(w);
  }
}

// How often a key is in the filter: the smallest of its counters and what is beyond it.
inline uint64_t CountSpilled(const KeyCounters& key, const SpillTable& table) noexcept {
  uint64_t smallest = ~uint64_t{0};
  for (size_t w = 0; w < kWordsPerLine; ++w) {
    const uint64_t count = key.Value(w) + (key.Full(w) ? table.Get(key.Place(w)) : 0);
    if (count < smallest) smallest = count;
  }
  return smallest;
}

}  // namespace bloomline::detail
