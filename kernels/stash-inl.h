// What stage A leaves on the stack for stage B, in one of two shapes:
//
//   horizontal   per key: the byte offset of its block, and its words of g. Stage B spreads g over the lanes of one
//                line (split512, line512, split256, and all layouts where 64-bit lanes are not worth hashing in).
//   vertical     per key and zone: the byte offset of the zone's word, and the mask of its bits there, computed for 8
//                keys at a time (sector layouts of few zones). Stage B only loads, tests or ORs whole words.
//
// Per-target include guard.
#if defined(BLOOMLINE_KERNELS_STASH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BLOOMLINE_KERNELS_STASH_INL_H_
#undef BLOOMLINE_KERNELS_STASH_INL_H_
#else
#define BLOOMLINE_KERNELS_STASH_INL_H_
#endif

#include <utility>

#include "kernels/hash-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bloomline::kernels {
namespace HWY_NAMESPACE {

#undef BLOOMLINE_AVX3
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define BLOOMLINE_AVX3 1
#else
#define BLOOMLINE_AVX3 0
#endif

// Which shape a sector layout takes. Lookups: with 512-bit vectors the horizontal shape wins for any number of zones,
// since a permute inside the loaded line costs less than another load (Zen 5, 1 MiB, ratio to the limit: word64k5 1.17
// vertical with scalar loads, 1.50 with gathers; sector512z2k6 1.54 and 1.93). With 256-bit vectors a line does not fit
// one register, and the vertical shape wins up to 4 zones. Inserts: whole words are ORed in, one store per zone against
// one per bit.
constexpr bool IsFewZones(const Spec& spec) { return !spec.is_split256() && !spec.is_line() && spec.zones <= 4; }
constexpr bool TestsVertically(const Spec& spec) {
  return BLOOMLINE_VECTOR_HASH && !BLOOMLINE_AVX3 && IsFewZones(spec);
}
constexpr bool MarksVertically(const Spec& spec) { return BLOOMLINE_VECTOR_HASH && IsFewZones(spec); }

// Whether the horizontal shape's offset is that of a word, not of its block: where all bits of a key lie in one word,
// that word is loaded into all lanes, and no permute is needed.
constexpr bool OffsetsAreWords(const Spec& spec) {
  return BLOOMLINE_AVX3 && !spec.is_split256() && !spec.is_line() && spec.zones == 1;
}

// All horizontal layouts with the same number of g words share one stage A: it is compiled under the name of the first
// of them (line512k1 stands for split512, …, word64k1 for all k of word64 that need one word).
constexpr SpecId StashId(SpecId id, bool vertical) {
  const Spec spec = Describe(id.layout, id.k);
  if (vertical || spec.is_split256()) return id;
  const Layout layout = OffsetsAreWords(spec) ? id.layout : Layout::kLine512;
  int k = 1;
  while (Describe(layout, k).planes < spec.planes) ++k;
  return {layout, k};
}

template <SpecId kId, bool kVertical>
struct Stash {
  static constexpr int kOffsets = kVertical ? kSpecOf<kId>.zones : 1;
  static constexpr int kFields = kVertical ? kSpecOf<kId>.zones : kSpecOf<kId>.planes;
  HWY_ALIGN uint64_t offset[kOffsets][kChunk];  // bytes from the start of the filter
  HWY_ALIGN uint64_t field[kFields][kChunk];    // words of g (h itself for split256), or masks
};

#if BLOOMLINE_VECTOR_HASH

// Advances g to the plane in which a field lies; planes only ever rise.
template <int kFrom, int kTo>
HWY_INLINE V64 AdvanceG(V64 g) {
  if constexpr (kFrom < kTo) {
    const D64 d;
    return AdvanceG<kFrom + 1, kTo>(hn::Mul(g, hn::Set(d, kNextG)));
  } else {
    return g;
  }
}

// Probe i of the vertical shape: on a zone's first probe its word's offset is stored, on its last its mask.
template <SpecId kId, size_t kIndex>
HWY_INLINE void StashProbe(V64 block, V64& g, V64& mask, size_t j, Stash<kId, true>& stash) {
  const D64 d;
  constexpr int i = static_cast<int>(kIndex);
  constexpr Probe p = kSpecOf<kId>.probes[i];
  constexpr int zone = i / kSpecOf<kId>.probes_per_zone();
  constexpr int previous = i == 0 ? 0 : kSpecOf<kId>.probes[i == 0 ? 0 : i - 1].bit_plane;
  constexpr bool first = i % kSpecOf<kId>.probes_per_zone() == 0;
  if constexpr (first) {
    g = AdvanceG<previous, p.word_plane>(g);
    const V64 word = hn::And(hn::ShiftRight<p.word_shift>(g), hn::Set(d, (uint64_t{1} << p.word_bits) - 1));
    const V64 offset = hn::Add(block, hn::ShiftLeft<3>(word));
    hn::Store(p.word_base == 0 ? offset : hn::Add(offset, hn::Set(d, uint64_t{p.word_base} * 8)), d,
              stash.offset[zone] + j);
  }
  g = AdvanceG < first ? p.word_plane : previous, p.bit_plane > (g);
  const V64 bit = hn::Shl(hn::Set(d, 1), hn::And(hn::ShiftRight<p.bit_shift>(g), hn::Set(d, 63)));
  mask = first ? bit : hn::Or(mask, bit);
  if constexpr ((i + 1) % kSpecOf<kId>.probes_per_zone() == 0) hn::Store(mask, d, stash.field[zone] + j);
}

template <SpecId kId, size_t... kIndex>
HWY_INLINE void StashZones(V64 block, V64 g, size_t j, Stash<kId, true>& stash, std::index_sequence<kIndex...>) {
  V64 mask = g;
  (StashProbe<kId, kIndex>(block, g, mask, j, stash), ...);
}

// Stores the stash entries of the keys j … of one vector of hashes.
template <SpecId kId, bool kVertical>
HWY_INLINE void StashVector(const detail::BlockBits& bits, V64 h, size_t j, Stash<kId, kVertical>& stash) {
  const D64 d;
  const V64 blocks = hn::Set(d, bits.blocks);
  if constexpr (kSpecOf<kId>.is_split256()) {
    hn::Store(hn::ShiftLeft<5>(BlockVectorHigh(h, blocks)), d, stash.offset[0] + j);
    if constexpr (kWrongH != 0) h = hn::Xor(h, hn::Set(d, kWrongH));
    hn::Store(h, d, stash.field[0] + j);
  } else {
    const V64 block = hn::ShiftLeft<6>(BlockVector(h, blocks));
    V64 g = hn::Mul(h, hn::Set(d, kFirstG));
    if constexpr (kWrongG != 0) g = hn::Xor(g, hn::Set(d, kWrongG));
    if constexpr (kVertical) {
      StashZones<kId>(block, g, j, stash, std::make_index_sequence<static_cast<size_t>(kSpecOf<kId>.k)>());
    } else {
      if constexpr (OffsetsAreWords(kSpecOf<kId>)) {
        const V64 word = hn::And(hn::ShiftRight<kSpecOf<kId>.probes[0].word_shift>(g), hn::Set(d, 7));
        hn::Store(hn::Add(block, hn::ShiftLeft<3>(word)), d, stash.offset[0] + j);
      } else {
        hn::Store(block, d, stash.offset[0] + j);
      }
      hn::Store(g, d, stash.field[0] + j);
      for (int plane = 1; plane < kSpecOf<kId>.planes; ++plane) {
        g = hn::Mul(g, hn::Set(d, kNextG));
        hn::Store(g, d, stash.field[plane] + j);
      }
    }
  }
}

#endif  // BLOOMLINE_VECTOR_HASH

template <SpecId kId>
HWY_INLINE void StashOne(uint64_t h, uint64_t blocks, size_t j, Stash<kId, false>& stash) {
  stash.offset[0][j] = BlockOf(kSpecOf<kId>.layout, h, blocks) * kSpecOf<kId>.block_bytes();
  if constexpr (kSpecOf<kId>.is_split256()) {
    stash.field[0][j] = h ^ kWrongH;
  } else {
    uint64_t g = h * kFirstG ^ kWrongG;
    stash.field[0][j] = g;
    for (int plane = 1; plane < kSpecOf<kId>.planes; ++plane) stash.field[plane][j] = g *= kNextG;
  }
}

// Stage A for the keys first … first + count − 1, count ≤ kChunk. Not inlined: one call per 64 keys costs nothing, and
// every batch operation of every layout would carry a copy (5 MB of code and ten times the compile time).
template <SpecId kId, bool kVertical>
HWY_NOINLINE void FillStash(const detail::BlockBits& bits, const detail::KeySpan& keys, size_t first, size_t count,
                            Stash<kId, kVertical>& stash) {
#if BLOOMLINE_VECTOR_HASH
  ForHashVectors(bits, keys, first, count,
                 [&](size_t j, V64 h) HWY_ATTR { StashVector<kId, kVertical>(bits, h, j, stash); });
#else
  const uint64_t blocks = bits.blocks;
  ForHashes(bits, keys, first, count, [&](size_t j, uint64_t h) HWY_ATTR { StashOne<kId>(h, blocks, j, stash); });
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace bloomline::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
