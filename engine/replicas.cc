#include "engine/replicas.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "engine/filter_access.h"
#include "engine/spill_counters.h"
#include "kernels/layout.h"

namespace bloomline::detail {
namespace {

BlockBits CopyOf(const BlockBits& bits, size_t copy) noexcept {
  BlockBits result = bits;
  result.words = bits.replicas->copies[copy];
  result.replicas = nullptr;
  return result;
}

BlockBits NearBits(const BlockBits& bits) noexcept { return CopyOf(bits, NearCopy(*bits.replicas)); }

template <class Body>
void ForOtherCopies(const BlockBits& bits, const Body& body) noexcept {
  for (size_t copy = 1; copy < bits.replicas->count; ++copy) body(CopyOf(bits, copy));
}

// ---- Bits. The others' answers are those of copy 0, unless a copy was corrupted.

template <auto kOperation>
bool LookUp(const BlockBits& bits, uint64_t hash) noexcept {
  return (bits.replicas->ops->*kOperation)(NearBits(bits), hash);
}
template <auto kOperation>
void LookUpBatch(const BlockBits& bits, const KeySpan& keys, uint64_t* bitmap) noexcept {
  (bits.replicas->ops->*kOperation)(NearBits(bits), keys, bitmap);
}

void Insert(const BlockBits& bits, uint64_t hash) noexcept {
  for (size_t copy = 0; copy < bits.replicas->count; ++copy) bits.replicas->ops->insert(CopyOf(bits, copy), hash);
}
template <auto kOperation>
void InsertBatch(const BlockBits& bits, const KeySpan& keys) noexcept {
  for (size_t copy = 0; copy < bits.replicas->count; ++copy) {
    (bits.replicas->ops->*kOperation)(CopyOf(bits, copy), keys);
  }
}

template <auto kOperation>
bool TryInsert(const BlockBits& bits, uint64_t hash) noexcept {
  const BlockOps& ops = *bits.replicas->ops;
  const bool changed = (ops.*kOperation)(CopyOf(bits, 0), hash);
  ForOtherCopies(bits, [&](const BlockBits& copy) { (ops.*kOperation)(copy, hash); });
  return changed;
}
template <auto kTry, auto kInsert>
void TryInsertBatch(const BlockBits& bits, const KeySpan& keys, uint64_t* changed) noexcept {
  const BlockOps& ops = *bits.replicas->ops;
  (ops.*kTry)(CopyOf(bits, 0), keys, changed);
  ForOtherCopies(bits, [&](const BlockBits& copy) { (ops.*kInsert)(copy, keys); });
}

void HashBatch(const BlockBits& bits, const KeySpan& keys, uint64_t* hashes) noexcept {
  bits.replicas->ops->hash_batch(bits, keys, hashes);
}

constexpr BlockOps kReplicatedOps = {
    &LookUp<&BlockOps::contains>,
    &Insert,
    &TryInsert<&BlockOps::try_insert>,
    &LookUpBatch<&BlockOps::contains_batch>,
    &InsertBatch<&BlockOps::insert_batch>,
    &TryInsertBatch<&BlockOps::try_insert_batch, &BlockOps::insert_batch>,
    &HashBatch,
    &LookUp<&BlockOps::shared_contains>,
    &TryInsert<&BlockOps::shared_try_insert>,
    &LookUpBatch<&BlockOps::shared_contains_batch>,
    &InsertBatch<&BlockOps::shared_insert_batch>,
    &TryInsertBatch<&BlockOps::shared_try_insert_batch, &BlockOps::shared_insert_batch>,
};

// ---- Counters. What an addition does depends on the counters and, under spill, on the side table, which there is one
// of: it is done on copy 0, and the lines that it touched are copied.

constexpr size_t kHashChunk = 64;

void CopyLine(const BlockBits& bits, uint64_t hash) noexcept {
  const uint64_t block = kernels::BlockOf(Layout::kSplit512, hash, bits.blocks);
  const size_t at = static_cast<size_t>(block) * kWordsPerLine;
  for (size_t copy = 1; copy < bits.replicas->count; ++copy) {
    std::memcpy(bits.replicas->copies[copy] + at, bits.replicas->copies[0] + at, kWordsPerLine * sizeof(uint64_t));
  }
}

void CopyLines(const BlockBits& bits, const KeySpan& keys) noexcept {
  uint64_t hashes[kHashChunk];
  const size_t key_bytes = keys.form == KeyForm::kU32 ? sizeof(uint32_t) : sizeof(uint64_t);
  for (size_t first = 0; first < keys.size; first += kHashChunk) {
    const KeySpan some{static_cast<const std::byte*>(keys.data) + first * key_bytes,
                       std::min(kHashChunk, keys.size - first), keys.form};
    bits.replicas->ops->hash_batch(bits, some, hashes);
    for (size_t i = 0; i < some.size; ++i) CopyLine(bits, hashes[i]);
  }
}

uint32_t Count(const BlockBits& bits, uint64_t hash) noexcept {
  return bits.replicas->counting_ops->count(NearBits(bits), hash);
}
void CountBatch(const BlockBits& bits, const KeySpan& keys, uint32_t* counts) noexcept {
  bits.replicas->counting_ops->count_batch(NearBits(bits), keys, counts);
}

template <auto kOperation>
bool Change(const BlockBits& bits, uint64_t hash, const SpillHandler& spill) noexcept {
  const bool done = (bits.replicas->counting_ops->*kOperation)(CopyOf(bits, 0), hash, spill);
  if (done) CopyLine(bits, hash);
  return done;
}
template <auto kOperation>
size_t ChangeBatch(const BlockBits& bits, const KeySpan& keys, uint64_t* failed, const SpillHandler& spill) noexcept {
  const size_t count = (bits.replicas->counting_ops->*kOperation)(CopyOf(bits, 0), keys, failed, spill);
  CopyLines(bits, keys);
  return count;
}

constexpr CountingOps kReplicatedCountingOps = {
    &Count,
    &Change<&CountingOps::add>,
    &Change<&CountingOps::remove>,
    &CountBatch,
    &ChangeBatch<&CountingOps::add_batch>,
    &ChangeBatch<&CountingOps::remove_batch>,
};

}  // namespace

const BlockOps& ReplicatedOps() noexcept { return kReplicatedOps; }
const CountingOps& ReplicatedCountingOps() noexcept { return kReplicatedCountingOps; }

size_t NearCopy(const Replicas& replicas) noexcept {
  const int cpu = sched_getcpu();
  return cpu >= 0 && static_cast<size_t>(cpu) < replicas.cpus ? replicas.copy_of_cpu[cpu] : 0;
}

void CopyToOthers(const Replicas& replicas, size_t words) noexcept {
  constexpr size_t kPageWords = 4096 / sizeof(uint64_t);
  const uint64_t* from = replicas.copies[0];
  for (size_t copy = 1; copy < replicas.count; ++copy) {
    uint64_t* to = replicas.copies[copy];
    for (size_t first = 0; first < words; first += kPageWords) {
      const size_t bytes = std::min(kPageWords, words - first) * sizeof(uint64_t);
      if (std::memcmp(from + first, to + first, bytes) != 0) std::memcpy(to + first, from + first, bytes);
    }
  }
}

const Replicas* ReplicasOf(const FilterReader& filter) noexcept { return FilterAccess::ReplicasOf(filter); }

}  // namespace bloomline::detail
