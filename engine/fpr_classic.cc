// The unblocked filter of the textbooks, and the floor that 64-bit hashes set.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "bloomline/fpr_model.h"
#include "engine/out_of_memory.h"

namespace bloomline {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0.69314718055994530942;

// The probes of a foreign key fall on d ≤ k distinct bins; it passes when all of them are occupied after N balls. So
// the state is the number of the probed bins that are still empty: at most k + 1 states, whatever m is, and each ball
// fills one of r with probability r / m. Only non-negative terms: nothing cancels, at any k.
// This gives P(d distinct), index d.
std::vector<double> DistinctProbes(double m, int k) {
  std::vector<double> chance(static_cast<size_t>(k) + 1, 0.0);
  chance[0] = 1.0;
  for (int probe = 0; probe < k; ++probe) {
    for (int d = probe + 1; d > 0; --d) {
      const auto i = static_cast<size_t>(d);
      chance[i] = chance[i] * std::min(1.0, d / m) + chance[i - 1] * std::max(0.0, (m - (d - 1)) / m);
    }
    chance[0] = 0.0;
  }
  return chance;
}

// Ball by ball: N · k multiplications.
double EmptyBinsByStep(std::vector<double> chance, double m, uint64_t balls) {
  const size_t states = chance.size();
  std::vector<double> hit(states + 1, 0.0);
  std::vector<double> miss(states, 0.0);
  for (size_t r = 0; r < states; ++r) {
    hit[r] = std::min(1.0, static_cast<double>(r) / m);
    miss[r] = 1.0 - hit[r];
  }
  chance.push_back(0.0);
  for (uint64_t ball = 0; ball < balls; ++ball) {
    for (size_t r = 0; r < states; ++r) chance[r] = chance[r] * miss[r] + chance[r + 1] * hit[r + 1];
  }
  return chance[0];
}

// The same by repeated squaring of the (lower triangular) transition matrix: k³ log N.
double EmptyBinsBySquaring(std::vector<double> chance, double m, uint64_t balls) {
  const size_t states = chance.size();
  std::vector<double> step(states * states, 0.0);
  for (size_t r = 0; r < states; ++r) {
    const double hit = std::min(1.0, static_cast<double>(r) / m);
    step[r * states + r] = 1.0 - hit;
    if (r > 0) step[r * states + r - 1] = hit;
  }
  std::vector<double> product(states * states, 0.0);
  for (;;) {
    if ((balls & 1) != 0) {
      std::vector<double> after(states, 0.0);
      for (size_t r = 0; r < states; ++r) {
        for (size_t s = 0; s <= r; ++s) after[s] += chance[r] * step[r * states + s];
      }
      chance = after;
    }
    balls >>= 1;
    if (balls == 0) return chance[0];
    std::fill(product.begin(), product.end(), 0.0);
    for (size_t r = 0; r < states; ++r) {
      for (size_t via = 0; via <= r; ++via) {
        const double first = step[r * states + via];
        for (size_t s = 0; s <= via; ++s) product[r * states + s] += first * step[via * states + s];
      }
    }
    step.swap(product);
  }
}

// Large m: ln E[(S/m)^k] by the first two cumulants of ln S; the next are of the order k³/m² and k³/(m·N).
double ByCumulants(double m, int k, double balls) {
  const double x = 1.0 / m;
  const double empty = std::exp(balls * std::log1p(-x));  // P(a bin is empty)
  const double full = -std::expm1(balls * std::log1p(-x));
  const double variance =
      m * (empty * full + (m - 1.0) * empty * empty * std::expm1(balls * std::log1p(-x * x / ((1.0 - x) * (1.0 - x)))));
  const double mean = m * full;
  return std::exp(k * std::log(full) + 0.5 * k * (k - 1.0) * std::max(0.0, variance) / (mean * mean));
}

}  // namespace

double ClassicFpr(double n, double m, int k) noexcept {
  if (std::isnan(n) || std::isnan(m) || k < 1) return kNaN;
  if (n <= 0.0) return 0.0;
  if (m <= 0.0) return 1.0;
  return std::clamp(std::pow(-std::expm1(-k * (n / m)), k), 0.0, 1.0);
}

double ClassicFprExact(uint64_t n, uint64_t m, int k) try {
  if (k < 1) return kNaN;
  if (n == 0) return 0.0;
  if (m <= 1) return 1.0;
  const auto bins = static_cast<double>(m);
  const double balls = static_cast<double>(n) * k;
  // P(some probed bin is empty) ≤ k · exp(−N/m), below the resolution of a double.
  if (balls / bins > 40.0 + std::log(k)) return 1.0;
  const double cube = static_cast<double>(k) * k * k;
  if (cube / bins / bins + cube / bins / balls < 1e-8) return std::min(1.0, ByCumulants(bins, k, balls));
  // From here on m < 5e9 and N < 46 m, so that N is an exact integer.
  const auto count = static_cast<uint64_t>(balls);
  std::vector<double> probes = DistinctProbes(bins, k);
  const bool few = balls * k <= 2e6;
  return std::min(
      1.0, few ? EmptyBinsByStep(std::move(probes), bins, count) : EmptyBinsBySquaring(std::move(probes), bins, count));
} catch (...) {
  detail::ThrowError(detail::CaughtError());
}

double ClassicBits(double n, double fpr) noexcept {
  if (std::isnan(n) || std::isnan(fpr)) return kNaN;
  if (n <= 0.0 || fpr >= 1.0) return 0.0;
  if (fpr <= 0.0) return kInfinity;
  return std::ceil(-n * std::log(fpr) / (kLn2 * kLn2));
}

int ClassicHashCount(double n, double m) noexcept {
  const double k = std::round(m / n * kLn2);
  if (!(k > 1.0)) return 1;  // NaN too
  constexpr int kMost = std::numeric_limits<int>::max();
  return k >= static_cast<double>(kMost) ? kMost : static_cast<int>(k);
}

double HashFloor(double n) noexcept { return std::isnan(n) ? kNaN : std::clamp(std::ldexp(n, -64), 0.0, 1.0); }

}  // namespace bloomline
