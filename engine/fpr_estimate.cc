// What the content tells and how far it scatters: the count estimate, its standard error, and the spread of the
// fill-exact FPR around the model's.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "bloomline/fpr_model.h"
#include "engine/block_rates.h"
#include "engine/fpr_blocked.h"
#include "engine/key_counts.h"
#include "engine/occupancy.h"
#include "engine/out_of_memory.h"

namespace bloomline {
namespace {

using detail::BlockRates;
using detail::BlockShape;
using detail::KeyCounts;
using detail::OccupancyChain;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The chance that one key sets a given bit of the block it falls in.
double BitChance(const BlockShape& shape) {
  return -std::expm1(shape.balls * std::log1p(-1.0 / shape.bins)) / shape.words;
}

// E[r² | i keys in the block], where r is the chance that a foreign key passes the block as it is filled:
// r = Π over zones of the mean over the zone's words of x = (S / bins)^balls. Zones are independent given i; the words
// of one zone share its i keys, so that their product needs the keys of two words: Bin(i, 1/w) and Bin(the rest,
// 1/(w−1)).
class SecondMoments {
 public:
  explicit SecondMoments(const BlockShape& shape)
      : shape_(shape),
        single_(OccupancyChain::Powers(shape.bins, shape.balls)),
        square_(OccupancyChain::Powers(shape.bins, 2 * shape.balls)),
        word_(shape.bins, shape.balls, 1.0 / shape.words),
        all_(shape.bins, shape.balls, 1.0),
        rest_(shape.bins, shape.balls, shape.words > 1 ? 1.0 / (shape.words - 1) : 1.0) {}

  double operator()(uint64_t keys) {
    while (values_.size() <= keys) {
      if (!values_.empty() && values_.back() >= 1.0) return 1.0;
      Append();
    }
    return values_[static_cast<size_t>(keys)];
  }

 private:
  void Append() {
    const size_t i = values_.size();
    if (i > 0) {
      word_.AddKey();
      all_.AddKey();
      rest_.AddKey();
    }
    all_rates_.push_back(all_.Expect(single_));
    rest_rates_.push_back(rest_.Expect(single_));
    const double words = shape_.words;
    double zone = word_.Expect(square_) / words;
    if (shape_.words > 1) zone += Product(i) * (words - 1.0) / words;
    double value = 1.0;
    for (int z = 0; z < shape_.zones; ++z) value *= zone;
    values_.push_back(value > 1.0 - 1e-14 ? 1.0 : value);
  }

  // E[x_a · x_b] of two words of a zone that holds i keys: the mean over Bin(i, 1 / words) of Q(a) · H(i − a).
  double Product(size_t i) const {
    const double odds = 1.0 / (shape_.words - 1.0);
    const auto mode = static_cast<size_t>(static_cast<double>(i + 1) / shape_.words);
    const auto term = [&](size_t a) { return all_rates_[a] * rest_rates_[i - a]; };
    double sum = term(mode);
    double total = 1.0;
    double weight = 1.0;
    for (size_t a = mode; a < i && weight > 1e-20; ++a) {
      weight *= static_cast<double>(i - a) / static_cast<double>(a + 1) * odds;
      total += weight;
      sum += weight * term(a + 1);
    }
    weight = 1.0;
    for (size_t a = mode; a > 0 && weight > 1e-20; --a) {
      weight *= static_cast<double>(a) / (static_cast<double>(i - a + 1) * odds);
      total += weight;
      sum += weight * term(a - 1);
    }
    return sum / total;
  }

  BlockShape shape_;
  std::vector<double> single_;
  std::vector<double> square_;
  OccupancyChain word_;             // each key comes with probability 1 / words
  OccupancyChain all_;              // each key comes
  OccupancyChain rest_;             // each key that did not choose the first word, 1 / (words − 1)
  std::vector<double> all_rates_;   // Q
  std::vector<double> rest_rates_;  // H
  std::vector<double> values_;
};

}  // namespace

// A key leaves a given bit of the filter clear with probability 1 − u/blocks, independently of the other keys: E[fill]
// is exact for any number of blocks, and so is its inverse.
double EstimateCount(Layout layout, int k, uint64_t blocks, double fill) noexcept {
  if (!IsValidHashCount(layout, k) || blocks == 0 || std::isnan(fill)) return kNaN;
  if (fill <= 0.0) return 0.0;
  if (fill >= 1.0) return kInfinity;
  const double chance = BitChance(detail::ShapeOf(layout, k)) / static_cast<double>(blocks);
  return std::log1p(-fill) / std::log1p(-chance);
}

// Delta method. With p = P(a bit is clear) and q_j = P(it and bit j are both clear), both exact n-th powers,
//   Var(fill) = p² / m · Σ_j (q_j / p² − 1)   over all bits j, of which there are five kinds as seen from one bit,
// and |d estimate / d fill| = 1 / (p · |ln(1 − u/blocks)|).
double EstimateCountError(Layout layout, int k, uint64_t blocks, double n) noexcept {
  if (!IsValidHashCount(layout, k) || blocks == 0 || std::isnan(n)) return kNaN;
  if (n <= 0.0) return 0.0;
  const BlockShape shape = detail::ShapeOf(layout, k);
  const auto count = static_cast<double>(blocks);
  const double m = count * shape.total_bins();
  const double u = BitChance(shape);
  const double x = u / count;
  // Fewer than one clear bit is to be expected: most such filters are saturated and have no estimate at all.
  if (!(m * std::exp(n * std::log1p(-x)) >= 1.0)) return kInfinity;

  // `both`: the chance that a key of the block sets both bits. q_j / p² = (1 + (both/blocks − x²) / (1 − x)²)^n.
  const auto excess = [&](double both) {
    return std::expm1(n * std::log1p((both / count - x * x) / ((1.0 - x) * (1.0 - x))));
  };
  const double one = 1.0 - 1.0 / shape.bins;
  const double two = 1.0 - 2.0 / shape.bins;
  const double both_in_word = (1.0 - 2.0 * std::pow(one, shape.balls) + std::pow(two, shape.balls)) / shape.words;
  const double per_zone = static_cast<double>(shape.words) * shape.bins;
  double sum = excess(u);                                 // the bit itself
  sum += (shape.bins - 1.0) * excess(both_in_word);       // its word
  sum += (shape.words - 1.0) * shape.bins * excess(0.0);  // the zone's other words
  sum += (shape.zones - 1.0) * per_zone * excess(u * u);  // the block's other zones
  sum += (m - shape.zones * per_zone) * excess(0.0);      // other blocks
  return std::sqrt(std::max(0.0, sum) / m) / -std::log1p(-x);
}

// The fill-exact FPR is the mean of r over blocks. Given the keys per block, blocks are independent: Var(r | I). The
// numbers of keys sum to n, with correlation −1 / (blocks − 1): what a straight line through F(I) explains cancels, and
// the rest, mostly its square, has correlation 1 / (blocks − 1)². The covariance with I comes from the size-biased law:
// E[I · F(I)] = E[I] · E[F(I' + 1)], I' ~ Binomial(n − 1, 1 / blocks).
double ContentRelativeDeviation(Layout layout, int k, uint64_t blocks, uint64_t n) try {
  if (!IsValidHashCount(layout, k) || blocks == 0) return kNaN;
  if (n == 0) return 0.0;
  const BlockRates& rates = BlockRates::Of(detail::ShapeOf(layout, k));
  const auto count = static_cast<double>(blocks);
  const auto keys = static_cast<double>(n);
  const KeyCounts law = KeyCounts::Binomial(keys, count);
  SecondMoments second(rates.shape());
  const auto square = [&](uint64_t i) { return rates(i) >= 1.0 ? 1.0 : second(i); };
  const double mean = law.Expect(rates, BlockRates::kEntries);
  if (!(mean > 0.0)) return 0.0;
  const double mean_square = law.Expect([&](uint64_t i) { return rates(i) * rates(i); }, BlockRates::kEntries);
  double variance = law.Expect(square, BlockRates::kEntries) - mean_square;
  if (blocks > 1) {
    const KeyCounts others = KeyCounts::Binomial(keys - 1.0, count);
    const double biased = others.Expect([&](uint64_t i) { return rates(i + 1); }, BlockRates::kEntries);
    const double covariance = law.mean() * (biased - mean);
    const double between = mean_square - mean * mean - covariance * covariance / law.variance();
    variance += std::max(0.0, between) * count / (count - 1.0);
  }
  return std::sqrt(std::max(0.0, variance) / count) / mean;
} catch (...) {
  detail::ThrowError(detail::CaughtError());
}

}  // namespace bloomline
