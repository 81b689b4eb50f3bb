#include "engine/occupancy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace bloomline::detail {
namespace {
// Far below the smallest FPR that any layout gives a block with one key (line512, k = 16: 1e-24).
constexpr double kNegligible = 1e-40;
}  // namespace

OccupancyChain::OccupancyChain(int bins, int balls, double rate) : bins_(bins), balls_(balls), rate_(rate) {
  const auto states = static_cast<size_t>(bins) + 1;
  now_.assign(states, 0.0);
  next_.assign(states, 0.0);
  stay_.resize(states);
  grow_.resize(states);
  for (int s = 0; s <= bins; ++s) {
    stay_[static_cast<size_t>(s)] = static_cast<double>(s) / bins;
    grow_[static_cast<size_t>(s)] = static_cast<double>(bins - s + 1) / bins;
  }
  now_[0] = 1.0;
}

void OccupancyChain::AddKey() {
  if (rate_ < 1.0) before_ = now_;
  const int high_before = high_;
  for (int ball = 0; ball < balls_; ++ball) ThrowBall();
  if (rate_ < 1.0) {
    for (int s = low_; s <= high_; ++s) {
      const auto i = static_cast<size_t>(s);
      now_[i] = rate_ * now_[i] + (s <= high_before ? (1.0 - rate_) * before_[i] : 0.0);
    }
  }
  Trim();
}

void OccupancyChain::ThrowBall() {
  const auto low = static_cast<size_t>(low_);
  if (high_ < bins_) now_[static_cast<size_t>(++high_)] = 0.0;
  const auto high = static_cast<size_t>(high_);
  next_[low] = now_[low] * stay_[low];
  for (size_t s = low + 1; s <= high; ++s) next_[s] = now_[s] * stay_[s] + now_[s - 1] * grow_[s];
  std::swap(now_, next_);
}

void OccupancyChain::Trim() {
  while (low_ < high_ && now_[static_cast<size_t>(low_)] < kNegligible) now_[static_cast<size_t>(low_++)] = 0.0;
  while (high_ > low_ && now_[static_cast<size_t>(high_)] < kNegligible) now_[static_cast<size_t>(high_--)] = 0.0;
}

double OccupancyChain::Expect(const std::vector<double>& weights) const {
  double sum = 0.0;
  for (auto s = static_cast<size_t>(low_); s <= static_cast<size_t>(high_); ++s) sum += now_[s] * weights[s];
  return sum;
}

std::vector<double> OccupancyChain::Powers(int bins, int power) {
  std::vector<double> powers(static_cast<size_t>(bins) + 1);
  for (int s = 0; s <= bins; ++s) powers[static_cast<size_t>(s)] = std::pow(static_cast<double>(s) / bins, power);
  return powers;
}

}  // namespace bloomline::detail
