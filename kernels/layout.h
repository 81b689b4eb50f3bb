// The layouts as constexpr descriptions, and the scalar oracle that every kernel is tested against.
//
// A key becomes a 64-bit hash h. The block is floor(h · blocks / 2^64). The bits inside the block come from g:
//
//   g0 = h · 0x9e3779b97f4a7c15,  g1 = g0 · 0xd1342543de82ef95,  g2 = g1 · 0xd1342543de82ef95   (mod 2^64)
//
// read from the top bit of g0 down. A field never straddles two words: the low bits left over are dropped.
//
//   line512, k = 7        63                                                              0
//                         | w0 b0 | w1 b1 | w2 b2 | w3 b3 | w4 b4 | w5 b5 | w6 b6 | - |     w: 3 bits, b: 6 bits
//   sector512z2, k = 6    | W0 | b0 | b1 | b2 | W1 | b3 | b4 | b5 |          unused         W: 2 bits, b: 6 bits
//   word64 (z1), k = 5    | W0 | b0 | b1 | b2 | b3 | b4 |                    unused         W: 3 bits, b: 6 bits
//   split512 (z8), k = 8  | b0 | b1 | b2 | b3 | b4 | b5 | b6 | b7 |          unused         b: 6 bits
//
//   the line (512 bits = 8 words of 64; bit i of the line is bit i % 64 of word i / 64)
//     words   0   1   2   3   4   5   6   7
//     z1     |------------- zone 0 ---------|    one word of 8 holds all k bits
//     z2     |--- zone 0 ---|--- zone 1 ----|    one word of 4 in each zone holds k/2 bits
//     z4     |  z0   |  z1  |  z2   |  z3   |    one word of 2 in each zone holds k/4 bits
//     z8     |z0 |z1 |z2 |z3|z4 |z5 |z6 |z7 |    every word holds k/8 bits
//
// split256 is the block of Apache Parquet's split-block Bloom filter (its BloomFilter.md): 8 lanes of 32 bits, lane i
// holds bit (low32(h) · salt[i]) >> 27, block = ((h >> 32) · blocks) >> 32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "bloomline/detail/block_ops.h"
#include "bloomline/layout.h"

namespace bloomline::kernels {

inline constexpr uint64_t kFirstG = 0x9e3779b97f4a7c15;
inline constexpr uint64_t kNextG = 0xd1342543de82ef95;
inline constexpr int kMaxPlanes = 3;  // words of g that a key may need: line512 with k = 15 and 16
inline constexpr std::array<uint32_t, 8> kSplit256Salts = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                                           0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

// Where one of a key's k bits is: word_base + word field, bit field. `plane` says in which word of g a field lies.
struct Probe {
  uint8_t word_base = 0;
  uint8_t word_plane = 0;
  uint8_t word_shift = 0;
  uint8_t word_bits = 0;  // 0: the word is word_base
  uint8_t bit_plane = 0;
  uint8_t bit_shift = 0;  // 6 bits wide
};

// A layout with its k, as a template argument of the kernels.
struct SpecId {
  Layout layout = Layout::kSplit512;
  int k = 8;
};

// What a layout with its k means.
struct Spec {
  Layout layout = Layout::kSplit512;
  int k = 8;
  int zones = 8;
  int planes = 1;         // words of g
  Probe probes[16] = {};  // k of them, in the order in which their bits are read; empty for split256

  constexpr bool is_split256() const { return layout == Layout::kSplit256; }
  constexpr bool is_line() const { return layout == Layout::kLine512; }
  constexpr int probes_per_zone() const { return k / zones; }
  constexpr size_t words_per_block() const { return is_split256() ? 4 : 8; }
  constexpr size_t block_bytes() const { return words_per_block() * 8; }
};

namespace detail_layout {
// Hands out fields from the top of g down.
struct FieldReader {
  int plane = 0;
  int left = 64;
  constexpr uint8_t Take(int bits) {
    if (left < bits) {
      ++plane;
      left = 64;
    }
    left -= bits;
    return static_cast<uint8_t>(left);
  }
};
}  // namespace detail_layout

// Only for (layout, k) with IsValidHashCount.
constexpr Spec Describe(Layout layout, int k) {
  Spec spec;
  spec.layout = layout;
  spec.k = k;
  spec.zones = 1;
  if (layout == Layout::kSplit256) {
    spec.zones = 8;
    return spec;
  }
  detail_layout::FieldReader reader;
  if (layout == Layout::kLine512) {
    for (int i = 0; i < k; ++i) {
      const uint8_t shift = reader.Take(9);
      const auto plane = static_cast<uint8_t>(reader.plane);
      spec.probes[i] = {0, plane, static_cast<uint8_t>(shift + 6), 3, plane, shift};
    }
  } else {
    const int log2_zones = static_cast<int>(layout) - static_cast<int>(Layout::kSector512z1);
    spec.zones = 1 << log2_zones;
    const int words = 8 / spec.zones;
    for (int zone = 0; zone < spec.zones; ++zone) {
      const int word_bits = 3 - log2_zones;
      const uint8_t word_shift = word_bits == 0 ? uint8_t{0} : reader.Take(word_bits);
      const auto word_plane = static_cast<uint8_t>(reader.plane);
      for (int i = 0; i < k / spec.zones; ++i) {
        const uint8_t bit_shift = reader.Take(6);
        spec.probes[zone * (k / spec.zones) + i] = {
            static_cast<uint8_t>(zone * words), word_plane, word_shift, static_cast<uint8_t>(word_bits),
            static_cast<uint8_t>(reader.plane), bit_shift};
      }
    }
  }
  spec.planes = reader.plane + 1;
  return spec;
}

template <SpecId kId>
inline constexpr Spec kSpecOf = Describe(kId.layout, kId.k);

// ---- The oracle: slow, plain, the meaning of every layout.

// The bits of one key in its block; split256 uses words 0 … 3.
struct LineMask {
  uint64_t words[8] = {};
};

constexpr LineMask MaskOf(const Spec& spec, uint64_t hash) {
  LineMask mask;
  if (spec.is_split256()) {
    for (size_t lane = 0; lane < 8; ++lane) {
      const uint32_t bit = (static_cast<uint32_t>(hash) * kSplit256Salts[lane]) >> 27;
      mask.words[lane / 2] |= uint64_t{1} << (32 * (lane % 2) + bit);
    }
    return mask;
  }
  uint64_t g[kMaxPlanes] = {hash * kFirstG, 0, 0};
  for (int i = 1; i < spec.planes; ++i) g[i] = g[i - 1] * kNextG;
  for (int i = 0; i < spec.k; ++i) {
    const Probe& p = spec.probes[i];
    const uint64_t word = p.word_base + ((g[p.word_plane] >> p.word_shift) & ((uint64_t{1} << p.word_bits) - 1));
    mask.words[word] |= uint64_t{1} << ((g[p.bit_plane] >> p.bit_shift) & 63);
  }
  return mask;
}
constexpr LineMask MaskOf(Layout layout, int k, uint64_t hash) { return MaskOf(Describe(layout, k), hash); }

__extension__ typedef unsigned __int128 Uint128;

// The block's index, below `blocks`. One wide multiplication; vectors, which have none, take two of 32 × 32 bits
// (hash-inl.h), which is the same for blocks < 2^32.
constexpr uint64_t BlockOf(Layout layout, uint64_t hash, uint64_t blocks) {
  if (layout == Layout::kSplit256) return ((hash >> 32) * blocks) >> 32;
  return static_cast<uint64_t>((static_cast<Uint128>(hash) * blocks) >> 64);
}

constexpr size_t WordsPerBlock(Layout layout) { return layout == Layout::kSplit256 ? 4 : 8; }

// Sets the key's bits; returns whether any changed.
constexpr bool MarkKey(Layout layout, int k, uint64_t* words, uint64_t blocks, uint64_t hash) {
  const size_t size = WordsPerBlock(layout);
  uint64_t* block = words + BlockOf(layout, hash, blocks) * size;
  const LineMask mask = MaskOf(layout, k, hash);
  uint64_t changed = 0;
  for (size_t i = 0; i < size; ++i) {
    changed |= mask.words[i] & ~block[i];
    block[i] |= mask.words[i];
  }
  return changed != 0;
}

// Whether all of the key's bits are set.
constexpr bool TestKey(Layout layout, int k, const uint64_t* words, uint64_t blocks, uint64_t hash) {
  const size_t size = WordsPerBlock(layout);
  const uint64_t* block = words + BlockOf(layout, hash, blocks) * size;
  const LineMask mask = MaskOf(layout, k, hash);
  uint64_t missing = 0;
  for (size_t i = 0; i < size; ++i) missing |= mask.words[i] & ~block[i];
  return missing == 0;
}

}  // namespace bloomline::kernels
