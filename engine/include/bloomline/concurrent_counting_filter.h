// ConcurrentCountingFilter: a counting filter for many writers and readers at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "bloomline/counting_filter.h"

namespace bloomline {

// All members but the constructors, the destructor and Release may be called from many threads at once. Adds and
// removes hold a lock of the key's line (one of a few thousand, spun on, never held across a system call) for some tens
// of nanoseconds: no update is lost, and an operation sees a key's eight counters as they were at one moment. Lookups
// take no lock: a lookup that starts after an Add has returned finds the key until it is removed as often as it was
// added. Dearer than CountingFilter, whose batches use vectors: for one writer, or writers with a filter each (Merge),
// take that.
class BLOOMLINE_API ConcurrentCountingFilter {
 public:
  // As CountingFilter. Throws Error(kInvalidArgument, kOutOfMemory).
  explicit ConcurrentCountingFilter(const FilterConfig& config, OverflowPolicy policy = OverflowPolicy::kSaturate);
  // Takes over a filter with what it holds; where that fails, the filter is gone.
  explicit ConcurrentCountingFilter(CountingFilter filter);
  static Result<std::unique_ptr<ConcurrentCountingFilter>> Create(CountingFilter filter);
  ~ConcurrentCountingFilter();
  ConcurrentCountingFilter(const ConcurrentCountingFilter&) = delete;
  ConcurrentCountingFilter& operator=(const ConcurrentCountingFilter&) = delete;

  // ---- Meaning and results as in CountingFilter.
  template <class K>
  bool Add(const K& key) noexcept {
    return AddHash(HashOf(key));
  }
  template <class K>
  bool Remove(const K& key) noexcept {
    return RemoveHash(HashOf(key));
  }
  template <class K>
  bool MayContain(const K& key) const noexcept {
    return MayContainHash(HashOf(key));
  }
  template <class K>
  uint64_t Count(const K& key) const noexcept {
    return CountHash(HashOf(key));
  }
  bool AddHash(uint64_t hash) noexcept;
  bool RemoveHash(uint64_t hash) noexcept;
  bool MayContainHash(uint64_t hash) const noexcept;
  uint64_t CountHash(uint64_t hash) const noexcept;
  // Key by key, in their order; other threads' operations may come between them.
  size_t AddBatch(std::span<const uint64_t> keys, std::span<uint64_t> refused = {}) noexcept;
  size_t AddBatch(std::span<const std::string_view> keys, std::span<uint64_t> refused = {}) noexcept;
  size_t AddHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> refused = {}) noexcept;
  size_t RemoveBatch(std::span<const uint64_t> keys, std::span<uint64_t> absent = {}) noexcept;
  size_t RemoveBatch(std::span<const std::string_view> keys, std::span<uint64_t> absent = {}) noexcept;
  size_t RemoveHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> absent = {}) noexcept;
  void MayContainBatch(std::span<const uint64_t> keys, std::span<uint64_t> bitmap) const noexcept;
  void MayContainBatch(std::span<const std::string_view> keys, std::span<uint64_t> bitmap) const noexcept;
  void MayContainHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> bitmap) const noexcept;

  uint64_t InsertedCount() const noexcept;  // adds less removes; of no particular moment while others write

  // A copy of the content, to look at, save or merge; each line is of one moment. Under spill all of it is, and writers
  // wait while it is made. Error(kOutOfMemory).
  Result<CountingFilter> TryCopy() const;
  // Gives the filter back; this object is only to be destroyed afterwards. No other thread may be in it.
  CountingFilter Release() &&;

 private:
  struct alignas(64) Stripe {
    std::atomic<bool> locked{false};
    std::atomic<int64_t> keys{0};  // adds less removes through this stripe
  };
  class StripeLock;

  template <IntegerKey K>
  uint64_t HashOf(K key) const noexcept {
    return detail::Mix(key, filter_.seed());
  }
  template <StringKey S>
  uint64_t HashOf(const S& key) const noexcept {
    return HashBytes(std::string_view(key), filter_.seed());
  }
  bool Change(uint64_t hash, bool add) noexcept;
  size_t ChangeHashes(const uint64_t* hashes, size_t count, uint64_t* bitmap, bool add) noexcept;
  template <class Keys>
  size_t ChangeBatch(const Keys& keys, std::span<uint64_t> bitmap, bool add) noexcept;
  Stripe& StripeOf(uint64_t block) const noexcept { return stripes_[block & (stripe_count_ - 1)]; }

  CountingFilter filter_;
  size_t stripe_count_ = 0;  // a power of two
  std::unique_ptr<Stripe[]> stripes_;
  mutable std::mutex spill_mutex_;  // the side table's
};

}  // namespace bloomline
