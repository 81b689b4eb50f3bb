// The choice of layout and k for a number of keys and a target FPR, or for a number of bits.
#pragma once

#include <cstdint>
#include <string>

#include "bloomline/layout.h"

namespace bloomline::detail {

struct SizedLayout {
  Layout layout = Layout::kAuto;
  int k = 0;
  uint64_t blocks = 0;  // 0: nothing fits
  double fpr = 1.0;     // predicted at the expected number of keys
  std::string reason;   // why this layout; empty where the caller named it

  uint64_t bits() const noexcept { return blocks * static_cast<uint64_t>(BlockBits(layout)); }
};

// The smallest filter of `layout` with `k` that meets `fpr` at n keys; the k of the smallest where k is 0; the fastest
// of those that are nearly as small as the smallest where layout is kAuto. blocks = 0 where no size that can be
// addressed does.
SizedLayout ChooseForFpr(uint64_t n, double fpr, Layout layout, int k);

// The lowest FPR at n keys in `bits` bits (rounded up to whole blocks) with `layout` and `k`; kAuto chooses as
// ChooseForFpr does for the lowest FPR that these bits can give. blocks = 0 where that many cannot be addressed.
SizedLayout ChooseForBits(uint64_t n, uint64_t bits, Layout layout, int k);

// Blocks that hold `bits` bits.
uint64_t BlocksForBits(Layout layout, uint64_t bits) noexcept;

}  // namespace bloomline::detail
