// Counters: lookups, adds and removes of keys, one line per key, on the batch loop that all layouts share.
// Per-target include guard.
#if defined(BLOOMLINE_KERNELS_COUNTING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BLOOMLINE_KERNELS_COUNTING_INL_H_
#undef BLOOMLINE_KERNELS_COUNTING_INL_H_
#else
#define BLOOMLINE_KERNELS_COUNTING_INL_H_
#endif

#include <bit>

#include "kernels/batch-inl.h"
#include "kernels/counting_layout.h"

HWY_BEFORE_NAMESPACE();
namespace bloomline::kernels {
namespace HWY_NAMESPACE {

// Stage A is split512's: the offset of the line and one word of g.
inline constexpr SpecId kCountingId = {Layout::kSplit512, 8};

// What happened to a key. Adds: done, or a counter was full. Removes: done, absent, or a counter was full.
enum class Outcome : uint8_t { kDone, kAbsent, kFull };

#if BLOOMLINE_AVX3

// A key's counters in its line: one in each word, found by shifting a unit and a full counter to the key's fields.
template <int kBits>
struct Counters {
  __m512i line;
  __m512i unit;   // 1 in each of the key's counters
  __m512i full;   // all ones there
  __m512i field;  // where they start

  HWY_INLINE Counters(const uint64_t* HWY_RESTRICT words, uint64_t g)
      : line(_mm512_load_si512(words)),
        field(_mm512_and_si512(
            ShiftToField(_mm512_set1_epi64(static_cast<int64_t>(g)), kLaneFields<kCountingId>.bit_shift[0]),
            _mm512_set1_epi64(64 - kBits))) {
    unit = _mm512_sllv_epi64(_mm512_set1_epi64(1), field);
    full = _mm512_sllv_epi64(_mm512_set1_epi64(CounterMax(kBits)), field);
  }
  HWY_INLINE __mmask8 Zero() const { return _mm512_testn_epi64_mask(line, full); }
  HWY_INLINE __mmask8 Full() const { return _mm512_cmpeq_epi64_mask(_mm512_and_si512(line, full), full); }
  HWY_INLINE void Add(uint64_t* words, __mmask8 lanes) const {
    _mm512_store_si512(words, _mm512_mask_add_epi64(line, lanes, line, unit));
  }
  HWY_INLINE void Subtract(uint64_t* words, __mmask8 lanes) const {
    _mm512_store_si512(words, _mm512_mask_sub_epi64(line, lanes, line, unit));
  }
  HWY_INLINE uint64_t Smallest() const {
    const __m512i counters = _mm512_and_si512(_mm512_srlv_epi64(line, field), _mm512_set1_epi64(CounterMax(kBits)));
    return _mm512_reduce_min_epu64(counters);
  }
};

HWY_INLINE __mmask8 AllLanesIf(bool condition) { return static_cast<__mmask8>(condition ? 0xff : 0); }

template <int kBits>
HWY_INLINE bool HasCounters(const uint64_t* HWY_RESTRICT line, uint64_t g) {
  return Counters<kBits>(line, g).Zero() == 0;
}

template <int kBits>
HWY_INLINE uint64_t CountCounters(const uint64_t* HWY_RESTRICT line, uint64_t g) {
  return Counters<kBits>(line, g).Smallest();
}

template <int kBits, OverflowPolicy kPolicy>
HWY_INLINE Outcome AddKey(uint64_t* HWY_RESTRICT line, uint64_t g) {
  const Counters<kBits> counters(line, g);
  const __mmask8 full = counters.Full();
  if constexpr (kPolicy == OverflowPolicy::kSaturate) {
    counters.Add(line, static_cast<__mmask8>(~full));
    return Outcome::kDone;
  } else {
    counters.Add(line, AllLanesIf(full == 0));
    return full == 0 ? Outcome::kDone : Outcome::kFull;
  }
}

template <int kBits, OverflowPolicy kPolicy>
HWY_INLINE Outcome RemoveKey(uint64_t* HWY_RESTRICT line, uint64_t g) {
  const Counters<kBits> counters(line, g);
  const bool present = counters.Zero() == 0;
  if constexpr (kPolicy == OverflowPolicy::kReject) {
    counters.Subtract(line, AllLanesIf(present));
  } else {
    const __mmask8 full = counters.Full();
    if constexpr (kPolicy == OverflowPolicy::kSpill) {
      counters.Subtract(line, AllLanesIf(present && full == 0));
      if (present && full != 0) return Outcome::kFull;
    } else {
      counters.Subtract(line, static_cast<__mmask8>(~full & AllLanesIf(present)));
    }
  }
  return present ? Outcome::kDone : Outcome::kAbsent;
}

#elif BLOOMLINE_VECTOR_PROBE

// The same for words w … of the line; a line is one to four vectors. No struct holds them: SVE's have no size.
using DLine = hn::CappedTag<uint64_t, 8>;
using VLine = hn::Vec<DLine>;

// Where the key's counters start.
template <int kBits>
HWY_INLINE VLine FieldOf(DLine d, uint64_t g, size_t w) {
  return hn::And(hn::Shr(hn::Set(d, g), hn::Load(d, kLaneFields<kCountingId>.bit_shift[0] + w)),
                 hn::Set(d, uint64_t{64 - kBits}));
}
// All ones in each of the key's counters.
template <int kBits>
HWY_INLINE VLine AllOnes(DLine d, VLine field) {
  return hn::Shl(hn::Set(d, CounterMax(kBits)), field);
}
// All ones in the lanes whose counter is full.
HWY_INLINE VLine FullLanes(DLine d, VLine words, VLine ones) {
  return hn::VecFromMask(d, hn::Eq(hn::And(words, ones), ones));
}

template <int kBits>
HWY_INLINE bool HasCounters(const uint64_t* HWY_RESTRICT line, uint64_t g) {
  const DLine d;
  VLine zero = hn::Zero(d);
  for (size_t w = 0; w < 8; w += hn::Lanes(d)) {
    const VLine counters = hn::And(hn::Load(d, line + w), AllOnes<kBits>(d, FieldOf<kBits>(d, g, w)));
    zero = hn::Or(zero, hn::VecFromMask(d, hn::Eq(counters, hn::Zero(d))));
  }
  return hn::AllTrue(d, hn::Eq(zero, hn::Zero(d)));
}

template <int kBits>
HWY_INLINE bool AnyFull(const uint64_t* HWY_RESTRICT line, uint64_t g) {
  const DLine d;
  VLine full = hn::Zero(d);
  for (size_t w = 0; w < 8; w += hn::Lanes(d)) {
    full = hn::Or(full, FullLanes(d, hn::Load(d, line + w), AllOnes<kBits>(d, FieldOf<kBits>(d, g, w))));
  }
  return !hn::AllTrue(d, hn::Eq(full, hn::Zero(d)));
}

template <int kBits>
HWY_INLINE uint64_t CountCounters(const uint64_t* HWY_RESTRICT line, uint64_t g) {
  return SmallestCounter(kBits, line, g);
}

// Adds 1 to each of the key's counters, or takes 1 from it, where `wanted`; under saturate not from or to full ones.
template <int kBits, OverflowPolicy kPolicy, bool kAdd>
HWY_INLINE void Change(uint64_t* HWY_RESTRICT line, uint64_t g, bool wanted) {
  const DLine d;
  const VLine one = hn::Set(d, uint64_t{wanted});
  for (size_t w = 0; w < 8; w += hn::Lanes(d)) {
    const VLine field = FieldOf<kBits>(d, g, w);
    const VLine words = hn::Load(d, line + w);
    VLine unit = hn::Shl(one, field);
    if constexpr (kPolicy == OverflowPolicy::kSaturate) {
      unit = hn::AndNot(FullLanes(d, words, AllOnes<kBits>(d, field)), unit);
    }
    hn::Store(kAdd ? hn::Add(words, unit) : hn::Sub(words, unit), d, line + w);
  }
}

template <int kBits, OverflowPolicy kPolicy>
HWY_INLINE Outcome AddKey(uint64_t* HWY_RESTRICT line, uint64_t g) {
  const bool refused = kPolicy != OverflowPolicy::kSaturate && AnyFull<kBits>(line, g);
  Change<kBits, kPolicy, true>(line, g, !refused);
  return refused ? Outcome::kFull : Outcome::kDone;
}

template <int kBits, OverflowPolicy kPolicy>
HWY_INLINE Outcome RemoveKey(uint64_t* HWY_RESTRICT line, uint64_t g) {
  const bool present = HasCounters<kBits>(line, g);
  const bool full = kPolicy == OverflowPolicy::kSpill && AnyFull<kBits>(line, g);
  Change<kBits, kPolicy, false>(line, g, present && !full);
  if (!present) return Outcome::kAbsent;
  return full ? Outcome::kFull : Outcome::kDone;
}

#else

template <int kBits>
HWY_INLINE bool HasCounters(const uint64_t* HWY_RESTRICT line, uint64_t g) {
  uint64_t present = 1;
  for (size_t w = 0; w < 8; ++w) present &= static_cast<uint64_t>(CounterOf(kBits, line, g, w) != 0);
  return present != 0;
}

template <int kBits>
HWY_INLINE uint64_t CountCounters(const uint64_t* HWY_RESTRICT line, uint64_t g) {
  return SmallestCounter(kBits, line, g);
}

template <int kBits, OverflowPolicy kPolicy>
HWY_INLINE Outcome AddKey(uint64_t* HWY_RESTRICT line, uint64_t g) {
  return AddCounters(kBits, kPolicy, line, g) ? Outcome::kDone : Outcome::kFull;
}

template <int kBits, OverflowPolicy kPolicy>
HWY_INLINE Outcome RemoveKey(uint64_t* HWY_RESTRICT line, uint64_t g) {
  if (kPolicy == OverflowPolicy::kSpill && HasCounters<kBits>(line, g) && AnyCounterFull(kBits, line, g)) {
    return Outcome::kFull;
  }
  return RemoveCounters(kBits, kPolicy, line, g) ? Outcome::kDone : Outcome::kAbsent;
}

#endif

// ---- Batches.

template <int kBits>
void CountingContainsBatch(const detail::BlockBits& bits, const detail::KeySpan& keys, uint64_t* bitmap) noexcept {
  const uint8_t* base = reinterpret_cast<const uint8_t*>(bits.words);
  ForChunks<kCountingId, false>(
      bits, keys,
      [&](size_t first, size_t count, const StashOf<kCountingId, false>& stash, const auto& ahead) HWY_ATTR {
#if BLOOMLINE_AVX3
        HWY_ALIGN __mmask8 zero[kChunk];  // as in TestChunk
        if (count < kChunk) std::memset(zero, 0xff, kChunk);
        for (size_t j = 0; j < count; ++j) {
          ahead(j);
          const auto* line = reinterpret_cast<const uint64_t*>(base + stash.offset[0][j]);
          zero[j] = Counters<kBits>(line, stash.field[0][j]).Zero();
        }
        bitmap[first / kChunk] = _mm512_testn_epi8_mask(_mm512_load_si512(zero), _mm512_load_si512(zero));
#else
        uint64_t result = 0;
        for (size_t j = 0; j < count; ++j) {
          ahead(j);
          const auto* line = reinterpret_cast<const uint64_t*>(base + stash.offset[0][j]);
          result |= uint64_t{HasCounters<kBits>(line, stash.field[0][j])} << j;
        }
        bitmap[first / kChunk] = result;
#endif
      });
}

template <int kBits>
void CountBatch(const detail::BlockBits& bits, const detail::KeySpan& keys, uint32_t* counts) noexcept {
  const uint8_t* base = reinterpret_cast<const uint8_t*>(bits.words);
  ForChunks<kCountingId, false>(
      bits, keys,
      [&](size_t first, size_t count, const StashOf<kCountingId, false>& stash, const auto& ahead) HWY_ATTR {
        for (size_t j = 0; j < count; ++j) {
          ahead(j);
          const auto* line = reinterpret_cast<const uint64_t*>(base + stash.offset[0][j]);
          counts[first + j] = static_cast<uint32_t>(CountCounters<kBits>(line, stash.field[0][j]));
        }
      });
}

// Adds or removes the keys in their order: those of one line, and a key's repeats, see one another. `not_done` (may be
// null) gets a bit for each key that was refused or absent.
template <int kBits, OverflowPolicy kPolicy, bool kAdd>
size_t ChangeBatch(const detail::BlockBits& bits, const detail::KeySpan& keys, uint64_t* not_done,
                   const detail::SpillHandler& spill) noexcept {
  uint8_t* base = reinterpret_cast<uint8_t*>(bits.words);
  size_t total = 0;
  ForChunks<kCountingId, false>(
      bits, keys,
      [&](size_t first, size_t count, const StashOf<kCountingId, false>& stash, const auto& ahead) HWY_ATTR {
        uint64_t failed = 0;
        for (size_t j = 0; j < count; ++j) {
          ahead(j);
          auto* line = reinterpret_cast<uint64_t*>(base + stash.offset[0][j]);
          const uint64_t g = stash.field[0][j];
          const Outcome outcome = kAdd ? AddKey<kBits, kPolicy>(line, g) : RemoveKey<kBits, kPolicy>(line, g);
          if constexpr (kPolicy == OverflowPolicy::kSpill) {
            if (HWY_UNLIKELY(outcome == Outcome::kFull)) {
              const auto handle = kAdd ? spill.add : spill.remove;
              failed |= uint64_t{!handle(spill.context, stash.offset[0][j] / 64, g)} << j;
              continue;
            }
          }
          failed |= uint64_t{outcome != Outcome::kDone} << j;
        }
        total += static_cast<size_t>(std::popcount(failed));
        if (not_done != nullptr) not_done[first / kChunk] = failed;
      });
  return total;
}

// ---- One key.

template <int kBits>
bool CountingContainsOne(const detail::BlockBits& bits, uint64_t hash) noexcept {
  return HasCounters<kBits>(bits.words + BlockOf(Layout::kSplit512, hash, bits.blocks) * 8, CounterGOf(hash));
}
template <int kBits>
uint32_t CountOne(const detail::BlockBits& bits, uint64_t hash) noexcept {
  const uint64_t* line = bits.words + BlockOf(Layout::kSplit512, hash, bits.blocks) * 8;
  return static_cast<uint32_t>(CountCounters<kBits>(line, CounterGOf(hash)));
}
template <int kBits, OverflowPolicy kPolicy, bool kAdd>
bool ChangeOne(const detail::BlockBits& bits, uint64_t hash, const detail::SpillHandler& spill) noexcept {
  const uint64_t block = BlockOf(Layout::kSplit512, hash, bits.blocks);
  const uint64_t g = CounterGOf(hash);
  uint64_t* line = bits.words + block * 8;
  const Outcome outcome = kAdd ? AddKey<kBits, kPolicy>(line, g) : RemoveKey<kBits, kPolicy>(line, g);
  if (kPolicy == OverflowPolicy::kSpill && outcome == Outcome::kFull) {
    return (kAdd ? spill.add : spill.remove)(spill.context, block, g);
  }
  return outcome == Outcome::kDone;
}

// Lookups as every filter has them; nothing sets bits in a counting filter.
template <int kBits>
inline constexpr detail::BlockOps kCountingLookups = {
    .contains = &CountingContainsOne<kBits>,
    .insert = nullptr,
    .try_insert = nullptr,
    .contains_batch = &CountingContainsBatch<kBits>,
    .insert_batch = nullptr,
    .try_insert_batch = nullptr,
    .hash_batch = &HashBatch,
    .shared_contains = nullptr,
    .shared_try_insert = nullptr,
    .shared_contains_batch = nullptr,
    .shared_insert_batch = nullptr,
    .shared_try_insert_batch = nullptr,
};

template <int kBits, OverflowPolicy kPolicy>
inline constexpr detail::CountingOps kCountingOps = {
    &CountOne<kBits>,   &ChangeOne<kBits, kPolicy, true>,   &ChangeOne<kBits, kPolicy, false>,
    &CountBatch<kBits>, &ChangeBatch<kBits, kPolicy, true>, &ChangeBatch<kBits, kPolicy, false>,
};

template <int kBits>
const detail::CountingOps* CountingOpsOf(OverflowPolicy policy) {
  switch (policy) {
    case OverflowPolicy::kSaturate:
      return &kCountingOps<kBits, OverflowPolicy::kSaturate>;
    case OverflowPolicy::kReject:
      return &kCountingOps<kBits, OverflowPolicy::kReject>;
    case OverflowPolicy::kSpill:
      return &kCountingOps<kBits, OverflowPolicy::kSpill>;
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bloomline::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
