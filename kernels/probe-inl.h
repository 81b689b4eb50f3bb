// Stage B, horizontal: one key against its block. Every function takes the block and the key's words of g (h itself for
// split256), and touches nothing else of memory.
// Per-target include guard.
#if defined(BLOOMLINE_KERNELS_PROBE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BLOOMLINE_KERNELS_PROBE_INL_H_
#undef BLOOMLINE_KERNELS_PROBE_INL_H_
#else
#define BLOOMLINE_KERNELS_PROBE_INL_H_
#endif

#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/stash-inl.h"

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#include <immintrin.h>
#endif

#undef BLOOMLINE_THREAD_SANITIZER
#if defined(__SANITIZE_THREAD__)
#define BLOOMLINE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BLOOMLINE_THREAD_SANITIZER 1
#endif
#endif
#ifndef BLOOMLINE_THREAD_SANITIZER
#define BLOOMLINE_THREAD_SANITIZER 0
#endif

HWY_BEFORE_NAMESPACE();
namespace bloomline::kernels {
namespace HWY_NAMESPACE {

// Whether a line is best tested by vectors: from 256 bits on, and on NEON and SVE, which shift lanes by variables.
#undef BLOOMLINE_VECTOR_PROBE
#if BLOOMLINE_VECTOR_HASH || HWY_ARCH_ARM
#define BLOOMLINE_VECTOR_PROBE 1
#else
#define BLOOMLINE_VECTOR_PROBE 0
#endif

// ---- Scalar: the bits one after another, without a branch. Spelled out by pack expansion: as loops, compilers stop
// unrolling at 13 bits or so, and then read the fields' places from memory (measured: 2 to 4 times slower).

template <SpecId kId, size_t kIndex>
struct ScalarProbe {
  static constexpr Probe kProbe = kSpecOf<kId>.probes[kIndex];
  static HWY_INLINE uint64_t Word(const uint64_t* HWY_RESTRICT g) {
    return kProbe.word_base + ((g[kProbe.word_plane] >> kProbe.word_shift) & ((uint64_t{1} << kProbe.word_bits) - 1));
  }
  static HWY_INLINE uint64_t Bit(const uint64_t* HWY_RESTRICT g) {
    return (g[kProbe.bit_plane] >> kProbe.bit_shift) & 63;
  }

  static HWY_INLINE uint64_t Test(const uint64_t* HWY_RESTRICT block, const uint64_t* HWY_RESTRICT g) {
    return block[Word(g)] >> Bit(g);
  }
  static HWY_INLINE uint64_t Mark(uint64_t* HWY_RESTRICT block, const uint64_t* HWY_RESTRICT g) {
    const uint64_t mask = uint64_t{1} << Bit(g);
    const uint64_t changed = mask & ~block[Word(g)];
    block[Word(g)] |= mask;
    return changed;
  }
};

// One lane of split256; g[0] is h.
template <size_t kLane>
struct ScalarLane {
  static HWY_INLINE uint64_t Bit(const uint64_t* HWY_RESTRICT g) {
    return 32 * (kLane % 2) + ((static_cast<uint32_t>(g[0]) * kSplit256Salts[kLane]) >> 27);
  }
  static HWY_INLINE uint64_t Test(const uint64_t* HWY_RESTRICT block, const uint64_t* HWY_RESTRICT g) {
    return block[kLane / 2] >> Bit(g);
  }
  static HWY_INLINE uint64_t Mark(uint64_t* HWY_RESTRICT block, const uint64_t* HWY_RESTRICT g) {
    const uint64_t mask = uint64_t{1} << Bit(g);
    const uint64_t changed = mask & ~block[kLane / 2];
    block[kLane / 2] |= mask;
    return changed;
  }
};

template <SpecId kId, size_t kIndex>
using ScalarBit = std::conditional_t<kSpecOf<kId>.is_split256(), ScalarLane<kIndex % 8>, ScalarProbe<kId, kIndex>>;

template <SpecId kId, size_t... kIndex>
HWY_INLINE uint64_t TestBits(const uint64_t* HWY_RESTRICT block, const uint64_t* HWY_RESTRICT g,
                             std::index_sequence<kIndex...>) {
  return (ScalarBit<kId, kIndex>::Test(block, g) & ...) & 1;
}
template <SpecId kId, size_t... kIndex>
HWY_INLINE uint64_t MarkBits(uint64_t* HWY_RESTRICT block, const uint64_t* HWY_RESTRICT g,
                             std::index_sequence<kIndex...>) {
  uint64_t changed = 0;
  ((changed |= ScalarBit<kId, kIndex>::Mark(block, g)), ...);
  return changed;
}

template <SpecId kId>
HWY_INLINE bool TestScalar(const uint64_t* HWY_RESTRICT block, const uint64_t* HWY_RESTRICT g) {
  return TestBits<kId>(block, g, std::make_index_sequence<static_cast<size_t>(kSpecOf<kId>.k)>()) != 0;
}

// Sets the bits; returns those that were clear before, of no particular position: nonzero means changed.
template <SpecId kId>
HWY_INLINE uint64_t MarkScalar(uint64_t* HWY_RESTRICT block, const uint64_t* HWY_RESTRICT g) {
  return MarkBits<kId>(block, g, std::make_index_sequence<static_cast<size_t>(kSpecOf<kId>.k)>());
}

// ---- Vector.

// Probe i of a key sits in lane i % 8 of step i / 8; lanes beyond k repeat probe 0, which changes no answer.
template <SpecId kId>
struct LaneFields {
  static constexpr int kSteps = (kSpecOf<kId>.k + 7) / 8;
  HWY_ALIGN uint64_t bit_shift[kSteps][8] = {};
  HWY_ALIGN uint64_t word_shift[kSteps][8] = {};
  HWY_ALIGN uint64_t word_base[kSteps][8] = {};
  HWY_ALIGN uint64_t word_mask[kSteps][8] = {};
  uint8_t bit_lanes[kSteps][kMaxPlanes] = {};   // lanes whose bit field lies in plane p
  uint8_t word_lanes[kSteps][kMaxPlanes] = {};  // and whose word field does
  bool select_words = false;                    // false: lane i tests word i (split512)

  constexpr LaneFields() {
    for (int s = 0; s < kSteps; ++s) {
      for (int lane = 0; lane < 8; ++lane) {
        int i = s * 8 + lane;
        if (kSpecOf<kId>.zones == 8) i = lane * kSteps + s;  // lane = word
        const Probe& p = kSpecOf<kId>.probes[i < kSpecOf<kId>.k ? i : 0];
        bit_shift[s][lane] = p.bit_shift;
        word_shift[s][lane] = p.word_shift;
        word_base[s][lane] = p.word_base;
        word_mask[s][lane] = (uint64_t{1} << p.word_bits) - 1;
        bit_lanes[s][p.bit_plane] = static_cast<uint8_t>(bit_lanes[s][p.bit_plane] | (1 << lane));
        word_lanes[s][p.word_plane] = static_cast<uint8_t>(word_lanes[s][p.word_plane] | (1 << lane));
        select_words = select_words || p.word_bits != 0;
      }
    }
  }
};
template <SpecId kId>
inline constexpr LaneFields<kId> kLaneFields{};

#if BLOOMLINE_VECTOR_PROBE

alignas(64) inline constexpr uint32_t kSaltLanes[8] = {kSplit256Salts[0], kSplit256Salts[1], kSplit256Salts[2],
                                                       kSplit256Salts[3], kSplit256Salts[4], kSplit256Salts[5],
                                                       kSplit256Salts[6], kSplit256Salts[7]};

// The mask of a key over lanes w … of a split256 block.
template <class D>
HWY_INLINE hn::Vec<D> Split256Mask(D d, uint64_t h, size_t w) {
  const auto product = hn::Mul(hn::Set(d, static_cast<uint32_t>(h)), hn::Load(d, kSaltLanes + w));
  return hn::Shl(hn::Set(d, 1), hn::ShiftRight<27>(product));
}

#endif

#if BLOOMLINE_AVX3

// The lanes' words of g: lane i gets g[plane of lane i].
template <int kPlanes>
HWY_INLINE __m512i SpreadG(const uint64_t* HWY_RESTRICT g, const uint8_t (&lanes)[kMaxPlanes]) {
  __m512i spread = _mm512_set1_epi64(static_cast<int64_t>(g[0]));
  for (size_t p = 1; p < static_cast<size_t>(kPlanes); ++p) {
    if (lanes[p] == 0xff) {
      spread = _mm512_set1_epi64(static_cast<int64_t>(g[p * kChunk]));
    } else if (lanes[p] != 0) {
      spread = _mm512_mask_set1_epi64(spread, lanes[p], static_cast<int64_t>(g[p * kChunk]));
    }
  }
  return spread;
}

// Field `shift` of each lane, 6 bits wide, in the low bits; the bits above are left as they come.
HWY_INLINE __m512i ShiftToField(__m512i g, const uint64_t* shifts) {
#if HWY_TARGET <= HWY_AVX3_DL
  return _mm512_multishift_epi64_epi8(_mm512_load_si512(shifts), g);
#else
  return _mm512_srlv_epi64(g, _mm512_load_si512(shifts));
#endif
}

// Lanes in which the word's bit `field` (mod 64) is set.
HWY_INLINE __mmask8 TestFields(__m512i words, __m512i field) {
  const __m512i one = _mm512_set1_epi64(1);
#if HWY_TARGET <= HWY_AVX3_DL
  // The low byte of each lane takes the word's bits from `field` on: one instruction where a mask takes two.
  return _mm512_test_epi64_mask(_mm512_multishift_epi64_epi8(field, words), one);
#else
  return _mm512_test_epi64_mask(words, _mm512_rolv_epi64(one, field));
#endif
}

template <SpecId kId>
HWY_INLINE __m512i SelectWords(__m512i line, const uint64_t* HWY_RESTRICT g, int step) {
  constexpr const auto& kFields = kLaneFields<kId>;
  if constexpr (!kFields.select_words) {
    return line;
  } else {
    __m512i index = _mm512_srlv_epi64(SpreadG<kSpecOf<kId>.planes>(g, kFields.word_lanes[step]),
                                      _mm512_load_si512(kFields.word_shift[step]));
    if constexpr (!kSpecOf<kId>.is_line()) {  // vpermq looks at three bits of the index only
      index = _mm512_ternarylogic_epi64(index, _mm512_load_si512(kFields.word_mask[step]),
                                        _mm512_load_si512(kFields.word_base[step]), 0xea);  // (a & b) | c
    }
    return _mm512_permutexvar_epi64(index, line);
  }
}

// Bit i: lane i passed. All ones: the key may be present. `words` is the key's block, or its word where
// OffsetsAreWords; g[p · kChunk] is its word of plane p.
template <SpecId kId>
HWY_INLINE __mmask8 TestLanes(const uint64_t* HWY_RESTRICT words, const uint64_t* HWY_RESTRICT g) {
  if constexpr (kSpecOf<kId>.is_split256()) {
    const hn::CappedTag<uint32_t, 8> d;
    const auto block = hn::Load(d, reinterpret_cast<const uint32_t*>(words));
    return _mm256_test_epi32_mask(block.raw, Split256Mask(d, g[0], 0).raw);
  } else {
    constexpr const auto& kFields = kLaneFields<kId>;
    constexpr bool kOneWord = OffsetsAreWords(kSpecOf<kId>);
    const __m512i line = kOneWord ? _mm512_set1_epi64(static_cast<int64_t>(*words)) : _mm512_load_si512(words);
    __mmask8 hit = 0xff;
    for (int s = 0; s < kFields.kSteps; ++s) {
      const __m512i field = ShiftToField(SpreadG<kSpecOf<kId>.planes>(g, kFields.bit_lanes[s]), kFields.bit_shift[s]);
      const __m512i selected = kOneWord ? line : SelectWords<kId>(line, g, s);
      const __mmask8 lanes = TestFields(selected, field);
      hit = s == 0 ? lanes : static_cast<__mmask8>(hit & lanes);
    }
    return hit;
  }
}

// The mask of a key over the whole line, z8 layouts.
template <SpecId kId>
HWY_INLINE __m512i MaskWords(const uint64_t* HWY_RESTRICT g) {
  constexpr const auto& kFields = kLaneFields<kId>;
  const __m512i one = _mm512_set1_epi64(1);
  __m512i mask = _mm512_setzero_si512();
  for (int s = 0; s < kFields.kSteps; ++s) {
    const __m512i field = _mm512_srlv_epi64(SpreadG<kSpecOf<kId>.planes>(g, kFields.bit_lanes[s]),
                                            _mm512_load_si512(kFields.bit_shift[s]));
    mask = _mm512_or_si512(mask, _mm512_rolv_epi64(one, field));
  }
  return mask;
}

#if HWY_TARGET <= HWY_AVX3_DL

// Whether the bytes of one 64-bit lane can hold all bit fields of a key, and the lane its only word: a vector then
// tests eight keys.
template <SpecId kId>
constexpr bool TestsKeyPerLane() {
  return OffsetsAreWords(kSpecOf<kId>) && kSpecOf<kId>.k <= 8 && kSpecOf<kId>.planes == 1;
}

// Byte i: where bit field i starts in g; bytes beyond k repeat field 0.
template <SpecId kId>
constexpr uint64_t FieldBytes() {
  uint64_t bytes = 0;
  for (int i = 0; i < 8; ++i) {
    bytes |= uint64_t{kSpecOf<kId>.probes[i < kSpecOf<kId>.k ? i : 0].bit_shift} << (8 * i);
  }
  return bytes;
}

// Bit j: key j's word has all of its bits. Each byte of a multishift takes eight bits of its lane from a bit on that
// the same byte of the control names: first the fields from g, then the bits that they name from the word.
template <SpecId kId>
HWY_INLINE __mmask8 TestKeys(const uint64_t* HWY_RESTRICT words, const uint64_t* HWY_RESTRICT g) {
  const __m512i starts = _mm512_set1_epi64(static_cast<int64_t>(FieldBytes<kId>()));
  const __m512i fields = _mm512_multishift_epi64_epi8(starts, _mm512_load_si512(g));
  const __m512i bits = _mm512_multishift_epi64_epi8(fields, _mm512_load_si512(words));
  const __m512i low_bits = _mm512_set1_epi8(1);
  return _mm512_testn_epi64_mask(_mm512_andnot_si512(bits, low_bits), low_bits);
}

#endif

#elif BLOOMLINE_VECTOR_PROBE

// The mask of a key over words w … w + Lanes(d) − 1 of its line, z8 layouts with one word of g.
template <SpecId kId, class D>
HWY_INLINE hn::Vec<D> MaskWords(D d, const uint64_t* HWY_RESTRICT g, size_t w) {
  constexpr const auto& kFields = kLaneFields<kId>;
  hn::Vec<D> mask = hn::Zero(d);
  for (int s = 0; s < kFields.kSteps; ++s) {
    const auto field = hn::And(hn::Shr(hn::Set(d, g[0]), hn::Load(d, kFields.bit_shift[s] + w)), hn::Set(d, 63));
    mask = hn::Or(mask, hn::Shl(hn::Set(d, 1), field));
  }
  return mask;
}

#endif  // BLOOMLINE_VECTOR_PROBE

// ---- What the batch loop calls. `g` has one word per plane, kChunk apart.

// Whether stage B of a layout has vector code on this target.
template <SpecId kId>
constexpr bool HasVectorProbe() {
  if (!BLOOMLINE_VECTOR_PROBE) return false;
  // Two words of g (sector512z8, k = 16) would have to be dealt to the lanes through memory: 18 ns against 9 on AVX2.
  return BLOOMLINE_AVX3 || kSpecOf<kId>.is_split256() || (kSpecOf<kId>.zones == 8 && kSpecOf<kId>.planes == 1);
}

template <SpecId kId>
HWY_INLINE bool TestBlock(const uint64_t* HWY_RESTRICT block, const uint64_t* HWY_RESTRICT g) {
#if BLOOMLINE_AVX3
  if constexpr (HasVectorProbe<kId>()) {
    const size_t word = OffsetsAreWords(kSpecOf<kId>) ? (g[0] >> kSpecOf<kId>.probes[0].word_shift) & 7 : 0;
    return TestLanes<kId>(block + word, g) == 0xff;
  } else {
#elif BLOOMLINE_VECTOR_PROBE
  if constexpr (kSpecOf<kId>.is_split256()) {
    const hn::CappedTag<uint32_t, 8> d;
    auto missing = hn::Zero(d);
    for (size_t w = 0; w < 8; w += hn::Lanes(d)) {
      missing = hn::Or(missing,
                       hn::AndNot(hn::Load(d, reinterpret_cast<const uint32_t*>(block) + w), Split256Mask(d, g[0], w)));
    }
    return hn::AllTrue(d, hn::Eq(missing, hn::Zero(d)));
  } else if constexpr (HasVectorProbe<kId>()) {
    const hn::CappedTag<uint64_t, 8> d;
    auto missing = hn::Zero(d);
    for (size_t w = 0; w < 8; w += hn::Lanes(d)) {
      missing = hn::Or(missing, hn::AndNot(hn::Load(d, block + w), MaskWords<kId>(d, g, w)));
    }
    return hn::AllTrue(d, hn::Eq(missing, hn::Zero(d)));
  } else {
#endif
    uint64_t planes[kMaxPlanes];
    for (int p = 0; p < kSpecOf<kId>.planes; ++p) planes[p] = g[static_cast<size_t>(p) * kChunk];
    return TestScalar<kId>(block, planes);
#if BLOOMLINE_VECTOR_PROBE
  }
#endif
}

// Sets the key's bits and says whether any changed; kWantChanged = false spares the comparison.
template <SpecId kId, bool kWantChanged>
HWY_INLINE bool MarkBlock(uint64_t* HWY_RESTRICT block, const uint64_t* HWY_RESTRICT g) {
#if BLOOMLINE_VECTOR_PROBE
  if constexpr (kSpecOf<kId>.is_split256()) {
    const hn::CappedTag<uint32_t, 8> d;
    auto missing = hn::Zero(d);
    for (size_t w = 0; w < 8; w += hn::Lanes(d)) {
      uint32_t* lanes = reinterpret_cast<uint32_t*>(block) + w;
      const auto mask = Split256Mask(d, g[0], w);
      const auto old = hn::Load(d, lanes);
      if constexpr (kWantChanged) missing = hn::Or(missing, hn::AndNot(old, mask));
      hn::Store(hn::Or(old, mask), d, lanes);
    }
    return kWantChanged && !hn::AllTrue(d, hn::Eq(missing, hn::Zero(d)));
  } else if constexpr (HasVectorProbe<kId>() && kSpecOf<kId>.zones == 8) {
#if BLOOMLINE_AVX3
    const __m512i mask = MaskWords<kId>(g);
    const __m512i old = _mm512_load_si512(block);
    const bool changed = kWantChanged && _mm512_test_epi64_mask(_mm512_andnot_si512(old, mask), mask) != 0;
    _mm512_store_si512(block, _mm512_or_si512(old, mask));
    return changed;
#else
    const hn::CappedTag<uint64_t, 8> d;
    auto missing = hn::Zero(d);
    for (size_t w = 0; w < 8; w += hn::Lanes(d)) {
      const auto mask = MaskWords<kId>(d, g, w);
      const auto old = hn::Load(d, block + w);
      if constexpr (kWantChanged) missing = hn::Or(missing, hn::AndNot(old, mask));
      hn::Store(hn::Or(old, mask), d, block + w);
    }
    return kWantChanged && !hn::AllTrue(d, hn::Eq(missing, hn::Zero(d)));
#endif
  } else {
#endif
    uint64_t planes[kMaxPlanes];
    for (int p = 0; p < kSpecOf<kId>.planes; ++p) planes[p] = g[static_cast<size_t>(p) * kChunk];
    return MarkScalar<kId>(block, planes) != 0;
#if BLOOMLINE_VECTOR_PROBE
  }
#endif
}

// ---- The same beside other threads: bits are set by relaxed atomic ORs, so that none is lost. Nothing else is
// ordered: a lookup that must find the key starts after the insert returned, and whatever told it so orders the two.

// Sets the bits of `mask` in a word; returns those that were clear when it looked. Words that have them all are not
// written: the line then stays shared between the cores' caches. What the OR itself found is not asked for: that takes
// a loop of compare-and-swap in place of one instruction.
HWY_INLINE uint64_t MarkSharedWord(uint64_t* word, uint64_t mask) {
  const std::atomic_ref<uint64_t> shared(*word);
  const uint64_t missing = mask & ~shared.load(std::memory_order_relaxed);
  if (missing != 0) shared.fetch_or(missing, std::memory_order_relaxed);
  return missing;
}

// The key's mask over its block, word by word; `words` of kBlockWords.
template <SpecId kId>
HWY_INLINE void BlockMask(const uint64_t* HWY_RESTRICT g, uint64_t* HWY_RESTRICT words) {
#if BLOOMLINE_AVX3
  if constexpr (HasVectorProbe<kId>() && kSpecOf<kId>.zones == 8 && !kSpecOf<kId>.is_split256()) {
    _mm512_store_si512(words, MaskWords<kId>(g));
    return;
  }
#elif BLOOMLINE_VECTOR_PROBE
    if constexpr (HasVectorProbe<kId>() && kSpecOf<kId>.zones == 8 && !kSpecOf<kId>.is_split256()) {
      const hn::CappedTag<uint64_t, 8> d;
      for (size_t w = 0; w < 8; w += hn::Lanes(d)) hn::Store(MaskWords<kId>(d, g, w), d, words + w);
      return;
    }
#endif
  std::memset(words, 0, kSpecOf<kId>.block_bytes());
  uint64_t planes[kMaxPlanes];
  for (int p = 0; p < kSpecOf<kId>.planes; ++p) planes[p] = g[static_cast<size_t>(p) * kChunk];
  MarkScalar<kId>(words, planes);
}

// Sets the key's bits and says whether any changed. A locked OR takes some 7 ns on Zen 5, the rest of an insert 2: the
// words that lack bits are found first, without a branch, and then visited one by one (split512 at 1 MiB, from empty to
// full: 34 ns per key, with a branch for each of the 8 words 41, with all 8 ORs 48; keys that are there already 1.4
// ns).
template <SpecId kId>
HWY_INLINE bool MarkBlockShared(uint64_t* block, const uint64_t* HWY_RESTRICT g) {
  constexpr size_t kWords = kSpecOf<kId>.words_per_block();
  alignas(64) uint64_t missing[8];
  uint32_t lanes = 0;  // bit w: word w lacks bits
  if constexpr (kSpecOf<kId>.is_split256()) {
    // Four words, of which a new key mostly changes all: a branch each is cheaper (23 ns against 25, 4 against 7).
    BlockMask<kId>(g, missing);
    uint64_t changed = 0;
    for (size_t w = 0; w < kWords; ++w) changed |= MarkSharedWord(block + w, missing[w]);
    return changed != 0;
#if BLOOMLINE_AVX3 && !BLOOMLINE_THREAD_SANITIZER  // which must see atomic loads
  } else if constexpr (HasVectorProbe<kId>() && kSpecOf<kId>.zones == 8) {
    const __m512i absent = _mm512_andnot_si512(_mm512_load_si512(block), MaskWords<kId>(g));
    lanes = _mm512_test_epi64_mask(absent, absent);
    _mm512_store_si512(missing, absent);
#endif
  } else {
    BlockMask<kId>(g, missing);
    for (size_t w = 0; w < kWords; ++w) {
      missing[w] &= ~std::atomic_ref<uint64_t>(block[w]).load(std::memory_order_relaxed);
      lanes |= uint32_t{missing[w] != 0} << w;
    }
  }
  if (lanes == 0) return false;
  do {
    const auto w = static_cast<size_t>(std::countr_zero(lanes));
    std::atomic_ref<uint64_t>(block[w]).fetch_or(missing[w], std::memory_order_relaxed);
    lanes &= lanes - 1;
  } while (lanes != 0);
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace bloomline::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
