// The inverses of the models: FPR falls as blocks are added (I shrinks stochastically and F is non-decreasing), so that
// a bracket and bisection find the exact answer.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "bloomline/fpr_model.h"
#include "engine/fpr_blocked.h"
#include "engine/out_of_memory.h"

namespace bloomline {
namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMaxBitsPerKey = 1048576.0;
}  // namespace

namespace detail {

uint64_t FewestBlocks(const BlockRates& rates, uint64_t max_blocks, uint64_t n, double fpr) {
  if (!(fpr > 0.0)) return 0;
  if (fpr >= 1.0 || n == 0) return 1;
  const auto meets = [&](uint64_t blocks) { return FprOfBlocks(rates, blocks, n) <= fpr; };

  // Start at the unblocked filter with this k, which is a little too small, and widen by factors 1.06, 1.06², 1.06⁴ …
  const int k = rates.shape().zones * rates.shape().balls;
  const double bits = -k * static_cast<double>(n) / std::log1p(-std::pow(fpr, 1.0 / k));
  const double guess = bits / rates.shape().total_bins();
  uint64_t fails = 0;
  uint64_t enough = max_blocks;
  if (guess < static_cast<double>(max_blocks)) enough = std::max<uint64_t>(1, static_cast<uint64_t>(guess));
  double factor = 1.06;
  const bool down = meets(enough);
  for (;; factor *= factor) {
    const double next = static_cast<double>(enough) * (down ? 1.0 / factor : factor);
    if (down) {
      const auto fewer = std::min(enough - 1, static_cast<uint64_t>(next));
      if (fewer == 0) break;
      if (!meets(fewer)) {
        fails = fewer;
        break;
      }
      enough = fewer;
    } else {
      fails = enough;
      if (fails == max_blocks) return 0;
      enough = next >= static_cast<double>(max_blocks) ? max_blocks : std::max(enough + 1, static_cast<uint64_t>(next));
      if (meets(enough)) break;
    }
  }
  while (enough - fails > 1) {
    const uint64_t middle = fails + (enough - fails) / 2;
    (meets(middle) ? enough : fails) = middle;
  }
  return enough;
}

}  // namespace detail

uint64_t BlocksForFpr(Layout layout, int k, uint64_t n, double fpr) {
  if (!IsValidHashCount(layout, k)) return 0;
  return detail::OrThrowError([&] {
    const detail::BlockRates& rates = detail::BlockRates::Of(detail::ShapeOf(layout, k));
    return detail::FewestBlocks(rates, detail::MaxBlocks(layout), n, fpr);
  });
}

namespace {
double BitsPerKey(const detail::BlockRates& rates, Layout layout, double fpr) {
  const auto meets = [&](double bits_per_key) {
    return detail::FprAtLoad(rates, CellsPerBlock(layout) / bits_per_key) <= fpr;
  };
  double enough = 8.0;
  double fails = 8.0;
  if (meets(enough)) {
    do {
      enough = fails;
      fails /= 2.0;
    } while (meets(fails));
  } else {
    do {
      if (enough >= kMaxBitsPerKey) return kInfinity;
      fails = enough;
      enough *= 2.0;
    } while (!meets(enough));
  }
  while (enough - fails > 1e-12 * enough) {
    const double middle = fails + (enough - fails) / 2.0;
    (meets(middle) ? enough : fails) = middle;
  }
  return enough;
}
}  // namespace

double BitsPerKeyForFpr(Layout layout, int k, double fpr) {
  if (!IsValidHashCount(layout, k) || std::isnan(fpr)) return kNaN;
  if (fpr <= 0.0) return kInfinity;
  if (fpr >= 1.0) return 0.0;
  return detail::OrThrowError(
      [&] { return BitsPerKey(detail::BlockRates::Of(detail::ShapeOf(layout, k)), layout, fpr); });
}

int BestHashCount(Layout layout, double bits_per_key) noexcept {
  int best = 0;
  double lowest = kInfinity;
  for (int k = kMinHashes; k <= kMaxHashes; ++k) {
    if (!IsValidHashCount(layout, k)) continue;
    const double fpr = PredictedFprAt(layout, k, bits_per_key);
    if (best == 0 || fpr < lowest) {
      best = k;
      lowest = fpr;
    }
  }
  return best;
}

}  // namespace bloomline
