// What a filter calls: one table of function pointers per (layout, k, target), chosen when the filter is made.
// Not part of the public API; here because one-key lookups are inline up to the indirect call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bloomline/export.h"

namespace bloomline::detail {

struct BlockOps;
struct CountingOps;

// The copies of a filter that has one per NUMA node. BlockBits::words is copy 0. Kernels never look here: a replicated
// filter has a table of its own, which calls the kernels once per copy, or for the copy that is near
// (engine/replicas.h).
struct Replicas {
  const BlockOps* ops = nullptr;
  const CountingOps* counting_ops = nullptr;
  uint64_t* const* copies = nullptr;
  size_t count = 0;
  const uint16_t* copy_of_cpu = nullptr;
  size_t cpus = 0;
};

// All that a kernel needs to know of a filter.
struct BlockBits {
  uint64_t* words = nullptr;  // the blocks, 64-byte aligned
  uint64_t blocks = 0;        // 1 … 2^32 − 1
  uint64_t seed = 0;
  uint32_t prefetch = 0;  // nonzero: the filter is larger than the cache it should live in
  const Replicas* replicas = nullptr;
};

// A batch of fixed-width keys at any alignment.
enum class KeyForm : uint8_t { kU64, kU32, kHash };
struct KeySpan {
  const void* data = nullptr;
  size_t size = 0;  // keys, not bytes
  KeyForm form = KeyForm::kU64;
};

struct BlockOps {
  bool (*contains)(const BlockBits& bits, uint64_t hash) noexcept;
  void (*insert)(const BlockBits& bits, uint64_t hash) noexcept;
  bool (*try_insert)(const BlockBits& bits, uint64_t hash) noexcept;  // whether a bit changed
  // Writes ceil(keys.size / 64) words, unused bits zero.
  void (*contains_batch)(const BlockBits& bits, const KeySpan& keys, uint64_t* bitmap) noexcept;
  void (*insert_batch)(const BlockBits& bits, const KeySpan& keys) noexcept;
  void (*try_insert_batch)(const BlockBits& bits, const KeySpan& keys, uint64_t* changed) noexcept;
  // Writes the hashes of the keys, keys.size of them; the same for every layout.
  void (*hash_batch)(const BlockBits& bits, const KeySpan& keys, uint64_t* hashes) noexcept;
  // The same beside other threads' shared_… calls: bits are set by relaxed atomic ORs, none is lost. Lookups are
  // contains and contains_batch themselves, but for builds with ThreadSanitizer.
  bool (*shared_contains)(const BlockBits& bits, uint64_t hash) noexcept;
  bool (*shared_try_insert)(const BlockBits& bits, uint64_t hash) noexcept;
  void (*shared_contains_batch)(const BlockBits& bits, const KeySpan& keys, uint64_t* bitmap) noexcept;
  void (*shared_insert_batch)(const BlockBits& bits, const KeySpan& keys) noexcept;
  void (*shared_try_insert_batch)(const BlockBits& bits, const KeySpan& keys, uint64_t* changed) noexcept;
};

// What a key does that meets a full counter under the spill policy: called from the kernels, in the keys' order.
struct SpillHandler {
  void* context = nullptr;
  // `block` is the key's block, `g` its word of counter positions. Returns whether the key was added or removed.
  bool (*add)(void* context, uint64_t block, uint64_t g) noexcept = nullptr;
  bool (*remove)(void* context, uint64_t block, uint64_t g) noexcept = nullptr;
};

// The operations that only counters have: one table per (layout, policy, target). Lookups are in BlockOps. `spill` is
// used under the spill policy only; `refused` and `absent` as bitmaps, ceil(keys.size / 64) words, unused bits zero, or
// null where nobody asks; the batches return how many of their bits are set.
struct CountingOps {
  uint32_t (*count)(const BlockBits& bits, uint64_t hash) noexcept;  // the smallest of the key's counters
  bool (*add)(const BlockBits& bits, uint64_t hash, const SpillHandler& spill) noexcept;     // false: refused
  bool (*remove)(const BlockBits& bits, uint64_t hash, const SpillHandler& spill) noexcept;  // false: absent
  void (*count_batch)(const BlockBits& bits, const KeySpan& keys, uint32_t* counts) noexcept;
  size_t (*add_batch)(const BlockBits& bits, const KeySpan& keys, uint64_t* refused,
                      const SpillHandler& spill) noexcept;
  size_t (*remove_batch)(const BlockBits& bits, const KeySpan& keys, uint64_t* absent,
                         const SpillHandler& spill) noexcept;
};

// The 64-bit mixer of u64 keys: a bijection, so that two keys never share a hash; part of the format. Two rounds of
// xor-shift-multiply (the multiplier is that of the "degski" mixer), where the first round's shift is a Feistel step:
// the plain x ^ (x >> 32) wipes out the low half of keys whose halves are equal, and their FPR is then off by 2 times.
// Tried on the grid of structured keys in tests/fpr_measured_test.cc and dropped: x >> 29 instead (fails for keys
// i << 29 | i), one multiplication only (fails for plain counters).
inline constexpr uint64_t kMixMultiplier = 0xd6e8feb86659fd93;
inline constexpr uint32_t kMixFold = 0x9e3779b9;
BLOOMLINE_INLINE constexpr uint64_t MixMasked(uint64_t key, uint64_t mask) noexcept {
  uint64_t x = key ^ mask;
  x = (x ^ (((x >> 32) * kMixFold) >> 32)) * kMixMultiplier;
  x = (x ^ (x >> 32)) * kMixMultiplier;
  return x ^ (x >> 32);
}

// What a seed does to a key: flips the bits of a mask that shares nothing with small seeds. With the seed itself as the
// mask, seeds 0 and 1 would give dense integer keys the same set of hashes.
BLOOMLINE_INLINE constexpr uint64_t KeyMask(uint64_t seed) noexcept { return MixMasked(seed, 0x2545f4914f6cdd1d); }

BLOOMLINE_INLINE constexpr uint64_t Mix(uint64_t key, uint64_t seed) noexcept { return MixMasked(key, KeyMask(seed)); }

}  // namespace bloomline::detail
