// One pass over a filter's bits or counters: how full it is, and what that means. A counter is set when it is above 0.
#pragma once

#include <cstdint>
#include <span>

#include "bloomline/layout.h"

namespace bloomline::detail {

struct Fill {
  uint64_t set = 0;     // bits, or counters
  double fraction = 0;  // of all
  double fpr = 0;       // the mean over blocks of the chance that a random key passes
  bool saturated = false;
};

// `words` holds whole blocks of the layout.
Fill MeasureFill(Layout layout, int k, std::span<const uint64_t> words);

double FractionSet(Layout layout, std::span<const uint64_t> words);
bool AllSet(Layout layout, std::span<const uint64_t> words);  // stops at the first that is not

// The lowest bit of each counter of `bits` bits (4 or 8): set where the counter is above 0, or full.
constexpr uint64_t CounterLowBits(int bits) { return bits == 4 ? 0x1111111111111111 : 0x0101010101010101; }
constexpr uint64_t CountersAboveZero(int bits, uint64_t word) {
  for (int shift = bits / 2; shift != 0; shift /= 2) word |= word >> shift;
  return word & CounterLowBits(bits);
}
constexpr uint64_t CountersFull(int bits, uint64_t word) {
  for (int shift = bits / 2; shift != 0; shift /= 2) word &= word >> shift;
  return word & CounterLowBits(bits);
}

}  // namespace bloomline::detail
