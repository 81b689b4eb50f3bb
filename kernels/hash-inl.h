// Stage A, vertical: keys → hashes → blocks and in-block words, 8 keys per AVX-512 vector.
// Per-target include guard, see hwy/foreach_target.h.
#if defined(BLOOMLINE_KERNELS_HASH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BLOOMLINE_KERNELS_HASH_INL_H_
#undef BLOOMLINE_KERNELS_HASH_INL_H_
#else
#define BLOOMLINE_KERNELS_HASH_INL_H_
#endif

#include <cstring>

#include "bloomline/detail/block_ops.h"
#include "hwy/highway.h"
#include "kernels/layout.h"

HWY_BEFORE_NAMESPACE();
namespace bloomline::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether 64-bit lanes are worth hashing in: with 128-bit vectors the emulated 64-bit multiply loses to the scalar
// one (SSE4: 3 pmuludq and 5 more for 2 lanes against 1 imul each), and NEON has none at all.
#undef BLOOMLINE_VECTOR_HASH
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_HAVE_SCALABLE
#define BLOOMLINE_VECTOR_HASH 1
#else
#define BLOOMLINE_VECTOR_HASH 0
#endif

// What tools/break_targets.sh changes: a bit of g (of h for split256), and so one bit of each key's mask, comes out
// wrong on the target that it names. Otherwise 0, and no code.
#if defined(BLOOMLINE_BREAK_TARGET) && HWY_TARGET == BLOOMLINE_BREAK_TARGET
inline constexpr uint64_t kWrongG = uint64_t{1} << 63;
inline constexpr uint64_t kWrongH = uint64_t{1} << 31;
#else
inline constexpr uint64_t kWrongG = 0;
inline constexpr uint64_t kWrongH = 0;
#endif

// Keys per step of the batch loop: one word of the bitmap, so that an answer is one store. The stash of a chunk, 1 to
// 4 KiB, stays in L1.
inline constexpr size_t kChunk = 64;

HWY_INLINE uint64_t LoadKey(const detail::KeySpan& keys, size_t i) {
  if (keys.form == detail::KeyForm::kU32) {
    uint32_t key;
    std::memcpy(&key, static_cast<const uint8_t*>(keys.data) + i * sizeof(key), sizeof(key));
    return key;
  }
  uint64_t key;
  std::memcpy(&key, static_cast<const uint8_t*>(keys.data) + i * sizeof(key), sizeof(key));
  return key;
}

#if BLOOMLINE_VECTOR_HASH

using D64 = hn::ScalableTag<uint64_t>;
using V64 = hn::Vec<D64>;

HWY_INLINE V64 MixVector(D64 d, V64 key, V64 mask) {
  const V64 multiplier = hn::Set(d, detail::kMixMultiplier);
  const hn::Repartition<uint32_t, D64> d32;
  V64 x = hn::Xor(key, mask);
  const V64 fold = hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(x)), hn::Set(d32, detail::kMixFold));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<32>(fold)), multiplier);
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<32>(x)), multiplier);
  return hn::Xor(x, hn::ShiftRight<32>(x));
}

// floor(h · blocks / 2^64), blocks < 2^32.
HWY_INLINE V64 BlockVector(V64 h, V64 blocks) {
  const hn::Repartition<uint32_t, D64> d32;
  const V64 low = hn::MulEven(hn::BitCast(d32, h), hn::BitCast(d32, blocks));
  const V64 high = hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(h)), hn::BitCast(d32, blocks));
  return hn::ShiftRight<32>(hn::Add(high, hn::ShiftRight<32>(low)));
}

// The split256 form: ((h >> 32) · blocks) >> 32.
HWY_INLINE V64 BlockVectorHigh(V64 h, V64 blocks) {
  const hn::Repartition<uint32_t, D64> d32;
  return hn::ShiftRight<32>(hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(h)), hn::BitCast(d32, blocks)));
}

// Calls emit(j, hashes) for vectors of hashes of keys j, j + 1, … until `count` keys are covered. `count` at most
// kChunk; whole vectors are read when it is kChunk, else through a padded copy.
template <class Emit>
HWY_INLINE void ForHashVectors(const detail::BlockBits& bits, const detail::KeySpan& keys, size_t first, size_t count,
                               const Emit& emit) {
  const D64 d;
  const size_t lanes = hn::Lanes(d);
  const uint8_t* from = static_cast<const uint8_t*>(keys.data) +
                        first * (keys.form == detail::KeyForm::kU32 ? sizeof(uint32_t) : sizeof(uint64_t));
  HWY_ALIGN uint64_t padded[kChunk];
  const bool partial = count < kChunk;
  if (HWY_UNLIKELY(partial)) {
    for (size_t j = 0; j < count; ++j) padded[j] = LoadKey(keys, first + j);
    for (size_t j = count; j < kChunk; ++j) padded[j] = 0;
    from = reinterpret_cast<const uint8_t*>(padded);
  }
  const V64 mask = hn::Set(d, detail::KeyMask(bits.seed));
  if (keys.form == detail::KeyForm::kHash) {
    for (size_t j = 0; j < count; j += lanes) {
      emit(j, hn::LoadU(d, reinterpret_cast<const uint64_t*>(from) + j));
    }
  } else if (keys.form == detail::KeyForm::kU64 || partial) {
    for (size_t j = 0; j < count; j += lanes) {
      emit(j, MixVector(d, hn::LoadU(d, reinterpret_cast<const uint64_t*>(from) + j), mask));
    }
  } else {
    const hn::Rebind<uint32_t, D64> d32;
    for (size_t j = 0; j < count; j += lanes) {
      emit(j, MixVector(d, hn::PromoteTo(d, hn::LoadU(d32, reinterpret_cast<const uint32_t*>(from) + j)), mask));
    }
  }
}

#endif  // BLOOMLINE_VECTOR_HASH

// The same one by one: emit(j, hash) for the keys first + j, j below count. The mask and the form are looked at once:
// the stores of `emit` might change them for all that the compiler knows.
template <class Emit>
HWY_INLINE void ForHashes(const detail::BlockBits& bits, const detail::KeySpan& keys, size_t first, size_t count,
                          const Emit& emit) {
  const detail::KeySpan local = keys;
  const uint64_t mask = detail::KeyMask(bits.seed);
  if (local.form == detail::KeyForm::kHash) {
    for (size_t j = 0; j < count; ++j) emit(j, LoadKey(local, first + j));
  } else {
    for (size_t j = 0; j < count; ++j) emit(j, detail::MixMasked(LoadKey(local, first + j), mask));
  }
}

// The hashes of all keys, in order. Not inlined: one copy per family and target is enough.
inline HWY_NOINLINE void HashBatch(const detail::BlockBits& bits, const detail::KeySpan& keys,
                                   uint64_t* hashes) noexcept {
#if BLOOMLINE_VECTOR_HASH
  const D64 d;
  for (size_t first = 0; first < keys.size; first += kChunk) {
    const size_t count = keys.size - first < kChunk ? keys.size - first : kChunk;
    HWY_ALIGN uint64_t chunk[kChunk];
    ForHashVectors(bits, keys, first, count, [&](size_t j, V64 h) HWY_ATTR { hn::Store(h, d, chunk + j); });
    std::memcpy(hashes + first, chunk, count * sizeof(uint64_t));
  }
#else
  ForHashes(bits, keys, 0, keys.size, [&](size_t j, uint64_t h) HWY_ATTR { hashes[j] = h; });
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace bloomline::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
