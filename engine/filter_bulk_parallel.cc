// Bulk insertion by a pool of threads: they deal hashes into buckets by block range, then each range is written by one.
#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <memory>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/thread_pool.h"
#include "engine/hash_source.h"
#include "engine/node_queues.h"
#include "engine/out_of_memory.h"
#include "engine/pool_scratch.h"
#include "engine/storage.h"
#include "kernels/layout.h"

namespace bloomline {
namespace {

// Fewer keys are inserted before the threads are awake.
constexpr size_t kFewestKeys = size_t{64} << 10;
// Dealing costs some 4 ns of CPU time per key, shared by the threads, like the insert: two threads gain where an insert
// takes longer than that. Measured on Zen 5, one thread's InsertBatch against two: 16 MiB 2.9 and 3.6 to 5.2 ns per
// key, 119 MiB 7.6 and 5.1, 512 MiB 10.7 and 4.9. Strings are dear to hash, which is shared as well.
constexpr uint64_t kLeastForTwo = uint64_t{64} << 20;
// Hashes between hashing and dealing: stays in L1.
constexpr size_t kHashChunk = 512;
// Parts trade as in filter_bulk.cc: the open ends of one thread's buckets, a line each, stay in its L1.
constexpr uint64_t kMostParts = 256;
// The fewest hashes per bucket: below, threads meet at the end of a round more often than they insert.
constexpr uint64_t kLeastBucket = 512;
// Blocks of a range that stays in a core's cache while it is worked on.
constexpr uint64_t kCachedPartBytes = uint64_t{4} << 20;

// One round after the other: in the first half, each thread hashes keys of its own share into its own buckets until the
// share or a bucket ends; in the second, whoever is free takes a part and inserts that part's buckets of all threads. A
// part is a range of blocks, so that no two threads write to one line. Bits only ever come to be set: the result does
// not depend on who does what.
template <class Source>
class BulkInsert {
 public:
  struct Shape {
    uint64_t parts = 0;
    int block_shift = 0;  // part = block >> block_shift
    uint64_t bucket = 0;  // hashes
  };

  // No parts: the memory is not enough for a bucket per thread and part that is worth it.
  static Shape Plan(uint64_t blocks, uint64_t threads, uint64_t scratch_bytes) {
    Shape shape;
    const uint64_t words = scratch_bytes / sizeof(uint64_t);
    const uint64_t most = std::min(kMostParts, words / threads / kLeastBucket);
    if (most < 2) return shape;
    // At least two blocks to a part: two blocks of split256 share a line.
    shape.block_shift = std::max(1, static_cast<int>(std::bit_width((blocks - 1) / most)));
    shape.parts = ((blocks - 1) >> shape.block_shift) + 1;
    // An odd number of lines, or the open ends of all buckets would compete for the same sets of the cache.
    shape.bucket = ((words / threads / shape.parts / 8 - 1) | 1) * 8;
    return shape;
  }

  BulkInsert(const detail::BlockOps& ops, const detail::BlockBits& bits, Layout layout, const Source& source,
             const Shape& shape, ThreadPool& pool, uint64_t* memory, std::span<const uint64_t> partition_ends)
      : ops_(ops), bits_(bits), layout_(layout), source_(source), shape_(shape), pool_(pool), memory_(memory) {
    const auto threads = static_cast<size_t>(pool.threads());
    const uint64_t block_bytes = kernels::WordsPerBlock(layout) * sizeof(uint64_t);
    // Worked on in cache only where a round comes back to most lines of a part; the first visit is a miss anyway.
    const uint64_t round_keys = shape.bucket * shape.parts * threads;
    if ((block_bytes << shape.block_shift) <= kCachedPartBytes && round_keys >= 2 * bits.blocks) bits_.prefetch = 0;
    used_.resize(threads * shape.parts);
    next_.resize(threads);
    for (size_t t = 0; t < threads; ++t) next_[t] = source.size() / threads * t + std::min(t, source.size() % threads);
    next_.push_back(source.size());
    ends_.assign(next_.begin() + 1, next_.end());
    queues_ = std::make_unique<detail::NodeQueues>(pool, partition_ends.size());
    for (uint64_t part = 0; part < shape.parts; ++part) {
      queues_->Add(detail::NodeOfByte(partition_ends, (part << shape.block_shift) * block_bytes),
                   static_cast<uint32_t>(part));
    }
  }

  void Run() {
    const auto deal = [this](int thread) { Deal(static_cast<size_t>(thread)); };
    const auto insert = [this](int thread) { queues_->Work(thread, [this](uint32_t part) { Insert(part); }); };
    bool done = false;
    while (!done) {
      pool_.Run(std::ref(deal));
      queues_->Restart();
      pool_.Run(std::ref(insert));
      done = std::equal(ends_.begin(), ends_.end(), next_.begin());
    }
  }

 private:
  uint64_t* Bucket(size_t thread, uint64_t part) const {
    return memory_ + (thread * shape_.parts + part) * shape_.bucket;
  }

  void Deal(size_t thread) {
    uint64_t* const used = used_.data() + thread * shape_.parts;
    uint64_t hashes[kHashChunk];
    size_t next = next_[thread];  // a copy: the other threads' lie in the same line
    for (bool full = false; !full && next < ends_[thread];) {
      const size_t count = std::min(kHashChunk, ends_[thread] - next);
      source_.Hash(next, count, hashes);
      size_t i = 0;
      for (; i < count; ++i) {
        const uint64_t part = kernels::BlockOf(layout_, hashes[i], bits_.blocks) >> shape_.block_shift;
        full = used[part] == shape_.bucket;
        if (full) break;
        Bucket(thread, part)[used[part]++] = hashes[i];
      }
      next += i;
    }
    next_[thread] = next;
  }

  void Insert(uint64_t part) {
    for (size_t thread = 0; thread < ends_.size(); ++thread) {
      uint64_t& used = used_[thread * shape_.parts + part];
      ops_.insert_batch(bits_, {Bucket(thread, part), static_cast<size_t>(used), detail::KeyForm::kHash});
      used = 0;
    }
  }

  const detail::BlockOps& ops_;
  detail::BlockBits bits_;
  Layout layout_;
  const Source& source_;
  Shape shape_;
  ThreadPool& pool_;
  uint64_t* memory_;
  std::vector<uint64_t> used_;  // hashes in the bucket of (thread, part)
  std::vector<size_t> next_;    // of each thread the first key that it has not dealt
  std::vector<size_t> ends_;    // and where its share ends
  std::unique_ptr<detail::NodeQueues> queues_;
};

// False: too little to share out; nothing was done.
template <class Source>
Result<bool> Insert(const detail::BlockOps& ops, const detail::BlockBits& bits, Layout layout, const Source& source,
                    ThreadPool& pool, uint64_t scratch_bytes, uint64_t filter_bytes,
                    std::span<const uint64_t> partition_ends) {
  if (pool.threads() == 1 || source.size() < kFewestKeys) return false;
  if (pool.threads() == 2 && filter_bytes < kLeastForTwo && !Source::kHashingIsDear) return false;
  if (scratch_bytes == 0) scratch_bytes = std::min(std::max(filter_bytes, uint64_t{1} << 20), uint64_t{1} << 30);
  // A half more than an even share: buckets rarely fill up before the end.
  scratch_bytes = std::min<uint64_t>(scratch_bytes, source.size() * sizeof(uint64_t) / 2 * 3);
  const auto shape = BulkInsert<Source>::Plan(bits.blocks, static_cast<uint64_t>(pool.threads()), scratch_bytes);
  if (shape.parts < 2) return false;
  Result<detail::PoolScratch> scratch = detail::PoolScratch::Take(pool, scratch_bytes);
  if (!scratch.ok()) return scratch.error();
  BulkInsert<Source> insert(ops, bits, layout, source, shape, pool, scratch->words(), partition_ends);
  insert.Run();
  return true;
}

std::span<const uint64_t> PartitionEnds(const detail::Storage* storage) {
  return storage == nullptr ? std::span<const uint64_t>() : storage->partition_ends();
}

}  // namespace

Status Filter::TryInsertBulk(std::span<const uint64_t> keys, ThreadPool& pool, uint64_t scratch_bytes) try {
  if (bits_.blocks == 0) return {};
  const detail::FixedKeys source(*ops_, bits_, keys, detail::KeyForm::kU64);
  const Result<bool> done = ::bloomline::Insert(*ops_, bits_, layout_, source, pool, scratch_bytes, memory_bytes(),
                                                PartitionEnds(storage_.get()));
  if (!done.ok()) return done.error();
  if (!*done) return TryInsertBulk(keys, scratch_bytes);
  inserted_ += keys.size();
  return {};
} catch (...) {
  return detail::CaughtError();
}

Status Filter::TryInsertBulk(std::span<const std::string_view> keys, ThreadPool& pool, uint64_t scratch_bytes) try {
  if (bits_.blocks == 0) return {};
  const detail::StringKeys source(keys, bits_.seed);
  const Result<bool> done = ::bloomline::Insert(*ops_, bits_, layout_, source, pool, scratch_bytes, memory_bytes(),
                                                PartitionEnds(storage_.get()));
  if (!done.ok()) return done.error();
  if (!*done) {
    InsertBatch(keys);
  } else {
    inserted_ += keys.size();
  }
  return {};
} catch (...) {
  return detail::CaughtError();
}

Status Filter::TryInsertHashBulk(std::span<const uint64_t> hashes, ThreadPool& pool, uint64_t scratch_bytes) try {
  if (bits_.blocks == 0) return {};
  const detail::FixedKeys source(*ops_, bits_, hashes, detail::KeyForm::kHash);
  const Result<bool> done = ::bloomline::Insert(*ops_, bits_, layout_, source, pool, scratch_bytes, memory_bytes(),
                                                PartitionEnds(storage_.get()));
  if (!done.ok()) return done.error();
  if (!*done) {
    InsertHashBatch(hashes);
  } else {
    inserted_ += hashes.size();
  }
  return {};
} catch (...) {
  return detail::CaughtError();
}

void Filter::InsertBulk(std::span<const uint64_t> keys, ThreadPool& pool, uint64_t scratch_bytes) {
  TryInsertBulk(keys, pool, scratch_bytes).value();
}
void Filter::InsertBulk(std::span<const std::string_view> keys, ThreadPool& pool, uint64_t scratch_bytes) {
  TryInsertBulk(keys, pool, scratch_bytes).value();
}
void Filter::InsertHashBulk(std::span<const uint64_t> hashes, ThreadPool& pool, uint64_t scratch_bytes) {
  TryInsertHashBulk(hashes, pool, scratch_bytes).value();
}

}  // namespace bloomline
