// Filter and FilterView: cache-line-blocked Bloom filters.
//
//   bloomline::Filter filter(bloomline::FilterConfig::ForFpr(10'000'000, 0.01));
//   filter.InsertBatch(keys);
//   filter.MayContainBatch(probes, bitmap);   // bit i: probes[i] may be present; a clear bit: certainly absent
//
// Keys: uint64_t, uint32_t (hashed as its u64 value), byte strings, or well-mixed 64-bit hashes (the …Hash calls).
// A lookup must use the kind of key that the insert used.
//
// Threads: thread-compatible. const methods may run at once; a call that changes the filter needs it alone.
// Inserts and lookups are noexcept, allocate nothing and never end the program.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bloomline/config.h"
#include "bloomline/detail/block_ops.h"
#include "bloomline/error.h"
#include "bloomline/export.h"
#include "bloomline/layout.h"
#include "bloomline/memory.h"
#include "bloomline/overflow_policy.h"

namespace bloomline {

// Unsigned integers of 32 or 64 bits. Signed and floating-point values are refused at compile time: -1 and 0.5 are
// rarely the keys that were meant. Cast to uint64_t to insert them.
// NOLINTBEGIN(google-runtime-int): uint64_t is only one of the two that have 64 bits
template <class T>
concept IntegerKey =
    std::same_as<T, unsigned int> || std::same_as<T, unsigned long> || std::same_as<T, unsigned long long>;
// NOLINTEND(google-runtime-int)

// std::string, std::string_view, string literals.
template <class T>
concept StringKey = std::convertible_to<const T&, std::string_view> && !std::same_as<T, std::nullptr_t>;

// A column of byte strings as Apache Arrow lays it out: string i is bytes[offsets[i], offsets[i+1]).
// The offsets are checked when the column is made (ascending, not negative), once; they must not change after that.
class BLOOMLINE_API BinaryColumn {
 public:
  // offsets.size() − 1 strings; an empty span is a column of none. Throws Error(kInvalidArgument).
  BinaryColumn(std::span<const int32_t> offsets, std::string_view bytes);
  BinaryColumn(std::span<const int64_t> offsets, std::string_view bytes);  // Arrow's LargeBinary
  static Result<BinaryColumn> Create(std::span<const int32_t> offsets, std::string_view bytes);
  static Result<BinaryColumn> Create(std::span<const int64_t> offsets, std::string_view bytes);

  size_t size() const noexcept { return size_; }
  BLOOMLINE_INLINE std::string_view operator[](size_t i) const noexcept {
    const auto begin = wide_ ? static_cast<size_t>(static_cast<const int64_t*>(offsets_)[i])
                             : static_cast<size_t>(static_cast<const int32_t*>(offsets_)[i]);
    const auto end = wide_ ? static_cast<size_t>(static_cast<const int64_t*>(offsets_)[i + 1])
                           : static_cast<size_t>(static_cast<const int32_t*>(offsets_)[i + 1]);
    return {bytes_ + begin, end - begin};
  }

 private:
  BinaryColumn() = default;
  const void* offsets_ = nullptr;
  const char* bytes_ = nullptr;
  size_t size_ = 0;
  bool wide_ = false;
};

// The hash of a byte string under a seed: XXH3_64bits_withSeed. An empty string is a key like any other.
BLOOMLINE_API uint64_t HashBytes(std::string_view bytes, uint64_t seed) noexcept;
// The hash of an integer key under a seed; a bijection of u64.
BLOOMLINE_INLINE constexpr uint64_t HashInteger(uint64_t key, uint64_t seed) noexcept { return detail::Mix(key, seed); }

class ThreadPool;  // thread_pool.h

namespace detail {
class SpillTable;
class Storage;
}  // namespace detail

// The questions that Filter, FilterView and CountingFilter all answer. Not made by itself.
class BLOOMLINE_API FilterReader {
 public:
  // ---- One key: about the cost of one indirect call.
  template <IntegerKey K>
  bool MayContain(K key) const noexcept {
    return MayContainHash(detail::MixMasked(key, key_mask_));
  }
  template <StringKey S>
  bool MayContain(const S& key) const noexcept {
    return MayContainHash(HashBytes(std::string_view(key), bits_.seed));
  }
  // `hash` must be well mixed in all 64 bits: its top bits choose the block. Where it was already used to shard by its
  // top bits, the blocks of this filter are not used evenly and the FPR rises: pass Remixed(hash) then, always.
  bool MayContainHash(uint64_t hash) const noexcept { return ops_->contains(bits_, hash); }
  BLOOMLINE_INLINE static constexpr uint64_t Remixed(uint64_t hash) noexcept {
    return detail::Mix(hash, 0x9e3779b97f4a7c15);
  }

  // ---- Batches. `bitmap` holds at least ceil(keys.size() / 64) words; bit i % 64 of word i / 64 belongs to key i;
  // the last word's unused bits are zero. Where it is shorter, only the keys that it has bits for are looked up.
  // Key arrays may be of any length and at any alignment.
  void MayContainBatch(std::span<const uint64_t> keys, std::span<uint64_t> bitmap) const noexcept;
  void MayContainBatch(std::span<const uint32_t> keys, std::span<uint64_t> bitmap) const noexcept;
  void MayContainBatch(std::span<const std::string_view> keys, std::span<uint64_t> bitmap) const noexcept;
  void MayContainBatch(std::span<const std::string> keys, std::span<uint64_t> bitmap) const noexcept;
  void MayContainBatch(const BinaryColumn& keys, std::span<uint64_t> bitmap) const noexcept;
  void MayContainHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> bitmap) const noexcept;

  // The same by all threads of a pool, each taking its share of the keys; short batches stay on the calling thread.
  // Where the filter is partitioned over several nodes, each node's threads take the keys whose blocks lie there. The
  // bitmap is the same whatever the number of threads.
  void MayContainBatch(std::span<const uint64_t> keys, std::span<uint64_t> bitmap, ThreadPool& pool) const noexcept;
  void MayContainBatch(std::span<const std::string_view> keys, std::span<uint64_t> bitmap,
                       ThreadPool& pool) const noexcept;
  void MayContainHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> bitmap,
                           ThreadPool& pool) const noexcept;

  // Writes the positions of the keys that may be present, ascending, and returns how many. `positions` must hold
  // keys.size() entries (it is written up to there, in whole vectors); where it is shorter, only the first
  // positions.size() keys are looked up. At most 2^32 keys.
  size_t SelectBatch(std::span<const uint64_t> keys, std::span<uint32_t> positions) const noexcept;
  size_t SelectBatch(std::span<const uint32_t> keys, std::span<uint32_t> positions) const noexcept;
  size_t SelectBatch(std::span<const std::string_view> keys, std::span<uint32_t> positions) const noexcept;
  size_t SelectBatch(const BinaryColumn& keys, std::span<uint32_t> positions) const noexcept;
  size_t SelectHashBatch(std::span<const uint64_t> hashes, std::span<uint32_t> positions) const noexcept;
  // The same for the keys still in play: `selection` holds positions in `keys` (each below keys.size(); others are
  // dropped). The output keeps the selection's order and may be the selection's own memory.
  size_t SelectBatch(std::span<const uint64_t> keys, std::span<const uint32_t> selection,
                     std::span<uint32_t> positions) const noexcept;
  size_t SelectBatch(std::span<const uint32_t> keys, std::span<const uint32_t> selection,
                     std::span<uint32_t> positions) const noexcept;
  size_t SelectBatch(std::span<const std::string_view> keys, std::span<const uint32_t> selection,
                     std::span<uint32_t> positions) const noexcept;

  // ---- What the filter holds.
  // Insertions, repeats included; after Merge and Intersect the estimate (with repeats no longer known).
  uint64_t InsertedCount() const noexcept { return bits_.blocks == 0 ? 0 : inserted_; }
  // Distinct keys, from the fraction of set bits (FORMULAS: blocked form of Swamidass and Baldi 2007). Reads all of the
  // filter. Infinity when every bit is set: then no estimate exists.
  double EstimatedCount() const noexcept;
  // The model's FPR at InsertedCount() keys, or at n; 0 … 1. Assumes distinct keys.
  double PredictedFpr() const noexcept;
  double PredictedFpr(uint64_t n) const noexcept;
  // The exact FPR of the present content: the mean over blocks of the chance that a random key passes. Reads all of the
  // filter.
  double MeasuredFillFpr() const noexcept;
  double FillFraction() const noexcept;  // set bits / bits, or counters above 0 / counters; reads all of the filter
  bool Saturated() const noexcept;       // every bit is set (no counter is 0): every answer is "maybe"

  // ---- Its shape.
  Layout layout() const noexcept { return layout_; }
  int k() const noexcept { return k_; }
  uint64_t blocks() const noexcept { return bits_.blocks; }
  uint64_t bits() const noexcept { return bits_.blocks * static_cast<uint64_t>(BlockBits(layout_)); }
  uint64_t memory_bytes() const noexcept { return bits() / 8; }
  uint64_t seed() const noexcept { return bits_.seed; }
  KeyKind key_kind() const noexcept { return key_kind_; }
  uint64_t expected_keys() const noexcept { return expected_keys_; }           // the design n; 0: not given
  BLOOMLINE_INLINE double target_fpr() const noexcept { return target_fpr_; }  // the design FPR; 0: not given
  OverflowPolicy overflow_policy() const noexcept { return policy_; }          // kNone: bits, not counters
  std::string_view target() const noexcept { return target_; }                 // the SIMD target in use, e.g. "AVX3"
  MemoryReport memory() const;  // asks the kernel; throws Error(kOutOfMemory)

  // The bits, blocks() blocks of BlockBits(layout()) / 64 words, as they are in files on a little-endian machine.
  std::span<const uint64_t> words() const noexcept { return {bits_.words, static_cast<size_t>(bits() / 64)}; }

  // ---- Snapshots. The same bytes in memory and in files: see docs in the README.
  // Writes a temporary file beside `path`, syncs it and renames it: a crash leaves the old file or the new one. It may
  // leave the temporary file too (".bloomline-….tmp"): nothing reads it, no save needs its name, and it may be deleted
  // when no save is running in that folder. A save that fails removes it.
  void Save(const std::string& path) const;
  Status TrySave(const std::string& path) const;
  // The size of a snapshot in bytes, and one written into `out` (at least that long). Returns the bytes written.
  size_t SerializedBytes() const noexcept;
  size_t SerializeTo(std::span<std::byte> out) const;
  Result<size_t> TrySerializeTo(std::span<std::byte> out) const;

 protected:
  FilterReader();
  ~FilterReader();
  FilterReader(FilterReader&& other) noexcept;
  FilterReader& operator=(FilterReader&& other) noexcept;
  friend struct FilterAccess;  // engine-internal: snapshots

  // Looks up the kernels for (layout, k, target name or "") and sets ops_ and target_. Where storage_ has copies, their
  // table goes before the kernels': AttachReplicas, also to be called when storage_ is set later.
  Status Bind(const std::string& target);
  void AttachReplicas() noexcept;

  // Takes shape and memory from `config`, all zero.
  Status MakeEmpty(const FilterConfig& config);
  // Makes `copy`, a new filter, one of the same content. Not for filters without blocks.
  Status CopyTo(FilterReader& copy) const;
  // Where the filter is replicated: makes the other copies what copy 0 is.
  void CopyToReplicas() noexcept;

  detail::BlockBits bits_;
  const detail::BlockOps* ops_;
  uint64_t key_mask_ = 0;  // detail::KeyMask(seed), kept for one-key calls
  uint64_t inserted_ = 0;
  Layout layout_ = Layout::kSplit512;
  int k_ = 8;
  KeyKind key_kind_ = KeyKind::kUnspecified;
  uint64_t expected_keys_ = 0;
  double target_fpr_ = 0;
  std::string_view target_;
  OverflowPolicy policy_ = OverflowPolicy::kNone;
  std::unique_ptr<detail::Storage> storage_;   // empty: wrapped memory of the caller's
  std::unique_ptr<detail::SpillTable> spill_;  // under OverflowPolicy::kSpill only
};

// A filter that owns its memory. Move-only: a copy of gigabytes should be seen in the code (Clone).
// A moved-from filter has no blocks: every key is absent and inserts are ignored; assign to it to use it again.
class BLOOMLINE_API Filter final : public FilterReader {
 public:
  // Throws Error(kOutOfMemory) where memory is not to be had, kInvalidArgument for a target that is not supported.
  explicit Filter(const FilterConfig& config);
  static Result<Filter> Create(const FilterConfig& config);

  // ---- One key.
  template <IntegerKey K>
  void Insert(K key) noexcept {
    InsertHash(detail::MixMasked(key, key_mask_));
  }
  template <StringKey S>
  void Insert(const S& key) noexcept {
    InsertHash(HashBytes(std::string_view(key), bits_.seed));
  }
  void InsertHash(uint64_t hash) noexcept {
    ++inserted_;
    ops_->insert(bits_, hash);
  }
  // True: the key was certainly absent before. False: it may have been present (nothing changed).
  template <IntegerKey K>
  bool TryInsert(K key) noexcept {
    return TryInsertHash(detail::MixMasked(key, key_mask_));
  }
  template <StringKey S>
  bool TryInsert(const S& key) noexcept {
    return TryInsertHash(HashBytes(std::string_view(key), bits_.seed));
  }
  bool TryInsertHash(uint64_t hash) noexcept {
    ++inserted_;
    return ops_->try_insert(bits_, hash);
  }

  // ---- Batches. The result is that of inserting the keys one by one in their order.
  void InsertBatch(std::span<const uint64_t> keys) noexcept;
  void InsertBatch(std::span<const uint32_t> keys) noexcept;
  void InsertBatch(std::span<const std::string_view> keys) noexcept;
  void InsertBatch(std::span<const std::string> keys) noexcept;
  void InsertBatch(const BinaryColumn& keys) noexcept;
  void InsertHashBatch(std::span<const uint64_t> hashes) noexcept;
  // Bit i of `changed`: key i was certainly absent when its turn came. Shape as in MayContainBatch; where `changed` is
  // shorter, only the keys that it has bits for are inserted.
  void TryInsertBatch(std::span<const uint64_t> keys, std::span<uint64_t> changed) noexcept;
  void TryInsertBatch(std::span<const uint32_t> keys, std::span<uint64_t> changed) noexcept;
  void TryInsertBatch(std::span<const std::string_view> keys, std::span<uint64_t> changed) noexcept;
  void TryInsertBatch(const BinaryColumn& keys, std::span<uint64_t> changed) noexcept;
  void TryInsertHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> changed) noexcept;

  // ---- Bulk: many keys at once into a filter far larger than the cache. The same result as InsertBatch; the hashes
  // are first sorted into parts by the range of blocks that they fall in, so that each part of the filter is worked on
  // in cache. Worth it from about one key per 64 bytes of filter on; falls back to InsertBatch where the filter is
  // small or the keys are few. Takes up to `scratch_bytes` of memory for the duration of the call (0: as much as the
  // filter has, at most 1 GiB; the more, the better the locality). Error(kOutOfMemory): nothing was inserted.
  void InsertBulk(std::span<const uint64_t> keys, uint64_t scratch_bytes = 0);
  Status TryInsertBulk(std::span<const uint64_t> keys, uint64_t scratch_bytes = 0);
  // The same by all threads of a pool: they hash and sort shares of the keys, then each inserts into block ranges that
  // it alone writes (on its own node, where the filter is partitioned). The bits are the same whatever the number of
  // threads. `scratch_bytes` is for all threads together.
  void InsertBulk(std::span<const uint64_t> keys, ThreadPool& pool, uint64_t scratch_bytes = 0);
  void InsertBulk(std::span<const std::string_view> keys, ThreadPool& pool, uint64_t scratch_bytes = 0);
  void InsertHashBulk(std::span<const uint64_t> hashes, ThreadPool& pool, uint64_t scratch_bytes = 0);
  Status TryInsertBulk(std::span<const uint64_t> keys, ThreadPool& pool, uint64_t scratch_bytes = 0);
  Status TryInsertBulk(std::span<const std::string_view> keys, ThreadPool& pool, uint64_t scratch_bytes = 0);
  Status TryInsertHashBulk(std::span<const uint64_t> hashes, ThreadPool& pool, uint64_t scratch_bytes = 0);

  // ---- Whole filters.
  void Clear() noexcept;
  // Afterwards this filter holds the keys of both (Merge), or a superset of the keys in both whose FPR is that of the
  // fuller one at most (Intersect). Both need the same layout, k, blocks, seed and key kind: Error(kMismatch)
  // otherwise, with both values, and this filter unchanged.
  void Merge(const FilterReader& other);
  Status TryMerge(const FilterReader& other);
  void Intersect(const FilterReader& other);
  Status TryIntersect(const FilterReader& other);
  // A copy of its own. Throws Error(kOutOfMemory).
  Filter Clone() const;
  Result<Filter> TryClone() const;

  // ---- Snapshots. Errors: kIo, kCorrupt, kUnsupported, kOutOfMemory; the message names the file.
  static Filter Load(const std::string& path, const MemoryPolicy& memory = {});
  static Result<Filter> TryLoad(const std::string& path, const MemoryPolicy& memory = {});
  static Filter Deserialize(std::span<const std::byte> bytes, const MemoryPolicy& memory = {});
  static Result<Filter> TryDeserialize(std::span<const std::byte> bytes, const MemoryPolicy& memory = {});

 private:
  friend struct FilterAccess;
  friend class CountingFilter;  // ToFilter
  friend class ConcurrentFilter;
  Filter() = default;
};

// How much of a snapshot is checked before it answers.
enum class Verify : uint8_t {
  kAll = 0,         // the payload's checksum too: reads the file once
  kHeaderOnly = 1,  // the header and the file's length; a changed payload goes unnoticed
};

// A filter that is read where it lies: a mapped file, or bytes inside somebody else's. Snapshots of counting filters
// can be mapped for lookups too.
class BLOOMLINE_API FilterView final : public FilterReader {
 public:
  // Maps a snapshot read-only. The file must not be changed in place while it is mapped (Save replaces, it does not
  // change in place).
  static FilterView Map(const std::string& path, Verify verify = Verify::kAll);
  static Result<FilterView> TryMap(const std::string& path, Verify verify = Verify::kAll);
  // Reads a snapshot inside `bytes`, which must start at a multiple of 64 bytes and outlive the view.
  static FilterView Wrap(std::span<const std::byte> bytes, Verify verify = Verify::kAll);
  static Result<FilterView> TryWrap(std::span<const std::byte> bytes, Verify verify = Verify::kAll);

 private:
  friend struct FilterAccess;
  FilterView() = default;
};

}  // namespace bloomline
