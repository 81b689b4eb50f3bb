// Filters at their design load, made when a benchmark first needs them and shared by all that need the same one.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bench/keys.h"
#include "bloomline/bloomline.h"

namespace bloomline::bench {

inline constexpr uint64_t kBitsPerKey = 10;
// Filters above this are dropped for the next one where less than eight times its size is available.
inline constexpr uint64_t kSmallFilterBytes = uint64_t{16} << 20;

struct FilterShape {
  Layout layout = Layout::kSplit512;
  int k = 8;
  uint64_t bytes = 0;
  std::string target;  // canonical
  Pages pages = Pages::kTransparentHuge;
  bool strings = false;
  // The design load: 10 bits, or counters, per key.
  uint64_t keys() const {
    const auto cell_bits = static_cast<uint64_t>(BlockBits(layout) / CellsPerBlock(layout));
    return bytes * 8 / cell_bits / kBitsPerKey;
  }
  friend auto operator<=>(const FilterShape&, const FilterShape&) = default;
};

class Fixture {
 public:
  // Fills the filter and checks it: the FPR over absent keys against the model.
  static Result<std::shared_ptr<Fixture>> Create(const FilterShape& shape);

  const FilterShape& shape() const { return shape_; }
  Filter& filter() { return filter_; }
  CountingFilter& counting() { return counting_; }  // in place of filter() for counting layouts
  const FilterReader& reader() const {
    return IsCounting(shape_.layout) ? static_cast<const FilterReader&>(counting_) : filter_;
  }
  double fpr() const { return fpr_; }
  const std::string& granted_pages() const { return granted_; }
  detail::BlockBits bits();  // for the limits; prefetch off

  // The right answers to a probe set, by the scalar oracle. Checked when made: no member is missing. Thread-safe.
  Result<std::shared_ptr<const std::vector<uint64_t>>> Answers(const ProbeShape& probes);

  // Whether the filter's bits are still those that it was filled with.
  bool Unchanged() const;

 private:
  Fixture(const FilterShape& shape, Filter filter, CountingFilter counting)
      : shape_(shape), filter_(std::move(filter)), counting_(std::move(counting)) {}
  void Fill();

  FilterShape shape_;
  Filter filter_;  // one of the two was moved from
  CountingFilter counting_;
  uint64_t checksum_ = 0;
  double fpr_ = 0;
  std::string granted_;
  std::mutex mutex_;
  std::map<ProbeShape, std::shared_ptr<const std::vector<uint64_t>>> answers_;  // guarded by mutex_
};

// Thread-safe.
Result<std::shared_ptr<Fixture>> GetFixture(const FilterShape& shape);
// The next GetFixture makes the filter anew.
void DropFixture(const FilterShape& shape);

// Available memory in bytes; 0: unknown.
uint64_t AvailableMemory();

}  // namespace bloomline::bench
