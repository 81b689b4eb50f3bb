// The batch loop, once for all layouts and operations: stage A for a chunk of keys, prefetch, stage B.
// Per-target include guard.
#if defined(BLOOMLINE_KERNELS_BATCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BLOOMLINE_KERNELS_BATCH_INL_H_
#undef BLOOMLINE_KERNELS_BATCH_INL_H_
#else
#define BLOOMLINE_KERNELS_BATCH_INL_H_
#endif

#include <algorithm>

#include "hwy/cache_control.h"
#include "kernels/probe-inl.h"

// For lambdas that must carry no instrumentation of their own into a function that is exempt from it.
#undef BLOOMLINE_INLINE_LAMBDA
#define BLOOMLINE_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace bloomline::kernels {
namespace HWY_NAMESPACE {

template <SpecId kId, bool kVertical>
using StashOf = Stash<StashId(kId, kVertical), kVertical>;

// What stage B calls before it works on key j of its chunk: nothing, or the prefetch for key j of the next chunk. One
// line per key: all of a key's words lie in it.
struct NoPrefetch {
  HWY_INLINE void operator()(size_t) const {}
};
struct PrefetchLines {
  const uint8_t* base;
  const uint64_t* offset;
  HWY_INLINE void operator()(size_t j) const { hwy::Prefetch(base + offset[j]); }
};

// Calls body(first, count, stash, ahead) for each chunk; body calls ahead(j) for each of its keys. Where the filter is
// larger than its cache (bits.prefetch), stage A of the next chunk runs first, and its prefetches are spread over stage
// B: 64 lines are under way at any time, where a burst of 64 prefetches fills the core's miss buffers, stalls on them
// and then lets them run empty during stage B.
template <SpecId kId, bool kVertical, class Body>
HWY_INLINE void ForChunks(const detail::BlockBits& bits, const detail::KeySpan& keys, const Body& body) {
  StashOf<kId, kVertical> stash[2];
  const auto fill = [&](size_t first, size_t count, StashOf<kId, kVertical>& into)
                        HWY_ATTR { FillStash<StashId(kId, kVertical), kVertical>(bits, keys, first, count, into); };
  if (bits.prefetch == 0) {
    for (size_t first = 0; first < keys.size; first += kChunk) {
      const size_t count = std::min(kChunk, keys.size - first);
      fill(first, count, stash[0]);
      body(first, count, stash[0], NoPrefetch());
    }
    return;
  }
  const auto* base = reinterpret_cast<const uint8_t*>(bits.words);
  size_t count = std::min(kChunk, keys.size);
  fill(0, count, stash[0]);
  for (size_t j = 0; j < count; ++j) hwy::Prefetch(base + stash[0].offset[0][j]);
  for (size_t first = 0, slot = 0; first < keys.size; first += kChunk, slot ^= 1) {
    const size_t next_first = first + count;
    const size_t next_count = std::min(kChunk, keys.size - next_first);
    StashOf<kId, kVertical>& next = stash[slot ^ 1];
    if (next_count != 0) fill(next_first, next_count, next);
    if (next_count == kChunk) {
      body(first, count, stash[slot], PrefetchLines{base, next.offset[0]});
    } else {
      for (size_t j = 0; j < next_count; ++j) hwy::Prefetch(base + next.offset[0][j]);
      body(first, count, stash[slot], NoPrefetch());
    }
    count = next_count;
  }
}

// Bit j of the result: byte j is not 0.
HWY_INLINE uint64_t VerdictBits(const uint8_t* verdict) {
  const hn::CappedTag<uint8_t, kChunk> d;
  uint64_t result = 0;
  for (size_t j = 0; j < kChunk; j += hn::Lanes(d)) {
    uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, hn::Ne(hn::Load(d, verdict + j), hn::Zero(d)), bytes);
    uint64_t lanes = 0;
    std::memcpy(&lanes, bytes, sizeof(lanes));
    result |= lanes << j;
  }
  return result;
}

// Stage B of a lookup: bit j of the result belongs to key j of the chunk.
template <SpecId kId, class Ahead>
HWY_INLINE uint64_t TestChunk(const uint64_t* words, size_t count,
                              const StashOf<kId, TestsVertically(kSpecOf<kId>)>& stash, const Ahead& ahead) {
  const uint8_t* base = reinterpret_cast<const uint8_t*>(words);
  if constexpr (TestsVertically(kSpecOf<kId>)) {
    // One byte per key, looked at together: two instructions for 32 or 64 keys, where a bit per key takes a shift and
    // an or each (word64k5 at 1 MiB on AVX-512: 1.23 times the limit with the shifts, 1.17 with the bytes).
    HWY_ALIGN uint8_t verdict[kChunk];
    if (count < kChunk) std::memset(verdict, 0, kChunk);
    for (size_t j = 0; j < count; ++j) {
      ahead(j);
      uint64_t missing = 0;
      for (int z = 0; z < kSpecOf<kId>.zones; ++z) {
        missing |= stash.field[z][j] & ~*reinterpret_cast<const uint64_t*>(base + stash.offset[z][j]);
      }
      verdict[j] = missing == 0;
    }
    return VerdictBits(verdict);
  } else {
#if BLOOMLINE_AVX3 && HWY_TARGET <= HWY_AVX3_DL
    if constexpr (TestsKeyPerLane<kId>()) {
      HWY_ALIGN uint64_t copies[kChunk];
      for (size_t j = 0; j < count; ++j) {
        ahead(j);
        copies[j] = *reinterpret_cast<const uint64_t*>(base + stash.offset[0][j]);
      }
      uint64_t result = 0;
      for (size_t j = 0; j < count; j += 8) {
        result |= uint64_t{TestKeys<kId>(copies + j, stash.field[0] + j)} << j;
      }
      return count < kChunk ? result & ((uint64_t{1} << count) - 1) : result;
    }
#endif
#if BLOOMLINE_AVX3
    if constexpr (HasVectorProbe<kId>()) {
      // One byte per key and one comparison of 64 bytes, instead of a scalar verdict per key (kortest, setcc, shift,
      // or).
      HWY_ALIGN __mmask8 verdict[kChunk];
      if (count < kChunk) std::memset(verdict, 0, kChunk);
      for (size_t j = 0; j < count; ++j) {
        ahead(j);
        verdict[j] = TestLanes<kId>(reinterpret_cast<const uint64_t*>(base + stash.offset[0][j]), stash.field[0] + j);
      }
      return _mm512_cmpeq_epi8_mask(_mm512_load_si512(verdict), _mm512_set1_epi8(-1));
    }
#endif
    uint64_t result = 0;
    for (size_t j = 0; j < count; ++j) {
      ahead(j);
      const auto* block = reinterpret_cast<const uint64_t*>(base + stash.offset[0][j]);
      result |= uint64_t{TestBlock<kId>(block, stash.field[0] + j)} << j;
    }
    return result;
  }
}

// Stage B of an insert. Keys are taken in their order, so that duplicates see one another. kShared: other threads
// insert at the same time.
template <SpecId kId, bool kWantChanged, bool kShared, class Ahead>
HWY_INLINE uint64_t MarkChunk(uint64_t* words, size_t count, const StashOf<kId, MarksVertically(kSpecOf<kId>)>& stash,
                              const Ahead& ahead) {
  uint8_t* base = reinterpret_cast<uint8_t*>(words);
  uint64_t changed = 0;
  for (size_t j = 0; j < count; ++j) {
    ahead(j);
    bool key_changed = false;
    if constexpr (MarksVertically(kSpecOf<kId>)) {
      uint64_t missing = 0;
      for (int z = 0; z < kSpecOf<kId>.zones; ++z) {
        auto* word = reinterpret_cast<uint64_t*>(base + stash.offset[z][j]);
        if constexpr (kShared) {
          missing |= MarkSharedWord(word, stash.field[z][j]);
        } else {
          if constexpr (kWantChanged) missing |= stash.field[z][j] & ~*word;
          *word |= stash.field[z][j];
        }
      }
      key_changed = missing != 0;
    } else {
      auto* block = reinterpret_cast<uint64_t*>(base + stash.offset[0][j]);
      if constexpr (kShared) {
        key_changed = MarkBlockShared<kId>(block, stash.field[0] + j);
      } else {
        key_changed = MarkBlock<kId, kWantChanged>(block, stash.field[0] + j);
      }
    }
    if constexpr (kWantChanged) changed |= uint64_t{key_changed} << j;
  }
  return changed;
}

template <SpecId kId>
HWY_INLINE void ContainsBatchInline(const detail::BlockBits& bits, const detail::KeySpan& keys, uint64_t* bitmap) {
  constexpr bool kVertical = TestsVertically(kSpecOf<kId>);
  ForChunks<kId, kVertical>(
      bits, keys,
      [&](size_t first, size_t count, const StashOf<kId, kVertical>& stash, const auto& ahead)
          BLOOMLINE_INLINE_LAMBDA { bitmap[first / kChunk] = TestChunk<kId>(bits.words, count, stash, ahead); });
}
template <SpecId kId>
void ContainsBatch(const detail::BlockBits& bits, const detail::KeySpan& keys, uint64_t* bitmap) noexcept {
  ContainsBatchInline<kId>(bits, keys, bitmap);
}

template <SpecId kId, bool kShared>
void InsertBatch(const detail::BlockBits& bits, const detail::KeySpan& keys) noexcept {
  constexpr bool kVertical = MarksVertically(kSpecOf<kId>);
  ForChunks<kId, kVertical>(bits, keys,
                            [&](size_t /*first*/, size_t count, const StashOf<kId, kVertical>& stash, const auto& ahead)
                                HWY_ATTR { MarkChunk<kId, false, kShared>(bits.words, count, stash, ahead); });
}

template <SpecId kId, bool kShared>
void TryInsertBatch(const detail::BlockBits& bits, const detail::KeySpan& keys, uint64_t* changed) noexcept {
  constexpr bool kVertical = MarksVertically(kSpecOf<kId>);
  ForChunks<kId, kVertical>(
      bits, keys, [&](size_t first, size_t count, const StashOf<kId, kVertical>& stash, const auto& ahead) HWY_ATTR {
        changed[first / kChunk] = MarkChunk<kId, true, kShared>(bits.words, count, stash, ahead);
      });
}

// ---- One key: its block and its words of g, kChunk apart as in a stash. (The compiler keeps them in registers.)

template <SpecId kId>
struct OneKey {
  uint64_t g[static_cast<size_t>(kSpecOf<kId>.planes - 1) * kChunk + 1];
  uint64_t* block;

  HWY_INLINE OneKey(const detail::BlockBits& bits, uint64_t hash)
      : block(bits.words + BlockOf(kSpecOf<kId>.layout, hash, bits.blocks) * kSpecOf<kId>.words_per_block()) {
    g[0] = kSpecOf<kId>.is_split256() ? hash : hash * kFirstG;
    uint64_t next = g[0];
    for (int p = 1; p < kSpecOf<kId>.planes; ++p) g[static_cast<size_t>(p) * kChunk] = next *= kNextG;
  }
};

template <SpecId kId>
HWY_INLINE bool ContainsOneInline(const detail::BlockBits& bits, uint64_t hash) {
  const OneKey<kId> key(bits, hash);
  return TestBlock<kId>(key.block, key.g);
}
template <SpecId kId>
bool ContainsOne(const detail::BlockBits& bits, uint64_t hash) noexcept {
  return ContainsOneInline<kId>(bits, hash);
}
template <SpecId kId>
void InsertOne(const detail::BlockBits& bits, uint64_t hash) noexcept {
  const OneKey<kId> key(bits, hash);
  MarkBlock<kId, false>(key.block, key.g);
}
template <SpecId kId, bool kShared>
bool TryInsertOne(const detail::BlockBits& bits, uint64_t hash) noexcept {
  const OneKey<kId> key(bits, hash);
  if constexpr (kShared) {
    return MarkBlockShared<kId>(key.block, key.g);
  } else {
    return MarkBlock<kId, true>(key.block, key.g);
  }
}

// Lookups beside shared inserts. The lines are read by plain and vector loads while other threads OR bits into them:
// each 64-bit word is read whole, and bits are only ever set, so that a key whose insert has returned is found. To the
// letter of the language, and to ThreadSanitizer, that is a race; these two functions, and no others, are exempt.
#if BLOOMLINE_THREAD_SANITIZER
template <SpecId kId>
__attribute__((no_sanitize("thread"))) bool SharedContainsOne(const detail::BlockBits& bits, uint64_t hash) noexcept {
  return ContainsOneInline<kId>(bits, hash);
}
template <SpecId kId>
__attribute__((no_sanitize("thread"))) void SharedContainsBatch(const detail::BlockBits& bits,
                                                                const detail::KeySpan& keys,
                                                                uint64_t* bitmap) noexcept {
  ContainsBatchInline<kId>(bits, keys, bitmap);
}
template <SpecId kId>
inline constexpr auto kSharedContainsOne = &SharedContainsOne<kId>;
template <SpecId kId>
inline constexpr auto kSharedContainsBatch = &SharedContainsBatch<kId>;
#else
template <SpecId kId>
inline constexpr auto kSharedContainsOne = &ContainsOne<kId>;
template <SpecId kId>
inline constexpr auto kSharedContainsBatch = &ContainsBatch<kId>;
#endif

template <SpecId kId>
inline constexpr detail::BlockOps kBlockOps = {
    .contains = &ContainsOne<kId>,
    .insert = &InsertOne<kId>,
    .try_insert = &TryInsertOne<kId, false>,
    .contains_batch = &ContainsBatch<kId>,
    .insert_batch = &InsertBatch<kId, false>,
    .try_insert_batch = &TryInsertBatch<kId, false>,
    .hash_batch = &HashBatch,
    .shared_contains = kSharedContainsOne<kId>,
    .shared_try_insert = &TryInsertOne<kId, true>,
    .shared_contains_batch = kSharedContainsBatch<kId>,
    .shared_insert_batch = &InsertBatch<kId, true>,
    .shared_try_insert_batch = &TryInsertBatch<kId, true>,
};

// The table of (kLayout, k), k = 1 … 16 at run time; nullptr where k does not fit.
template <Layout kLayout, int kK = kMaxHashes>
const detail::BlockOps* OpsOf(int k) {
  if constexpr (kK < kMinHashes) {
    return nullptr;
  } else {
    constexpr bool kFits = kLayout == Layout::kSplit256 ? kK == 8 : kK % Describe(kLayout, kK).zones == 0;
    if constexpr (kFits) {
      if (k == kK) return &kBlockOps<SpecId{kLayout, kK}>;
    }
    return OpsOf<kLayout, kK - 1>(k);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bloomline::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
