#include "engine/block_rates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace bloomline::detail {

BlockShape ShapeOf(Layout layout, int k) noexcept {
  switch (layout) {
    case Layout::kLine512:
      return {1, 1, 512, k};
    case Layout::kSplit256:
      return SplitShape(32);
    case Layout::kCounting4:
      return SplitShape(16);
    case Layout::kCounting8:
      return SplitShape(8);
    default:
      break;
  }
  const int zones = ZonesOf(layout);
  return {zones, 8 / zones, 64, k / zones};
}

const BlockRates& BlockRates::Of(const BlockShape& shape) {
  using Key = std::tuple<int, int, int, int>;
  static auto* mutex = new std::mutex;
  static auto* tables = new std::map<Key, std::unique_ptr<BlockRates>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  std::unique_ptr<BlockRates>& table = (*tables)[Key(shape.zones, shape.words, shape.bins, shape.balls)];
  if (table == nullptr) table.reset(new BlockRates(shape));
  return *table;
}

BlockRates::BlockRates(const BlockShape& shape) : shape_(shape), sequence_(shape) {
  owned_.reserve(chunks_.size());  // what Fill puts there is in use already
}

const double* BlockRates::Fill(size_t chunk) const {
  // What every table shares from saturation on.
  static constexpr std::array<double, kChunk> kOnes = [] {
    std::array<double, kChunk> ones{};
    ones.fill(1.0);
    return ones;
  }();
  const std::lock_guard<std::mutex> lock(mutex_);
  while (filled_ <= chunk) {
    if (sequence_.last() >= 1.0) {
      for (; filled_ < chunks_.size(); ++filled_) chunks_[filled_].store(kOnes.data(), std::memory_order_release);
      break;
    }
    auto values = std::make_unique<double[]>(kChunk);
    for (size_t i = 0; i < kChunk; ++i) values[i] = sequence_.Next();
    chunks_[filled_++].store(values.get(), std::memory_order_release);
    owned_.push_back(std::move(values));
  }
  return chunks_[chunk].load(std::memory_order_relaxed);
}

template <class Row>
RateSequence<Row>::RateSequence(const BlockShape& shape)
    : shape_(shape),
      powers_(BasicOccupancyChain<Row>::Powers(shape.bins, shape.balls)),
      chain_(shape.bins, shape.balls, 1.0 / shape.words) {}

template <class Row>
double RateSequence<Row>::Next() {
  if (last_ < 1.0) {
    const double zone = NextZoneRate();
    double rate = 1.0;
    for (int z = 0; z < shape_.zones; ++z) rate *= zone;
    // Rounding must not make F fall, nor creep about just below 1 for ever.
    last_ = rate > 1.0 - 4e-16 ? 1.0 : std::max(last_, rate);
  }
  return last_;
}

// The chance that a foreign key passes one zone: the word that it chooses is any of the zone's, and each key before it
// chose the same one with probability 1 / words. Given the number of keys in the block, zones are independent.
template <class Row>
double RateSequence<Row>::NextZoneRate() {
  const auto keys = static_cast<double>(next_keys_++);
  if (shape_.balls == 1) return -std::expm1(keys * std::log1p(-1.0 / (shape_.words * shape_.bins)));
  if (next_keys_ > 1) chain_.AddKey();
  return chain_.Expect(powers_);
}

template class RateSequence<std::vector<double>>;
template class RateSequence<std::array<double, kMaxBlockBins + 1>>;

double RatesWithoutTable::operator()(uint64_t keys) {
  if (keys >= BlockRates::kEntries) return 1.0;
  if (!sequence_ || keys + kept_.size() < next_) {
    sequence_.emplace(shape_);
    next_ = 0;
  }
  while (next_ <= keys) kept_[next_++ % kept_.size()] = sequence_->Next();
  return kept_[keys % kept_.size()];
}

}  // namespace bloomline::detail
