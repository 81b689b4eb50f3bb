// FPR of the blocked layouts: the mean of F(I) over the number I of keys in the block that is asked.
#include "engine/fpr_blocked.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <new>

#include "bloomline/fpr_model.h"
#include "engine/key_counts.h"

namespace bloomline {
namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
}  // namespace

namespace detail {

namespace {

template <class Rates>
double Poisson(const Rates& rates, double keys_per_block) {
  if (!(keys_per_block >= 0.0)) return kNaN;
  if (keys_per_block == 0.0) return 0.0;
  if (std::isinf(keys_per_block)) return 1.0;
  return KeyCounts::Poisson(keys_per_block).Expect(rates, BlockRates::kEntries);
}

template <class Rates>
double Binomial(const Rates& rates, uint64_t blocks, uint64_t n) {
  if (blocks == 0) return 1.0;
  if (n == 0) return 0.0;
  return KeyCounts::Binomial(static_cast<double>(n), static_cast<double>(blocks)).Expect(rates, BlockRates::kEntries);
}

// body(rates) with the table of this shape or, where there is no memory for it, without.
template <class Body>
double WithRates(const BlockShape& shape, const Body& body) noexcept {
  try {
    return body(BlockRates::Of(shape));
  } catch (const std::bad_alloc&) {
    RatesWithoutTable rates(shape);
    return body([&](uint64_t keys) { return rates(keys); });
  }
}

}  // namespace

double FprAtLoad(const BlockRates& rates, double keys_per_block) { return Poisson(rates, keys_per_block); }

double FprOfBlocks(const BlockRates& rates, uint64_t blocks, uint64_t n) { return Binomial(rates, blocks, n); }

uint64_t MaxBlocks(Layout layout) noexcept {
  return layout == Layout::kSplit256 ? uint64_t{1} << 26 : (uint64_t{1} << 32) - 1;
}

}  // namespace detail

double PredictedFprAt(Layout layout, int k, double per_key) noexcept {
  if (!IsValidHashCount(layout, k) || std::isnan(per_key)) return kNaN;
  if (per_key <= 0.0) return 1.0;
  return detail::WithRates(detail::ShapeOf(layout, k),
                           [&](const auto& rates) { return detail::Poisson(rates, CellsPerBlock(layout) / per_key); });
}

double PredictedFpr(Layout layout, int k, uint64_t blocks, uint64_t n) noexcept {
  if (!IsValidHashCount(layout, k)) return kNaN;
  return detail::WithRates(detail::ShapeOf(layout, k),
                           [&](const auto& rates) { return detail::Binomial(rates, blocks, n); });
}

}  // namespace bloomline
