// The layouts by name: which bits of which cache line belong to a key. Drawn in kernels/layout.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bloomline/error.h"
#include "bloomline/export.h"

namespace bloomline {

// The numbers are part of the snapshot format.
enum class Layout : uint8_t {
  kAuto = 0,         // chosen from the number of keys and the target FPR
  kSector512z1 = 1,  // all k bits in one 64-bit word of the line
  kSector512z2 = 2,  // k/2 bits in one word of each half line
  kSector512z4 = 3,  // k/4 bits in one word of each quarter line
  kSector512z8 = 4,  // k/8 bits in each of the line's 8 words
  kLine512 = 5,      // k bits anywhere in the line
  kSplit256 = 6,     // the split block of Apache Parquet: one bit in each of 8 32-bit lanes; k = 8
  kCounting4 = 7,    // split512 with a 4-bit counter in place of 4 neighbouring bits; k = 8 (CountingFilter)
  kCounting8 = 8,    // with an 8-bit counter in place of 8

  kWord64 = kSector512z1,    // the name under which z1 is printed
  kSplit512 = kSector512z8,  // z8 with k = 8
};

inline constexpr int kMinHashes = 1;
inline constexpr int kMaxHashes = 16;

// A layout with its k, e.g. {kSector512z2, 6}. Written "sector512z2", k = 6.
struct LayoutChoice {
  Layout layout = Layout::kAuto;
  int k = 0;  // bits per key, 1 … 16; 0: the best for the size asked for
  friend bool operator==(const LayoutChoice&, const LayoutChoice&) = default;
};

// Whether a layout holds counters, not bits: for CountingFilter, never for Filter.
constexpr bool IsCounting(Layout layout) noexcept {
  return layout == Layout::kCounting4 || layout == Layout::kCounting8;
}

// Whether `k` fits `layout`: the number of zones divides it, it is 1 … 16; split256 and the counting layouts have 8.
BLOOMLINE_API bool IsValidHashCount(Layout layout, int k) noexcept;

// The zones of a line: 1, 2, 4 or 8 for the sector layouts, 1 for line512, 8 for split256 and the counting layouts.
BLOOMLINE_API int ZonesOf(Layout layout) noexcept;

// Bits of the unit that one key touches: 512, and 256 for split256.
BLOOMLINE_API int BlockBits(Layout layout) noexcept;

// What the models count per block: its bits, or its counters (128 for counting4, 64 for counting8).
BLOOMLINE_API int CellsPerBlock(Layout layout) noexcept;

// "word64", "sector512z2", "sector512z4", "split512" (z8, k = 8), "sector512z8" (z8, k = 16), "line512", "split256",
// "counting4", "counting8".
BLOOMLINE_API std::string LayoutName(Layout layout, int k);

// As LayoutName with k appended where the name leaves it open: "word64k5", "sector512z2k6", "line512k7", "split512".
BLOOMLINE_API std::string LayoutNameWithK(Layout layout, int k);

// Reads a name as printed by LayoutName or LayoutNameWithK, "sector512z1" or "auto"; k = 0 where the name leaves it
// open.
BLOOMLINE_API Result<LayoutChoice> TryParseLayout(std::string_view name);

}  // namespace bloomline
