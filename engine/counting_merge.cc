// CountingFilter as a whole: cleared, merged, cloned, expanded to bits.
#include <algorithm>
#include <new>
#include <utility>

#include "bloomline/counting_filter.h"
#include "engine/fill.h"
#include "engine/out_of_memory.h"
#include "engine/same_shape.h"
#include "engine/snapshot_header.h"
#include "engine/spill_table.h"
#include "engine/storage.h"
#include "kernels/counting_layout.h"

namespace bloomline {
namespace {

// The counters of two words added, in lanes of twice their width: a sum is at most 30 (510), so that bit 4 (8) of its
// lane says whether it is beyond the maximum.
struct WordSum {
  uint64_t even;  // the counters at even places, each at the low end of its lane
  uint64_t odd;

  static constexpr uint64_t Lanes(int bits) { return bits == 4 ? 0x0f0f0f0f0f0f0f0f : 0x00ff00ff00ff00ff; }

  constexpr WordSum(int bits, uint64_t a, uint64_t b)
      : even((a & Lanes(bits)) + (b & Lanes(bits))), odd(((a >> bits) & Lanes(bits)) + ((b >> bits) & Lanes(bits))) {}

  constexpr bool Overflows(int bits) const { return ((even | odd) & ~Lanes(bits)) != 0; }
  static constexpr uint64_t Saturated(int bits, uint64_t sums) {
    const uint64_t beyond = sums & ~Lanes(bits);
    return (sums | (beyond - (beyond >> bits))) & Lanes(bits);
  }
  constexpr uint64_t Saturated(int bits) const { return Saturated(bits, even) | Saturated(bits, odd) << bits; }
};

// Adds to `table` what is beyond the maximum in a + b, the word at `index`. False: out of memory.
bool SpillBeyond(int bits, uint64_t a, uint64_t b, size_t index, detail::SpillTable& table) {
  const uint64_t max = kernels::CounterMax(bits);
  const auto per_word = static_cast<size_t>(64 / bits);
  for (size_t i = 0; i < per_word; ++i) {
    const size_t shift = i * static_cast<size_t>(bits);
    const uint64_t sum = ((a >> shift) & max) + ((b >> shift) & max);
    if (sum > max && !table.Add(index * per_word + i, sum - max)) return false;
  }
  return true;
}

// Snapshots hold at most kMaxCount spilled keys; half of that leaves room for adds.
constexpr uint64_t kMaxMergedSpill = detail::kMaxCount / 2;

Error TooManySpilled() {
  return Error(ErrorCode::kMismatch, "the filters cannot be merged: more than " + std::to_string(kMaxMergedSpill) +
                                         " counts would be beyond the counters' maximum");
}

Error NoMemory() { return Error(ErrorCode::kOutOfMemory, "no memory for the spilled counters of the merged filter"); }

}  // namespace

void CountingFilter::Clear() noexcept {
  // Words that are 0 are left alone: lazy memory stays as sparse as it is.
  for (uint64_t& word : std::span(bits_.words, words().size())) {
    if (word != 0) word = 0;
  }
  CopyToReplicas();
  if (spill_ != nullptr) spill_->Clear();
  inserted_ = 0;
}

Status CountingFilter::TryMerge(const CountingFilter& other) try {
  if (Status same = detail::RequireSameShape(*this, other); !same.ok()) return same;
  if (blocks() == 0) return {};
  const int bits = kernels::CounterBits(layout_);
  const std::span<const uint64_t> from = other.words();
  std::unique_ptr<detail::SpillTable> merged;
  if (policy_ == OverflowPolicy::kReject) {
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == 0 || !WordSum(bits, bits_.words[i], from[i]).Overflows(bits)) continue;
      return Error(ErrorCode::kMismatch, "the filters cannot be merged under reject: in block " +
                                             std::to_string(i / 8) +
                                             " a counter would "
                                             "exceed " +
                                             std::to_string(kernels::CounterMax(bits)));
    }
  } else if (policy_ == OverflowPolicy::kSpill) {
    const uint64_t mine = spill_->total();
    if (mine > kMaxMergedSpill || other.spill_->total() > kMaxMergedSpill - mine) return TooManySpilled();
    try {
      merged = std::make_unique<detail::SpillTable>(*spill_);
    } catch (const std::bad_alloc&) {
      return NoMemory();
    }
    // An entry's counter is full on its side, so that nothing of it fits this side's counter.
    for (const auto& [place, count] : other.spill_->entries()) {
      if (!merged->Add(place, count)) return NoMemory();
    }
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == 0 || !WordSum(bits, bits_.words[i], from[i]).Overflows(bits)) continue;
      if (!SpillBeyond(bits, bits_.words[i], from[i], i, *merged)) return NoMemory();
    }
    if (merged->total() > kMaxMergedSpill) return TooManySpilled();
  }
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 0) bits_.words[i] = WordSum(bits, bits_.words[i], from[i]).Saturated(bits);
  }
  CopyToReplicas();
  if (merged != nullptr) spill_ = std::move(merged);
  const uint64_t sum = inserted_ + other.inserted_;
  inserted_ = sum < inserted_ ? ~uint64_t{0} : sum;
  return {};
} catch (...) {
  return detail::CaughtError();
}

void CountingFilter::Merge(const CountingFilter& other) { TryMerge(other).value(); }

Result<CountingFilter> CountingFilter::TryClone() const try {
  CountingFilter copy;
  if (bits_.blocks == 0) return Result<CountingFilter>(std::move(copy));
  if (Status copied = CopyTo(copy); !copied.ok()) return copied.error();
  if (Status bound = copy.BindCounting(); !bound.ok()) return bound.error();
  return Result<CountingFilter>(std::move(copy));
} catch (...) {
  return detail::CaughtError();
}

CountingFilter CountingFilter::Clone() const { return TryClone().value(); }

Result<Filter> CountingFilter::TryToFilter() const try {
  Filter filter;
  if (bits_.blocks == 0) return Result<Filter>(std::move(filter));
  Result<FilterConfig> config = FilterConfig::TryForBits(bits(), 8, Layout::kSplit512);
  if (!config.ok()) return config.error();
  if (Status made = filter.MakeEmpty(
          config->WithSeed(bits_.seed).WithKeyKind(key_kind_).WithTarget(target_).WithMemory(storage_->policy()));
      !made.ok()) {
    return made.error();
  }
  filter.expected_keys_ = expected_keys_;
  filter.target_fpr_ = target_fpr_;
  filter.inserted_ = inserted_;
  const int counter_bits = kernels::CounterBits(layout_);
  const uint64_t max = kernels::CounterMax(counter_bits);
  const std::span<const uint64_t> from = words();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 0) filter.bits_.words[i] = detail::CountersAboveZero(counter_bits, from[i]) * max;
  }
  filter.CopyToReplicas();
  return Result<Filter>(std::move(filter));
} catch (...) {
  return detail::CaughtError();
}

Filter CountingFilter::ToFilter() const { return TryToFilter().value(); }

}  // namespace bloomline
