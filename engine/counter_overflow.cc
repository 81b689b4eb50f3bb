// How likely counters are to overflow.
#include <cmath>
#include <cstdint>
#include <limits>

#include "bloomline/fpr_model.h"
#include "kernels/counting_layout.h"

namespace bloomline {

// A counter receives Binomial(n, p) keys, p = 1 / (blocks · counters per word): every key picks one counter in each of
// the eight words of its block. P(X > max) is summed from its largest term up; the counters, which are negatively
// correlated where they share a word and nearly independent elsewhere, are taken as independent (balls into bins; for
// counting Bloom filters: Fan, Cao, Almeida, Broder 2000, who bound the same tail).
double CounterOverflowChance(Layout layout, uint64_t blocks, uint64_t n) noexcept {
  if (!IsCounting(layout) || blocks == 0) return std::numeric_limits<double>::quiet_NaN();
  const auto max = static_cast<double>(kernels::CounterMax(kernels::CounterBits(layout)));
  const auto keys = static_cast<double>(n);
  if (keys <= max) return 0;
  const double counters = static_cast<double>(blocks) * CellsPerBlock(layout);
  const double p = 8.0 / counters;
  const double mean = keys * p;
  if (mean >= max + 1) return 1;  // every second counter, and there are at least eight of each kind
  const double first = max + 1;
  // C(n, first) as a product of ratios: a difference of two log-gammas would be noise at 2^40 keys, and lgamma is not
  // thread-safe.
  double log_choices = 0;
  for (double i = 0; i < first; ++i) log_choices += std::log((keys - i) / (first - i));
  double term = std::exp(log_choices + first * std::log(p) + (keys - first) * std::log1p(-p));
  double tail = 0;
  for (auto i = static_cast<uint64_t>(first); i <= n && term > tail * 1e-17; ++i) {
    tail += term;
    const auto count = static_cast<double>(i);
    term *= (keys - count) / (count + 1) * p / (1 - p);
  }
  return tail >= 1 ? 1.0 : -std::expm1(counters * std::log1p(-tail));
}

}  // namespace bloomline
