#include "tools/validate/statistics.h"

#include <math.h>  // lgamma_r: std::lgamma writes a global variable, and cells are judged in several threads

#include <algorithm>
#include <cmath>
#include <limits>

namespace bloomline::cli::validate {
namespace {

double LogGamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// The regularised incomplete beta function I_x(a, b), a, b > 0: its continued fraction by Lentz's method, which
// converges in some sqrt(max(a, b)) steps where x is below the mean; the other side follows by symmetry.
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kSteps = 2'000'000;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int m = 1; m < kSteps; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    result *= d * c;
    if (std::abs(d * c - 1) < 1e-13) break;
  }
  return result;
}

double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(LogGamma(a + b) - LogGamma(a) - LogGamma(b) + a * std::log(x) + b * std::log1p(-x));
  const double value =
      x < (a + 1) / (a + b + 2) ? front * BetaFraction(a, b, x) / a : 1 - front * BetaFraction(b, a, 1 - x) / b;
  return std::clamp(value, 0.0, 1.0);
}

// Bisection for where a falling function of the rate crosses `level`.
template <class Function>
double Crossing(double low, double high, double level, Function falling) {
  for (int step = 0; step < 60 && high - low > 1e-7 * high; ++step) {
    const double middle = (low + high) / 2;
    (falling(middle) > level ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double NormalTail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

double NormalQuantile(double tail) {
  double low = 0;
  double high = 39;  // the tail beyond is no double any more
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (NormalTail(middle) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

double BinomialAtLeast(uint64_t hits, uint64_t trials, double p) {
  if (hits == 0) return 1;
  return IncompleteBeta(static_cast<double>(hits), static_cast<double>(trials - hits) + 1, p);
}

double BinomialAtMost(uint64_t hits, uint64_t trials, double p) {
  if (hits >= trials) return 1;
  if (p >= 1) return 0;
  // Not 1 − P(X ≥ hits + 1), which loses small tails. 1 − p loses nothing that matters here: p ≥ 2^-53 · trials.
  return IncompleteBeta(static_cast<double>(trials - hits), static_cast<double>(hits) + 1, 1 - p);
}

Deviation CompareBinomial(uint64_t hits, uint64_t trials, double p) {
  Deviation result;
  if (trials == 0 || !(p >= 0 && p <= 1)) return result;
  result.judged = true;
  const double at_most = BinomialAtMost(hits, trials, p);
  const double at_least = BinomialAtLeast(hits, trials, p);
  const double tail = std::min({at_most, at_least, 0.5});
  const double sign = at_least < at_most ? 1 : -1;
  result.p = 2 * tail;
  if (tail > 1e-300) {
    result.sigmas = sign * NormalQuantile(tail);
  } else {
    const auto n = static_cast<double>(trials);
    const double spread = std::sqrt(n * p * (1 - p));
    const double distance = static_cast<double>(hits) - n * p;
    result.sigmas = spread > 0 ? distance / spread : std::copysign(std::numeric_limits<double>::infinity(), distance);
  }
  return result;
}

Deviation CompareNormal(double value, double expected, double deviation, double skewness) {
  Deviation result;
  if (!std::isfinite(value) || !std::isfinite(expected) || !std::isfinite(deviation)) return result;
  result.judged = true;
  if (!(deviation > 1e-12 * std::abs(expected))) {  // one value is possible
    const bool equal = std::abs(value - expected) <= 1e-6 * std::abs(expected);
    result.p = equal ? 1 : 0;
    result.sigmas = equal ? 0 : std::copysign(std::numeric_limits<double>::infinity(), value - expected);
    return result;
  }
  double z = (value - expected) / deviation;
  if (z > 0 && skewness > 1e-6) {
    z = std::max(0.0, 6 / skewness * (std::cbrt(1 + skewness * z / 2) - 1) + skewness / 6);
  }
  result.sigmas = z;
  result.p = 2 * NormalTail(std::abs(z));
  return result;
}

Interval ExactInterval(uint64_t hits, uint64_t trials, double error) {
  if (trials == 0) return {0, 1};
  const double tail = error / 2;
  const double rate = static_cast<double>(hits) / static_cast<double>(trials);
  // Brackets well beyond both ends: the bound of a normal law at twice the distance.
  const double z = NormalQuantile(tail);
  const double reach = (2 * z * std::sqrt(static_cast<double>(hits) + 1) + z * z) / static_cast<double>(trials);
  Interval interval;
  interval.low = hits == 0 ? 0 : Crossing(std::max(0.0, rate - reach), rate, -tail, [&](double p) {
    return -BinomialAtLeast(hits, trials, p);
  });
  interval.high = hits >= trials ? 1 : Crossing(rate, std::min(1.0, rate + reach), tail, [&](double p) {
    return BinomialAtMost(hits, trials, p);
  });
  return interval;
}

}  // namespace bloomline::cli::validate
