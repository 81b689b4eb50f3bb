// ConcurrentFilter: a filter for many writers and readers at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bloomline/filter.h"

namespace bloomline {

// All members but the constructors, the destructor and Release may be called from many threads at once. Bits are set by
// relaxed atomic ORs, word by word: none is lost, and no lock is taken. A lookup that starts after an insert has
// returned finds the key, on every thread and, where the filter is replicated, on every node. What tells the other
// thread that the insert has returned (a queue, a flag) must order the two, as for any memory.
// Two threads that TryInsert one key at the same time may both hear "new": each may have been the first to set some of
// its bits. At least one does.
// Lookups cost what Filter's do. Inserts are dearer, since a locked OR per word takes the place of a store per line:
// some 34 ns for a new key in place of 1.5 (split512, 1 MiB, AVX-512), 1.2 ns for one that is there already. For one
// writer, or writers that can have a filter each (Merge), or threads that have all keys at hand (Filter::InsertBulk
// with a pool), take Filter.
class BLOOMLINE_API ConcurrentFilter {
 public:
  // As Filter. Throws Error(kInvalidArgument, kOutOfMemory).
  explicit ConcurrentFilter(const FilterConfig& config);
  // Takes over a filter with what it holds; where that fails, the filter is gone.
  explicit ConcurrentFilter(Filter filter);
  static Result<std::unique_ptr<ConcurrentFilter>> Create(const FilterConfig& config);
  static Result<std::unique_ptr<ConcurrentFilter>> Create(Filter filter);
  ~ConcurrentFilter();
  ConcurrentFilter(const ConcurrentFilter&) = delete;
  ConcurrentFilter& operator=(const ConcurrentFilter&) = delete;

  // ---- One key. Meaning and results as in Filter, which says which types are keys.
  template <class K>
  void Insert(const K& key) noexcept {
    InsertHash(HashOf(key));
  }
  template <class K>
  bool TryInsert(const K& key) noexcept {
    return TryInsertHash(HashOf(key));
  }
  template <class K>
  bool MayContain(const K& key) const noexcept {
    return MayContainHash(HashOf(key));
  }
  void InsertHash(uint64_t hash) noexcept { TryInsertHash(hash); }
  bool TryInsertHash(uint64_t hash) noexcept;
  bool MayContainHash(uint64_t hash) const noexcept { return filter_.ops_->shared_contains(filter_.bits_, hash); }

  // ---- Batches: key by key, in their order; other threads' operations may come between them. Bitmaps as in Filter.
  void InsertBatch(std::span<const uint64_t> keys) noexcept;
  void InsertBatch(std::span<const uint32_t> keys) noexcept;
  void InsertBatch(std::span<const std::string_view> keys) noexcept;
  void InsertHashBatch(std::span<const uint64_t> hashes) noexcept;
  void TryInsertBatch(std::span<const uint64_t> keys, std::span<uint64_t> changed) noexcept;
  void TryInsertBatch(std::span<const uint32_t> keys, std::span<uint64_t> changed) noexcept;
  void TryInsertBatch(std::span<const std::string_view> keys, std::span<uint64_t> changed) noexcept;
  void TryInsertHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> changed) noexcept;
  void MayContainBatch(std::span<const uint64_t> keys, std::span<uint64_t> bitmap) const noexcept;
  void MayContainBatch(std::span<const uint32_t> keys, std::span<uint64_t> bitmap) const noexcept;
  void MayContainBatch(std::span<const std::string_view> keys, std::span<uint64_t> bitmap) const noexcept;
  void MayContainHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> bitmap) const noexcept;

  // ---- As a whole.
  // Insertions, repeats included; of no particular moment while others write.
  uint64_t InsertedCount() const noexcept;
  double PredictedFpr() const noexcept { return filter_.PredictedFpr(InsertedCount()); }
  double PredictedFpr(uint64_t n) const noexcept { return filter_.PredictedFpr(n); }
  Layout layout() const noexcept { return filter_.layout(); }
  int k() const noexcept { return filter_.k(); }
  uint64_t blocks() const noexcept { return filter_.blocks(); }
  uint64_t memory_bytes() const noexcept { return filter_.memory_bytes(); }
  uint64_t seed() const noexcept { return filter_.seed(); }
  std::string_view target() const noexcept { return filter_.target(); }
  MemoryReport memory() const { return filter_.memory(); }

  // A copy of the content, to look at, save or merge: it holds every key whose insert returned before the call, and of
  // those inserted meanwhile some bits or all. Its InsertedCount() is of the call's beginning. Error(kOutOfMemory).
  Result<Filter> TryCopy() const;
  // A snapshot of the same content, written without a copy of the filter: at most 1 MiB beside it. Errors as in
  // FilterReader::Save.
  void Save(const std::string& path) const;
  Status TrySave(const std::string& path) const;
  // Gives the filter back; this object is only to be destroyed afterwards. No other thread may be in it.
  Filter Release() &&;

 private:
  // Insertions are counted in slots of a cache line each, by hardware thread: a single counter would pass from core to
  // core at every insert.
  struct alignas(64) Slot {
    std::atomic<uint64_t> keys{0};
  };
  static constexpr size_t kSlots = 64;

  template <IntegerKey K>
  uint64_t HashOf(K key) const noexcept {
    return detail::MixMasked(key, filter_.key_mask_);
  }
  template <StringKey S>
  uint64_t HashOf(const S& key) const noexcept {
    return HashBytes(std::string_view(key), filter_.seed());
  }
  void Count(uint64_t keys) noexcept;

  Filter filter_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace bloomline
