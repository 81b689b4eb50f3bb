// Keys as the kernels take them: fixed-width keys as they lie, byte strings through chunks of hashes on the stack.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "bloomline/detail/block_ops.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bloomline::detail {

// Hashes held on the stack between hashing strings and probing: 4 words of a bitmap.
inline constexpr size_t kStringChunk = 256;

// HashBytes for the batch loops: the exported function may be replaced at link time, so that the compiler would call
// it.
inline uint64_t HashString(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

constexpr size_t WordsFor(size_t keys) { return keys / 64 + (keys % 64 != 0); }

// The keys that a bitmap of `words` words has bits for.
constexpr size_t Covered(size_t keys, size_t words) { return words >= WordsFor(keys) ? keys : words * 64; }

// The same for a bitmap that may be left out: an empty one covers all keys.
constexpr size_t CoveredOrAll(size_t keys, std::span<const uint64_t> bitmap) {
  return bitmap.empty() ? keys : Covered(keys, bitmap.size());
}
// Where the bits of key `first`, a multiple of 64, go; null where the bitmap is left out.
inline uint64_t* WordsFrom(std::span<uint64_t> bitmap, size_t first) {
  return bitmap.empty() ? nullptr : bitmap.data() + first / 64;
}

// Key i. Arrays of integer keys may lie at any address, where a plain access is undefined and UBSan says so.
template <class Integer>
requires std::is_integral_v<Integer> Integer KeyAt(std::span<const Integer> keys, size_t i) {
  Integer key;
  std::memcpy(&key, reinterpret_cast<const char*>(keys.data()) + i * sizeof(Integer), sizeof(Integer));
  return key;
}
template <class Strings>
std::string_view KeyAt(const Strings& keys, size_t i) {
  return keys[i];
}

inline KeySpan Keys(std::span<const uint64_t> keys, size_t first, size_t count) {
  return {keys.data() + first, count, KeyForm::kU64};
}
inline KeySpan Keys(std::span<const uint32_t> keys, size_t first, size_t count) {
  return {keys.data() + first, count, KeyForm::kU32};
}
inline KeySpan Hashes(const uint64_t* hashes, size_t count) { return {hashes, count, KeyForm::kHash}; }

// Calls body(first, hashes) for chunks of the strings; `first` is a multiple of 64.
template <class Strings, class Body>
void ForHashChunks(const Strings& keys, size_t count, uint64_t seed, const Body& body) {
  uint64_t hashes[kStringChunk];
  for (size_t first = 0; first < count; first += kStringChunk) {
    const size_t size = std::min(kStringChunk, count - first);
    for (size_t i = 0; i < size; ++i) hashes[i] = HashString(keys[first + i], seed);
    body(first, Hashes(hashes, size));
  }
}

}  // namespace bloomline::detail
