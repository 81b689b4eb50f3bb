// One pass over a filter's bits: how full it is, and what that means.
#pragma once

#include <cstdint>
#include <span>

#include "bloomline/layout.h"

namespace bloomline::detail {

struct Fill {
  uint64_t set_bits = 0;
  double fraction = 0;  // set bits / bits
  double fpr = 0;       // the mean over blocks of the chance that a random key passes
  bool saturated = false;
};

// `words` holds whole blocks of the layout.
Fill MeasureFill(Layout layout, int k, std::span<const uint64_t> words);

uint64_t CountSetBits(std::span<const uint64_t> words);
bool AllBitsSet(std::span<const uint64_t> words);  // stops at the first clear bit

}  // namespace bloomline::detail
