// The occupancy of a small array of bins, on which all models of blocked filters rest.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace bloomline::detail {

// The distribution of the number S of occupied bins, as keys arrive one by one: each key comes here with probability
// `rate` (it may choose another word instead) and then throws `balls` balls into the bins, independently.
// All terms are non-negative sums of products, so that the relative error is a few ulp per key.
// Row: holds a number for each of the bins + 1 states.
template <class Row>
class BasicOccupancyChain {
 public:
  BasicOccupancyChain(int bins, int balls, double rate);

  void AddKey();
  // Σ P(S = s) · weights[s], weights[0 … bins].
  double Expect(std::span<const double> weights) const;
  // The table s ↦ (s / bins)^power for Expect.
  static Row Powers(int bins, int power);

 private:
  void ThrowBall();
  void Trim();

  int bins_;
  int balls_;
  double rate_;
  // States low_ … high_ are carried; the mass outside is below 1e-37 and dropped.
  int low_ = 0;
  int high_ = 0;
  Row now_;
  Row next_;
  Row before_;
  Row stay_;  // s / bins: the ball falls on an occupied bin
  Row grow_;  // 1 − (s − 1) / bins: the step from s − 1 to s
};

// Any number of bins.
using OccupancyChain = BasicOccupancyChain<std::vector<double>>;
// Up to the 512 bins of a block, in memory of its own: for functions that must not allocate.
inline constexpr size_t kMaxBlockBins = 512;
using FixedOccupancyChain = BasicOccupancyChain<std::array<double, kMaxBlockBins + 1>>;

}  // namespace bloomline::detail
