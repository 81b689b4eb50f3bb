// CountingFilter: a filter that keys can be removed from. Eight small counters per key, all in one cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bloomline/filter.h"
#include "bloomline/overflow_policy.h"

namespace bloomline {

// How near its counters' limits a counting filter is.
struct OverflowReport {
  OverflowPolicy policy = OverflowPolicy::kNone;
  uint64_t counters = 0;          // in all: 128 (counting4) or 64 (counting8) per block
  uint64_t full_counters = 0;     // at 15 or 255. saturate: stuck there; reject: adds that meet them are refused
  uint64_t spilled_counters = 0;  // spill: those with an entry in the side table
  uint64_t spilled_keys = 0;      // spill: the sum of the entries
  uint64_t spill_bytes = 0;       // spill: memory of the side table, about
  // Before any key is added: the chance that `InsertedCount()` distinct keys take any counter beyond its maximum.
  double predicted_any = 0;
};

// A counting filter that owns its memory. Move-only; thread-compatible like Filter (const members may run at the same
// time), see ConcurrentCountingFilter for writers beside one another. It answers lookups and describes itself as every
// FilterReader does; InsertedCount() is adds less removes, EstimatedCount() and FillFraction() look at the counters
// above 0.
//
//   CountingFilter filter(FilterConfig::ForFpr(1'000'000, 0.01, Layout::kCounting4), OverflowPolicy::kReject);
//   filter.Add(key);
//   filter.Remove(key);
//
// Removing. A key with a counter at 0 is certainly absent: Remove changes nothing and says so. A key that was never
// added but passes as a false positive cannot be told from a member: removing it takes one from the counters of others,
// which may make a false negative of a member that shares them. That happens with the probability of a false positive
// (PredictedFpr()) per such removal: remove only what was added.
class BLOOMLINE_API CountingFilter final : public FilterReader {
 public:
  // `config` must name Layout::kCounting4 or kCounting8. Throws Error(kInvalidArgument, kOutOfMemory).
  explicit CountingFilter(const FilterConfig& config, OverflowPolicy policy = OverflowPolicy::kSaturate);
  static Result<CountingFilter> Create(const FilterConfig& config, OverflowPolicy policy = OverflowPolicy::kSaturate);

  CountingFilter(CountingFilter&& other) noexcept;
  CountingFilter& operator=(CountingFilter&& other) noexcept;
  ~CountingFilter();

  // ---- One key.
  // False: refused, nothing changed: under reject because one of its counters is full, under spill because memory for
  // the side table was not to be had. Always true under saturate. Under saturate and reject nothing is allocated.
  template <IntegerKey K>
  bool Add(K key) noexcept {
    return AddHash(detail::MixMasked(key, key_mask_));
  }
  template <StringKey S>
  bool Add(const S& key) noexcept {
    return AddHash(HashBytes(std::string_view(key), bits_.seed));
  }
  bool AddHash(uint64_t hash) noexcept;
  // False: the key was certainly absent, nothing changed. Under saturate full counters stay as they are.
  template <IntegerKey K>
  bool Remove(K key) noexcept {
    return RemoveHash(detail::MixMasked(key, key_mask_));
  }
  template <StringKey S>
  bool Remove(const S& key) noexcept {
    return RemoveHash(HashBytes(std::string_view(key), bits_.seed));
  }
  bool RemoveHash(uint64_t hash) noexcept;
  // The smallest of the key's counters: at least as often as the key is in the filter, as long as that is below the
  // counters' maximum (15, 255), which stands for "or more" under saturate. Under spill exact beyond it.
  template <IntegerKey K>
  uint64_t Count(K key) const noexcept {
    return CountHash(detail::MixMasked(key, key_mask_));
  }
  template <StringKey S>
  uint64_t Count(const S& key) const noexcept {
    return CountHash(HashBytes(std::string_view(key), bits_.seed));
  }
  uint64_t CountHash(uint64_t hash) const noexcept;

  // ---- Batches: exactly the result of one key after the other. They return how many keys were refused, or absent.
  // Where a bitmap is given (shape as in MayContainBatch), it gets their bits; where it is shorter than the keys need,
  // only the keys that it has bits for are worked on. An empty bitmap: none is wanted, all keys are worked on.
  size_t AddBatch(std::span<const uint64_t> keys, std::span<uint64_t> refused = {}) noexcept;
  size_t AddBatch(std::span<const uint32_t> keys, std::span<uint64_t> refused = {}) noexcept;
  size_t AddBatch(std::span<const std::string_view> keys, std::span<uint64_t> refused = {}) noexcept;
  size_t AddBatch(std::span<const std::string> keys, std::span<uint64_t> refused = {}) noexcept;
  size_t AddBatch(const BinaryColumn& keys, std::span<uint64_t> refused = {}) noexcept;
  size_t AddHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> refused = {}) noexcept;
  size_t RemoveBatch(std::span<const uint64_t> keys, std::span<uint64_t> absent = {}) noexcept;
  size_t RemoveBatch(std::span<const uint32_t> keys, std::span<uint64_t> absent = {}) noexcept;
  size_t RemoveBatch(std::span<const std::string_view> keys, std::span<uint64_t> absent = {}) noexcept;
  size_t RemoveBatch(std::span<const std::string> keys, std::span<uint64_t> absent = {}) noexcept;
  size_t RemoveBatch(const BinaryColumn& keys, std::span<uint64_t> absent = {}) noexcept;
  size_t RemoveHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> absent = {}) noexcept;
  // counts[i] = Count(keys[i]), at most 2^32 − 1; the first min(keys.size(), counts.size()) of them.
  void CountBatch(std::span<const uint64_t> keys, std::span<uint32_t> counts) const noexcept;
  void CountBatch(std::span<const uint32_t> keys, std::span<uint32_t> counts) const noexcept;
  void CountBatch(std::span<const std::string_view> keys, std::span<uint32_t> counts) const noexcept;
  void CountBatch(std::span<const std::string> keys, std::span<uint32_t> counts) const noexcept;
  void CountBatch(const BinaryColumn& keys, std::span<uint32_t> counts) const noexcept;
  void CountHashBatch(std::span<const uint64_t> hashes, std::span<uint32_t> counts) const noexcept;

  // ---- Whole filters.
  void Clear() noexcept;
  // Adds the counters of `other`: afterwards this filter holds what both held. saturate: sums stop at the maximum, for
  // good. reject: where any sum would exceed the maximum, Error(kMismatch) and this filter unchanged. spill: what is
  // beyond goes to the side table; Error(kOutOfMemory), or kMismatch where it would hold more than 2^62 counts, leaves
  // this filter unchanged. Different policies, layouts, sizes, seeds or key kinds: Error(kMismatch) with both values.
  void Merge(const CountingFilter& other);
  Status TryMerge(const CountingFilter& other);
  CountingFilter Clone() const;
  Result<CountingFilter> TryClone() const;
  // The split512 filter that answers every lookup as this one does now: all bits of each counter above 0 are set. Its
  // MeasuredFillFpr() is right; its PredictedFpr() is that of a filter which was filled bit by bit, and too low.
  Filter ToFilter() const;
  Result<Filter> TryToFilter() const;

  // ---- Overflow. Reads all of the filter.
  OverflowReport Overflow() const noexcept;

  // ---- Snapshots. Save and SerializeTo are FilterReader's, side table included. Errors as in Filter::Load.
  static CountingFilter Load(const std::string& path, const MemoryPolicy& memory = {});
  static Result<CountingFilter> TryLoad(const std::string& path, const MemoryPolicy& memory = {});
  static CountingFilter Deserialize(std::span<const std::byte> bytes, const MemoryPolicy& memory = {});
  static Result<CountingFilter> TryDeserialize(std::span<const std::byte> bytes, const MemoryPolicy& memory = {});

 private:
  friend struct FilterAccess;
  friend class ConcurrentCountingFilter;
  CountingFilter();
  Status BindCounting();  // after Bind: counting_ops_
  template <class Body>
  auto WithSpill(const Body& body) noexcept;
  size_t Change(const detail::KeySpan& keys, uint64_t* bitmap, bool add) noexcept;
  template <class Fixed>
  size_t ChangeFixed(std::span<const Fixed> keys, std::span<uint64_t> bitmap, bool add) noexcept;
  template <class Strings>
  size_t ChangeStrings(const Strings& keys, std::span<uint64_t> bitmap, bool add) noexcept;
  template <class HashOf>
  void Counts(const detail::KeySpan& keys, uint32_t* counts, const HashOf& hash_of) const noexcept;
  template <class Strings>
  void CountStrings(const Strings& keys, std::span<uint32_t> counts) const noexcept;
  void TakeFromCount(size_t keys) noexcept { inserted_ -= keys < inserted_ ? keys : inserted_; }

  const detail::CountingOps* counting_ops_ = nullptr;  // null: moved from
};

}  // namespace bloomline
