// Bulk insertion: radix-partition the hashes by block range, then insert each part while its range is in cache.
#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "bloomline/filter.h"
#include "engine/out_of_memory.h"
#include "engine/storage.h"

namespace bloomline {
namespace {

// Hashes between hashing and sorting: stays in L1.
constexpr size_t kHashChunk = 512;

// The bits of a hash that choose its part. The block index grows with the hash, so a part is a range of blocks.
//   more parts   each range fits the cache better
//   fewer parts  the open end of each part, one line, stays in L1 while hashes are dealt out
// 256 parts keep 16 KiB of open ends in L1 and, at 512 MiB, give ranges of 2 MiB: building then takes 0.67 times
// limit/hash_touch/512MiB on Zen 5, inserting in batches 1.1 times. Other counts have not been measured.
constexpr int kMaxPartBits = 8;

// Bytes of filter per part below which partitioning gains nothing.
constexpr uint64_t kPartBytes = uint64_t{2} << 20;

// Below, caches hold enough of the filter that sorting costs more than it saves: at 16 MiB 5 to 9 ns per key
// against 2.9 by InsertBatch on Zen 5, at 119 MiB 7.2 against 6.2 to 7.9, at 512 MiB 8.1 against 10.
constexpr uint64_t kLeastFilterBytes = uint64_t{64} << 20;

// The parts' hashes, in fixed shares of one piece of memory. A full part is inserted at once and starts anew, so that
// skewed hashes (pre-hashed keys of one band, say) are slow at worst, never wrong.
class Parts {
 public:
  Parts(const detail::BlockOps& ops, const detail::BlockBits& bits, int part_bits, uint64_t* memory, size_t words)
      : ops_(ops),
        bits_(bits),
        shift_(64 - part_bits),
        share_((words >> part_bits) & ~(kLine - 1)),
        usable_(share_ - kStarts * kLine),
        count_(size_t{1} << part_bits),
        memory_(memory) {
    for (size_t part = 0; part < count_; ++part) ends_[part] = Begin(part);
  }

  void Add(const uint64_t* hashes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const uint64_t hash = hashes[i];
      const auto part = static_cast<size_t>(hash >> shift_);
      uint64_t*& end = ends_[part];
      *end++ = hash;
      if (end == Begin(part) + usable_) Flush(part);
    }
  }

  void FlushAll() {
    for (size_t part = 0; part < count_; ++part) Flush(part);
  }

 private:
  static constexpr size_t kLine = 8;     // words
  static constexpr size_t kStarts = 64;  // lines of a page

  // Shares start a line further in their page each, or all open ends would compete for the same sets of the cache.
  uint64_t* Begin(size_t part) const { return memory_ + part * share_ + (part % kStarts) * kLine; }

  void Flush(size_t part) {
    const auto count = static_cast<size_t>(ends_[part] - Begin(part));
    ops_.insert_batch(bits_, {Begin(part), count, detail::KeyForm::kHash});
    ends_[part] = Begin(part);
  }

  const detail::BlockOps& ops_;
  detail::BlockBits bits_;
  int shift_;
  size_t share_;   // words of memory per part
  size_t usable_;  // hashes that fit a share wherever it starts
  size_t count_;   // parts
  std::array<uint64_t*, size_t{1} << kMaxPartBits> ends_{};
  uint64_t* memory_;
};

}  // namespace

Status Filter::TryInsertBulk(std::span<const uint64_t> keys, uint64_t scratch_bytes) try {
  constexpr uint64_t kLeastShare = uint64_t{16} << 10;  // bytes; room for the shares' different starts
  const uint64_t filter_bytes = memory_bytes();
  if (scratch_bytes == 0) scratch_bytes = std::min(filter_bytes, uint64_t{1} << 30);
  // One fifth more than an even share: parts rarely fill up before the end.
  scratch_bytes = std::min<uint64_t>(scratch_bytes, keys.size() * sizeof(uint64_t) / 5 * 6);
  const int part_bits = std::min<int>(
      kMaxPartBits,
      static_cast<int>(std::bit_width(std::min(filter_bytes / kPartBytes, scratch_bytes / kLeastShare))) - 1);
  if (part_bits < 3 || filter_bytes < kLeastFilterBytes || keys.size() < bits_.blocks / 2) {
    InsertBatch(keys);
    return {};
  }
  MemoryPolicy policy;
  policy.pages = Pages::kTransparentHuge;
  Result<std::unique_ptr<detail::Storage>> scratch = detail::Storage::Allocate(scratch_bytes, policy);
  if (!scratch.ok()) return scratch.error();
  inserted_ += keys.size();
  detail::BlockBits part_range = bits_;
  if ((filter_bytes >> part_bits) <= 2 * kPartBytes) part_range.prefetch = 0;  // it stays in the cache once it is there
  Parts parts(*ops_, part_range, part_bits, scratch.value()->words(), scratch_bytes / sizeof(uint64_t));
  uint64_t hashes[kHashChunk];
  for (size_t first = 0; first < keys.size(); first += kHashChunk) {
    const size_t count = std::min(kHashChunk, keys.size() - first);
    ops_->hash_batch(bits_, {keys.data() + first, count, detail::KeyForm::kU64}, hashes);
    parts.Add(hashes, count);
  }
  parts.FlushAll();
  return {};
} catch (...) {
  return detail::CaughtError();
}

void Filter::InsertBulk(std::span<const uint64_t> keys, uint64_t scratch_bytes) {
  TryInsertBulk(keys, scratch_bytes).value();
}

}  // namespace bloomline
