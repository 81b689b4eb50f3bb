// How many keys a block receives, and means over that number.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace bloomline::detail {

// The law of the number I of keys in one block: Binomial(n, 1 / blocks), or its limit of many blocks, Poisson.
// Everything is derived from the ratio of neighbouring probabilities, which is exact to an ulp for all sizes.
class KeyCounts {
 public:
  // mean ≥ 0, finite.
  static KeyCounts Poisson(double mean) { return KeyCounts(mean, mean, 0.0, false); }
  // n ≥ 0, blocks ≥ 1.
  static KeyCounts Binomial(double n, double blocks) {
    return KeyCounts(n / blocks, n / blocks * (1.0 - 1.0 / blocks), n, true, blocks);
  }

  double mean() const { return mean_; }
  double variance() const { return variance_; }

  // E[rate(I)] for a non-decreasing rate in [0, 1] that is 1 from `certain` on; relative error about 1e-12.
  template <class Rate>
  double Expect(const Rate& rate, uint64_t certain) const {
    // One block holds all keys. And where fewer than `certain` is 12 standard deviations away (exp(−72)), all pass.
    if (binomial_ && blocks_ <= 1.0) return rate(ToCount(n_, certain));
    if (mean_ - 12.0 * std::sqrt(variance_) - 1.0 > static_cast<double>(certain)) return 1.0;

    // Weights relative to the mode; normalised by their own sum, so that no logarithm of a factorial is needed.
    const double mode = std::floor(binomial_ ? (n_ + 1.0) / blocks_ : mean_);
    double sum = rate(static_cast<uint64_t>(mode));
    double total = 1.0;
    double weight = 1.0;
    for (double i = mode;;) {
      weight *= Ratio(i);
      i += 1.0;
      if (!(weight > 0.0)) break;
      total += weight;
      sum += weight * rate(static_cast<uint64_t>(i));
      // The tail is at most geometric, and no rate is above 1.
      const double ratio = Ratio(i);
      if (ratio < 1.0) {
        const double tail = weight * ratio / (1.0 - ratio);
        if (tail <= 1e-17 * total && tail <= 1e-13 * sum) break;
      }
    }
    weight = 1.0;
    for (double i = mode; i > 0.0;) {
      i -= 1.0;
      weight /= Ratio(i);
      total += weight;
      const double here = rate(static_cast<uint64_t>(i));
      sum += weight * here;
      if (i <= 0.0) break;
      const double ratio = 1.0 / Ratio(i - 1.0);
      if (ratio < 1.0) {
        const double tail = weight * ratio / (1.0 - ratio);
        if (tail <= 1e-17 * total && tail * here <= 1e-13 * sum) break;
      }
    }
    return std::min(1.0, sum / total);
  }

 private:
  KeyCounts(double mean, double variance, double n, bool binomial, double blocks = 0.0)
      : mean_(mean), variance_(variance), n_(n), blocks_(blocks), binomial_(binomial) {}

  // P(I = i + 1) / P(I = i).
  double Ratio(double i) const {
    if (binomial_) return std::max(0.0, n_ - i) / ((i + 1.0) * (blocks_ - 1.0));
    return mean_ / (i + 1.0);
  }
  static uint64_t ToCount(double value, uint64_t certain) {
    return value >= static_cast<double>(certain) ? certain : static_cast<uint64_t>(value);
  }

  double mean_;
  double variance_;
  double n_;
  double blocks_;
  bool binomial_;
};

}  // namespace bloomline::detail
