// Batch lookups by a pool of threads.
#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <memory>

#include "bloomline/filter.h"
#include "bloomline/thread_pool.h"
#include "engine/hash_source.h"
#include "engine/node_queues.h"
#include "engine/storage.h"
#include "kernels/layout.h"

namespace bloomline {
namespace {

using detail::Covered;
using detail::WordsFor;

// Fewer keys are answered before the threads are awake, which takes about 30 us.
constexpr size_t kFewestKeys = size_t{64} << 10;
// What a thread takes at a time, a multiple of 64: small enough that a slow core does not hold up the others at the
// end, large enough (some 20 us) that taking it is nothing.
constexpr size_t kSliceKeys = size_t{16} << 10;
// Keys that are sorted by node before they are looked up, see below.
constexpr size_t kRoundKeys = size_t{1} << 20;
constexpr size_t kProbeChunk = 1024;

// Calls look_up(first, count) for slices of the keys.
template <class LookUp>
void InSlices(ThreadPool& pool, size_t count, const LookUp& look_up) {
  std::atomic<size_t> next{0};
  const auto body = [&](int) {
    for (;;) {
      const size_t first = next.fetch_add(kSliceKeys, std::memory_order_relaxed);
      if (first >= count) return;
      look_up(first, std::min(kSliceKeys, count - first));
    }
  };
  pool.Run(std::ref(body));
}

bool HasThreadsOnSeveralNodes(const ThreadPool& pool) {
  for (int thread = 1; thread < pool.threads(); ++thread) {
    if (pool.NodeOf(thread) != pool.NodeOf(0)) return true;
  }
  return false;
}

// A filter that is partitioned over nodes: in rounds, each thread hashes a share of the keys and sorts it by the node
// of their blocks; then each node's threads look up what lies there and set the bits of the keys that may be present.
template <class Source>
class ByNode {
 public:
  ByNode(const detail::BlockOps& ops, const detail::BlockBits& bits, Layout layout, const Source& source, size_t count,
         uint64_t* bitmap, ThreadPool& pool, std::span<const uint64_t> partition_ends)
      : ops_(ops),
        bits_(bits),
        layout_(layout),
        source_(source),
        count_(count),
        bitmap_(bitmap),
        pool_(pool),
        ends_(partition_ends),
        threads_(static_cast<size_t>(pool.threads())),
        // Whole words of the bitmap for each thread.
        share_((std::min(count, kRoundKeys) / threads_ + 64) / 64 * 64),
        hashes_(new uint64_t[share_ * threads_]),
        sorted_(new uint64_t[share_ * threads_]),
        positions_(new uint32_t[share_ * threads_]),
        borders_(threads_ * (ends_.size() + 1)),
        queues_(pool, ends_.size()) {
    for (size_t node = 0; node < ends_.size(); ++node) {
      for (size_t t = 0; t < threads_; ++t) queues_.Add(node, static_cast<uint32_t>(node * threads_ + t));
    }
  }

  void Run() {
    const auto sort = [this](int thread) { Sort(static_cast<size_t>(thread)); };
    const auto look_up = [this](int thread) {
      queues_.Work(thread, [this](uint32_t piece) { LookUp(piece / threads_, piece % threads_); });
    };
    for (round_ = 0; round_ < count_; round_ += share_ * threads_) {
      pool_.Run(std::ref(sort));
      queues_.Restart();
      pool_.Run(std::ref(look_up));
    }
  }

 private:
  size_t NodeOf(uint64_t hash) const {
    const uint64_t block_bytes = kernels::WordsPerBlock(layout_) * sizeof(uint64_t);
    return detail::NodeOfByte(ends_, kernels::BlockOf(layout_, hash, bits_.blocks) * block_bytes);
  }

  // borders_[thread · (nodes + 1) + node …]: where the node's keys begin in the thread's share of sorted_.
  size_t* Borders(size_t thread) { return borders_.data() + thread * (ends_.size() + 1); }

  void Sort(size_t thread) {
    const size_t first = std::min(count_, round_ + thread * share_);
    const size_t size = std::min(share_, count_ - first);
    std::fill_n(bitmap_ + first / 64, WordsFor(size), uint64_t{0});
    uint64_t* const hashes = hashes_.get() + thread * share_;
    source_.Hash(first, size, hashes);
    size_t* const borders = Borders(thread);
    std::fill_n(borders, ends_.size() + 1, size_t{0});
    for (size_t i = 0; i < size; ++i) ++borders[NodeOf(hashes[i]) + 1];
    for (size_t node = 1; node <= ends_.size(); ++node) borders[node] += borders[node - 1];
    size_t next[kMostNodes];
    std::copy_n(borders, ends_.size(), next);
    for (size_t i = 0; i < size; ++i) {
      const size_t at = thread * share_ + next[NodeOf(hashes[i])]++;
      sorted_[at] = hashes[i];
      positions_[at] = static_cast<uint32_t>(thread * share_ + i);
    }
  }

  void LookUp(size_t node, size_t thread) {
    const size_t begin = thread * share_ + Borders(thread)[node];
    const size_t end = thread * share_ + Borders(thread)[node + 1];
    uint64_t found[kProbeChunk / 64];
    for (size_t at = begin; at < end; at += kProbeChunk) {
      const size_t size = std::min(kProbeChunk, end - at);
      ops_.contains_batch(bits_, detail::Hashes(sorted_.get() + at, size), found);
      for (size_t w = 0; w < WordsFor(size); ++w) {
        for (uint64_t left = found[w]; left != 0; left &= left - 1) {
          const size_t position = round_ + positions_[at + w * 64 + static_cast<size_t>(std::countr_zero(left))];
          // Another node's thread may have keys of the same word.
          const std::atomic_ref<uint64_t> word(bitmap_[position / 64]);
          word.fetch_or(uint64_t{1} << (position % 64), std::memory_order_relaxed);
        }
      }
    }
  }

 public:
  static constexpr size_t kMostNodes = 256;

 private:
  const detail::BlockOps& ops_;
  const detail::BlockBits& bits_;
  Layout layout_;
  const Source& source_;
  size_t count_;
  uint64_t* bitmap_;
  ThreadPool& pool_;
  std::span<const uint64_t> ends_;
  size_t threads_;
  size_t share_;  // keys of a thread in a round
  std::unique_ptr<uint64_t[]> hashes_;
  std::unique_ptr<uint64_t[]> sorted_;
  std::unique_ptr<uint32_t[]> positions_;
  std::vector<size_t> borders_;
  detail::NodeQueues queues_;
  size_t round_ = 0;
};

// Whether the keys were looked up. False: the filter is not partitioned, the threads are on one node, or there is no
// memory to sort keys in.
template <class Source>
bool LookUpByNode(const detail::BlockOps& ops, const detail::BlockBits& bits, Layout layout,
                  const detail::Storage* storage, const Source& source, size_t count, uint64_t* bitmap,
                  ThreadPool& pool) noexcept {
  if (storage == nullptr) return false;
  const std::span<const uint64_t> ends = storage->partition_ends();
  if (ends.size() < 2 || ends.size() > ByNode<Source>::kMostNodes || !HasThreadsOnSeveralNodes(pool)) return false;
  try {
    ByNode<Source> work(ops, bits, layout, source, count, bitmap, pool, ends);
    work.Run();
    return true;
  } catch (const std::bad_alloc&) {  // of the constructor: Run takes no memory
    return false;
  }
}

}  // namespace

void FilterReader::MayContainBatch(std::span<const uint64_t> keys, std::span<uint64_t> bitmap,
                                   ThreadPool& pool) const noexcept {
  const size_t count = Covered(keys.size(), bitmap.size());
  if (pool.threads() == 1 || count < kFewestKeys) return MayContainBatch(keys, bitmap);
  const detail::FixedKeys source(*ops_, bits_, keys, detail::KeyForm::kU64);
  if (LookUpByNode(*ops_, bits_, layout_, storage_.get(), source, count, bitmap.data(), pool)) return;
  InSlices(pool, count, [&](size_t first, size_t size) {
    MayContainBatch(keys.subspan(first, size), bitmap.subspan(first / 64, WordsFor(size)));
  });
}
void FilterReader::MayContainBatch(std::span<const std::string_view> keys, std::span<uint64_t> bitmap,
                                   ThreadPool& pool) const noexcept {
  const size_t count = Covered(keys.size(), bitmap.size());
  if (pool.threads() == 1 || count < kFewestKeys) return MayContainBatch(keys, bitmap);
  const detail::StringKeys source(keys, bits_.seed);
  if (LookUpByNode(*ops_, bits_, layout_, storage_.get(), source, count, bitmap.data(), pool)) return;
  InSlices(pool, count, [&](size_t first, size_t size) {
    MayContainBatch(keys.subspan(first, size), bitmap.subspan(first / 64, WordsFor(size)));
  });
}
void FilterReader::MayContainHashBatch(std::span<const uint64_t> hashes, std::span<uint64_t> bitmap,
                                       ThreadPool& pool) const noexcept {
  const size_t count = Covered(hashes.size(), bitmap.size());
  if (pool.threads() == 1 || count < kFewestKeys) return MayContainHashBatch(hashes, bitmap);
  const detail::FixedKeys source(*ops_, bits_, hashes, detail::KeyForm::kHash);
  if (LookUpByNode(*ops_, bits_, layout_, storage_.get(), source, count, bitmap.data(), pool)) return;
  InSlices(pool, count, [&](size_t first, size_t size) {
    MayContainHashBatch(hashes.subspan(first, size), bitmap.subspan(first / 64, WordsFor(size)));
  });
}

}  // namespace bloomline
