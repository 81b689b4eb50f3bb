#include "bench/limits.h"

#include <cstdint>

#ifndef BLOOMLINE_BENCH_TARGET_LIMITS_
#define BLOOMLINE_BENCH_TARGET_LIMITS_
namespace bloomline::kernels {
template <int64_t kTarget>
struct TargetLimits;  // one per foreach_target pass
}  // namespace bloomline::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/limits.cc"
#include "hwy/foreach_target.h"
#include "kernels/batch-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bloomline::kernels {
namespace HWY_NAMESPACE {
namespace {

// split512 stands for all: offset and one word of g per key.
constexpr SpecId kId = {Layout::kSplit512, 8};

uint64_t Hash(const detail::BlockBits& bits, const detail::KeySpan& keys) {
  uint64_t sum = 0;
  StashOf<kId, false> stash;
  for (size_t first = 0; first < keys.size; first += kChunk) {
    const size_t count = std::min(kChunk, keys.size - first);
    FillStash<StashId(kId, false), false>(bits, keys, first, count, stash);
    sum += stash.offset[0][count - 1] ^ stash.field[0][0];
  }
  return sum;
}

using DLine = hn::CappedTag<uint64_t, 8>;

uint64_t HashTouch(const detail::BlockBits& bits, const detail::KeySpan& keys) {
  const DLine d;
  auto seen = hn::Zero(d);
  const uint8_t* base = reinterpret_cast<const uint8_t*>(bits.words);
  ForChunks<kId, false>(bits, keys,
                        [&](size_t, size_t count, const StashOf<kId, false>& stash, const auto& ahead) HWY_ATTR {
                          for (size_t j = 0; j < count; ++j) {
                            ahead(j);
                            const auto* line = reinterpret_cast<const uint64_t*>(base + stash.offset[0][j]);
                            for (size_t w = 0; w < 8; w += hn::Lanes(d)) seen = hn::Or(seen, hn::Load(d, line + w));
                          }
                        });
  return hn::GetLane(hn::SumOfLanes(d, seen));
}

uint64_t HashRmw(const detail::BlockBits& bits, const detail::KeySpan& keys) {
  const DLine d;
  uint8_t* base = reinterpret_cast<uint8_t*>(bits.words);
  const auto nothing = hn::Set(d, keys.size >> 63);  // zero, but not known to the compiler
  ForChunks<kId, false>(bits, keys,
                        [&](size_t, size_t count, const StashOf<kId, false>& stash, const auto& ahead) HWY_ATTR {
                          for (size_t j = 0; j < count; ++j) {
                            ahead(j);
                            auto* line = reinterpret_cast<uint64_t*>(base + stash.offset[0][j]);
                            for (size_t w = 0; w < 8; w += hn::Lanes(d))
                              hn::Store(hn::Or(hn::Load(d, line + w), nothing), d, line + w);
                          }
                        });
  return bits.words[0];
}

constexpr bench::LimitOps kLimitOps = {&Hash, &HashTouch, &HashRmw};
const bench::LimitOps* Limits() { return &kLimitOps; }

}  // namespace
}  // namespace HWY_NAMESPACE

template <>
struct TargetLimits<HWY_TARGET> {
  static const bench::LimitOps* Find() { return HWY_NAMESPACE::Limits(); }
};
}  // namespace bloomline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/kernels.h"

namespace bloomline::bench {
namespace {
template <int kBit = 0>
const LimitOps* Find(std::string_view target) {
  if constexpr (kBit == 63) {
    return nullptr;
  } else {
    constexpr int64_t kTarget = int64_t{1} << kBit;
    if constexpr ((HWY_TARGETS & kTarget) != 0) {
      const bool scalar = kTarget == HWY_SCALAR || kTarget == HWY_EMU128;
      if (target == (scalar ? std::string_view("SCALAR") : std::string_view(hwy::TargetName(kTarget)))) {
        return kernels::TargetLimits<kTarget>::Find();
      }
    }
    return Find<kBit + 1>(target);
  }
}
}  // namespace
const LimitOps* FindLimitOps(std::string_view target) { return Find(target); }
}  // namespace bloomline::bench
#endif
