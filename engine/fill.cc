#include "engine/fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

namespace bloomline::detail {
namespace {

// (i / size)^power for i = 0 … size: the chance that `power` random bits of `size` all fall on i set ones.
// On the stack: fills are measured by noexcept functions.
using PassTableOf = std::array<double, 513>;
PassTableOf PassTable(int size, int power) {
  PassTableOf table{};
  for (int i = 0; i <= size; ++i) table[static_cast<size_t>(i)] = std::pow(static_cast<double>(i) / size, power);
  return table;
}

size_t PopCount(uint64_t word) { return static_cast<size_t>(std::popcount(word)); }

}  // namespace

namespace {
// Bits per cell: 1, or those of a counter.
int CellBits(Layout layout) { return BlockBits(layout) / CellsPerBlock(layout); }

// One bit per cell of the word that is set.
uint64_t SetCells(int cell_bits, uint64_t word) { return cell_bits == 1 ? word : CountersAboveZero(cell_bits, word); }
}  // namespace

double FractionSet(Layout layout, std::span<const uint64_t> words) {
  const int cell_bits = CellBits(layout);
  uint64_t set = 0;
  for (const uint64_t word : words) set += PopCount(SetCells(cell_bits, word));
  return static_cast<double>(set) * cell_bits / (static_cast<double>(words.size()) * 64);
}

bool AllSet(Layout layout, std::span<const uint64_t> words) {
  const int cell_bits = CellBits(layout);
  const uint64_t all = cell_bits == 1 ? ~uint64_t{0} : CounterLowBits(cell_bits);
  return std::all_of(words.begin(), words.end(), [&](uint64_t word) { return SetCells(cell_bits, word) == all; });
}

Fill MeasureFill(Layout layout, int k, std::span<const uint64_t> words) {
  Fill fill;
  if (words.empty()) return fill;
  double sum = 0;
  size_t blocks = 0;
  if (layout == Layout::kLine512) {
    const PassTableOf pass = PassTable(512, k);
    for (size_t i = 0; i < words.size(); i += 8, ++blocks) {
      size_t set = 0;
      for (size_t w = 0; w < 8; ++w) set += PopCount(words[i + w]);
      fill.set += set;
      sum += pass[set];
    }
  } else if (layout == Layout::kSplit256) {
    const PassTableOf pass = PassTable(32, 1);
    for (size_t i = 0; i < words.size(); i += 4, ++blocks) {
      double chance = 1;
      for (size_t w = 0; w < 4; ++w) {
        const size_t low = PopCount(words[i + w] & 0xffffffff);
        const size_t high = PopCount(words[i + w] >> 32);
        fill.set += low + high;
        chance *= pass[low] * pass[high];
      }
      sum += chance;
    }
  } else if (IsCounting(layout)) {
    const int cell_bits = CellBits(layout);
    const PassTableOf pass = PassTable(64 / cell_bits, 1);
    for (size_t i = 0; i < words.size(); i += 8, ++blocks) {
      double chance = 1;
      for (size_t w = 0; w < 8; ++w) {
        const size_t set = PopCount(CountersAboveZero(cell_bits, words[i + w]));
        fill.set += set;
        chance *= pass[set];
      }
      sum += chance;
    }
  } else {
    const auto zones = static_cast<size_t>(ZonesOf(layout));
    const size_t words_per_zone = 8 / zones;
    const PassTableOf pass = PassTable(64, k / static_cast<int>(zones));
    for (size_t i = 0; i < words.size(); i += 8, ++blocks) {
      double chance = 1;
      for (size_t zone = 0; zone < zones; ++zone) {
        double zone_sum = 0;
        for (size_t w = 0; w < words_per_zone; ++w) {
          const size_t set = PopCount(words[i + zone * words_per_zone + w]);
          fill.set += set;
          zone_sum += pass[set];
        }
        chance *= zone_sum / static_cast<double>(words_per_zone);
      }
      sum += chance;
    }
  }
  const uint64_t cells = uint64_t{words.size()} * 64 / static_cast<uint64_t>(CellBits(layout));
  fill.fraction = static_cast<double>(fill.set) / static_cast<double>(cells);
  fill.fpr = sum / static_cast<double>(blocks);
  fill.saturated = fill.set == cells;
  return fill;
}

}  // namespace bloomline::detail
