// The chance that a foreign key passes a block that holds i keys: F(i), tabulated once per shape of block.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "bloomline/layout.h"
#include "engine/occupancy.h"

namespace bloomline::detail {

// A block as the models see it: a key chooses one word in each zone and throws `balls` balls into the word's bins.
//   sector512z{Z}, k: Z zones of 8/Z words of 64 bins, k/Z balls     line512, k: one zone of one word of 512 bins, k
//   balls split256: 8 zones of one word of 32 bins, 1 ball                 counting4, counting8: the same with 16 and 8
//   bins
struct BlockShape {
  int zones = 1;
  int words = 1;
  int bins = 1;
  int balls = 1;

  int total_bins() const noexcept { return zones * words * bins; }
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

// Only for IsValidHashCount(layout, k).
BlockShape ShapeOf(Layout layout, int k) noexcept;
// One ball into each of 8 sectors of `bins` bins: split256 (32), counting4 (16), counting8 (8).
constexpr BlockShape SplitShape(int bins) noexcept { return {8, 1, bins, 1}; }

// F(0), F(1), F(2) …: non-decreasing, F(0) = 0, exactly 1 from where 1 − F is below the resolution of a double.
template <class Row>
class RateSequence {
 public:
  explicit RateSequence(const BlockShape& shape);
  double Next();
  double last() const noexcept { return last_; }  // what Next returned; 0 at first

 private:
  double NextZoneRate();

  BlockShape shape_;
  Row powers_;
  BasicOccupancyChain<Row> chain_;
  uint64_t next_keys_ = 0;
  double last_ = 0.0;
};

// The table of F: filled as far as asked for, kept for the life of the process. Reading what is filled takes no lock.
class BlockRates {
 public:
  // The table of this shape; made on first use, never destroyed (threads may still read it at exit). Thread-safe.
  // Throws std::bad_alloc, as reading what is not filled yet does; the table is then as it was.
  static const BlockRates& Of(const BlockShape& shape);

  double operator()(uint64_t keys) const {
    if (keys >= kEntries) return 1.0;
    const double* chunk = chunks_[keys / kChunk].load(std::memory_order_acquire);
    if (chunk == nullptr) chunk = Fill(static_cast<size_t>(keys / kChunk));
    return chunk[keys % kChunk];
  }
  // From this many keys on F is 1 for every shape.
  static constexpr uint64_t kEntries = 32768;

  const BlockShape& shape() const noexcept { return shape_; }

 private:
  explicit BlockRates(const BlockShape& shape);
  const double* Fill(size_t chunk) const;

  static constexpr uint64_t kChunk = 64;
  BlockShape shape_;
  mutable std::array<std::atomic<const double*>, kEntries / kChunk> chunks_{};
  // Below: guarded by mutex_.
  mutable std::mutex mutex_;
  mutable size_t filled_ = 0;
  mutable RateSequence<std::vector<double>> sequence_;
  mutable std::vector<std::unique_ptr<double[]>> owned_;
};

// The same without a table and without allocation, for when no memory is left: each value is computed anew, fast as
// long as those that are asked for lie near each other. About 35 KiB.
class RatesWithoutTable {
 public:
  explicit RatesWithoutTable(const BlockShape& shape) : shape_(shape) {}
  double operator()(uint64_t keys);

 private:
  BlockShape shape_;
  std::optional<RateSequence<std::array<double, kMaxBlockBins + 1>>> sequence_;
  uint64_t next_ = 0;
  std::array<double, 1024> kept_;  // F(next_ − 1) and what precedes it, F(i) at i % size
};

}  // namespace bloomline::detail
