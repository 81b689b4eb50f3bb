// What a filter calls: one table of function pointers per (layout, k, target), chosen when the filter is made.
// Not part of the public API; here because one-key lookups are inline up to the indirect call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bloomline::detail {

// All that a kernel needs to know of a filter.
struct BlockBits {
  uint64_t* words = nullptr;  // the blocks, 64-byte aligned
  uint64_t blocks = 0;        // 1 … 2^32 − 1
  uint64_t seed = 0;
  uint32_t prefetch = 0;      // nonzero: the filter is larger than the cache it should live in
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
};

// The 64-bit mixer of u64 keys: a bijection, so that two keys never share a hash. xor-shift-multiply twice, with the
// multiplier of P. Evensen / degski's 64-bit mixers; which hash a filter uses is part of its format.
inline constexpr uint64_t kMixMultiplier = 0xd6e8feb86659fd93;
constexpr uint64_t Mix(uint64_t key, uint64_t seed) noexcept {
  uint64_t x = key ^ seed;
  x = (x ^ (x >> 32)) * kMixMultiplier;
  x = (x ^ (x >> 32)) * kMixMultiplier;
  return x ^ (x >> 32);
}

}  // namespace bloomline::detail
