// The mathematics of the filters: predicted false-positive rates, their inverses, and estimates.
// Pure functions, thread-safe. NaN, a layout with a k that it does not have, and kAuto give NaN (BlocksForFpr and
// BestHashCount: 0). Those that are not noexcept throw Error(kOutOfMemory). Models and sources: Bloom 1970; Putze,
// Sanders, Singler 2007 (blocked filters); Bose et al. 2008 and Christensen, Roginsky, Jimeno 2010 (exact small m);
// Lang, Neumann, Kemper, Boncz 2019.
#pragma once

#include <cstdint>

#include "bloomline/export.h"
#include "bloomline/layout.h"

namespace bloomline {

// ---- The unblocked filter of the textbooks, (m, k) with ideal hashing.
// (1 − e^(−kn/m))^k. Clamped to [0, 1]; m, k ≥ 1.
BLOOMLINE_API double ClassicFpr(double n, double m, int k) noexcept;
// E[(S/m)^k], S = occupied of m bins after n·k balls: right for small m, where the closed form is too low.
BLOOMLINE_API double ClassicFprExact(uint64_t n, uint64_t m, int k);
// m = ceil(−n ln p / (ln 2)²); k = max(1, round(m/n · ln 2)).
BLOOMLINE_API double ClassicBits(double n, double fpr) noexcept;
BLOOMLINE_API int ClassicHashCount(double n, double m) noexcept;

// ---- Blocked layouts. Where a rate "per key" is asked for, counting layouts count counters, the others bits.
// The limit of many blocks at `per_key` = m / n bits or counters (above 0).
BLOOMLINE_API double PredictedFprAt(Layout layout, int k, double per_key) noexcept;
// n distinct keys in `blocks` blocks: keys per block are binomial, so that a filter of one block is right too.
BLOOMLINE_API double PredictedFpr(Layout layout, int k, uint64_t blocks, uint64_t n) noexcept;

// ---- The inverses.
// The fewest blocks with PredictedFpr(layout, k, blocks, n) ≤ fpr; 0 where 2^32 − 1 blocks (split256: 2^26) are not
// enough.
BLOOMLINE_API uint64_t BlocksForFpr(Layout layout, int k, uint64_t n, double fpr);
// The bits per key that reach `fpr` in the limit of many blocks; infinity where none does below 2^20.
BLOOMLINE_API double BitsPerKeyForFpr(Layout layout, int k, double fpr);
// The k with the lowest FPR at these bits per key.
BLOOMLINE_API int BestHashCount(Layout layout, double bits_per_key) noexcept;

// ---- Floors and estimates.
// The chance that a foreign byte string has the 64-bit hash of one of n: n · 2^−64.
BLOOMLINE_API double HashFloor(double n) noexcept;
// Distinct keys from the fraction of set bits (0 … 1) of a filter of `blocks` blocks; infinity at 1.
BLOOMLINE_API double EstimateCount(Layout layout, int k, uint64_t blocks, double fill) noexcept;
// The standard error of that estimate when n keys were inserted; infinity where it has none.
BLOOMLINE_API double EstimateCountError(Layout layout, int k, uint64_t blocks, double n) noexcept;
// The relative standard deviation, over random contents, of the fill-exact FPR around the model's.
BLOOMLINE_API double ContentRelativeDeviation(Layout layout, int k, uint64_t blocks, uint64_t n);

// ---- Counting layouts.
// The chance that n distinct keys take any counter beyond its maximum (15 or 255). NaN for other layouts and 0 blocks.
BLOOMLINE_API double CounterOverflowChance(Layout layout, uint64_t blocks, uint64_t n) noexcept;

}  // namespace bloomline
