#include "engine/occupancy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace bloomline::detail {
namespace {
// Far below the smallest FPR that any layout gives a block with one key (line512, k = 16: 1e-24).
constexpr double kNegligible = 1e-40;

std::vector<double> MakeRow(size_t states, std::vector<double>*) { return std::vector<double>(states, 0.0); }
template <size_t kSize>
std::array<double, kSize> MakeRow(size_t, std::array<double, kSize>*) {
  return {};
}
template <class Row>
Row MakeRow(size_t states) {
  return MakeRow(states, static_cast<Row*>(nullptr));
}
}  // namespace

template <class Row>
BasicOccupancyChain<Row>::BasicOccupancyChain(int bins, int balls, double rate)
    : bins_(bins),
      balls_(balls),
      rate_(rate),
      now_(MakeRow<Row>(static_cast<size_t>(bins) + 1)),
      next_(now_),
      before_(now_),
      stay_(now_),
      grow_(now_) {
  for (int s = 0; s <= bins; ++s) {
    stay_[static_cast<size_t>(s)] = static_cast<double>(s) / bins;
    grow_[static_cast<size_t>(s)] = static_cast<double>(bins - s + 1) / bins;
  }
  now_[0] = 1.0;
}

template <class Row>
void BasicOccupancyChain<Row>::AddKey() {
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

template <class Row>
void BasicOccupancyChain<Row>::ThrowBall() {
  const auto low = static_cast<size_t>(low_);
  if (high_ < bins_) now_[static_cast<size_t>(++high_)] = 0.0;
  const auto high = static_cast<size_t>(high_);
  next_[low] = now_[low] * stay_[low];
  for (size_t s = low + 1; s <= high; ++s) next_[s] = now_[s] * stay_[s] + now_[s - 1] * grow_[s];
  std::swap(now_, next_);
}

template <class Row>
void BasicOccupancyChain<Row>::Trim() {
  while (low_ < high_ && now_[static_cast<size_t>(low_)] < kNegligible) now_[static_cast<size_t>(low_++)] = 0.0;
  while (high_ > low_ && now_[static_cast<size_t>(high_)] < kNegligible) now_[static_cast<size_t>(high_--)] = 0.0;
}

template <class Row>
double BasicOccupancyChain<Row>::Expect(std::span<const double> weights) const {
  double sum = 0.0;
  for (auto s = static_cast<size_t>(low_); s <= static_cast<size_t>(high_); ++s) sum += now_[s] * weights[s];
  return sum;
}

template <class Row>
Row BasicOccupancyChain<Row>::Powers(int bins, int power) {
  Row powers = MakeRow<Row>(static_cast<size_t>(bins) + 1);
  for (int s = 0; s <= bins; ++s) powers[static_cast<size_t>(s)] = std::pow(static_cast<double>(s) / bins, power);
  return powers;
}

template class BasicOccupancyChain<std::vector<double>>;
template class BasicOccupancyChain<std::array<double, kMaxBlockBins + 1>>;

}  // namespace bloomline::detail
