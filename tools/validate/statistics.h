// The tests that a cell of `bloomline validate` is judged by.
#pragma once

#include <cstdint>

namespace bloomline::cli::validate {

// P(Z > z) of the standard normal distribution, and the z ≥ 0 that is exceeded with probability 0 < tail ≤ 1/2.
double NormalTail(double z);
double NormalQuantile(double tail);

// P(X ≤ hits) and P(X ≥ hits), X ~ Binomial(trials, p); exact. hits ≤ trials, 0 ≤ p ≤ 1.
double BinomialAtMost(uint64_t hits, uint64_t trials, double p);
double BinomialAtLeast(uint64_t hits, uint64_t trials, double p);

// What a comparison comes to: how likely is it that something that is right deviates as far?
struct Deviation {
  double p = 1;       // two-sided; 1 where nothing is to be judged
  double sigmas = 0;  // the same as a signed number of standard deviations
  bool judged = false;
};

// `hits` of `trials` against the rate `p`.
Deviation CompareBinomial(uint64_t hits, uint64_t trials, double p);

// `value` against `expected` with a standard deviation; `skewness` ≥ 0 is that of `value`'s distribution, whose upper
// tail is then heavier than the normal one (Wilson and Hilferty's transformation of a gamma law). The lower tail is
// judged as if it were normal, which errs on the side of passing.
Deviation CompareNormal(double value, double expected, double deviation, double skewness);

struct Interval {
  double low = 0;
  double high = 1;
};
// Clopper and Pearson's interval of a rate: misses it with probability `error` at most.
Interval ExactInterval(uint64_t hits, uint64_t trials, double error);

}  // namespace bloomline::cli::validate
