// The occupancy of a small array of bins, on which all models of blocked filters rest.
#pragma once

#include <vector>

namespace bloomline::detail {

// The distribution of the number S of occupied bins, as keys arrive one by one: each key comes here with probability
// `rate` (it may choose another word instead) and then throws `balls` balls into the bins, independently.
// All terms are non-negative sums of products, so that the relative error is a few ulp per key.
class OccupancyChain {
 public:
  OccupancyChain(int bins, int balls, double rate);

  void AddKey();
  // Σ P(S = s) · weights[s], weights[0 … bins].
  double Expect(const std::vector<double>& weights) const;
  // The table s ↦ (s / bins)^power for Expect.
  static std::vector<double> Powers(int bins, int power);

 private:
  void ThrowBall();
  void Trim();

  int bins_;
  int balls_;
  double rate_;
  // States low_ … high_ are carried; the mass outside is below 1e-37 and dropped.
  int low_ = 0;
  int high_ = 0;
  std::vector<double> now_;
  std::vector<double> next_;
  std::vector<double> before_;
  std::vector<double> stay_;  // s / bins: the ball falls on an occupied bin
  std::vector<double> grow_;  // 1 − (s − 1) / bins: the step from s − 1 to s
};

}  // namespace bloomline::detail
