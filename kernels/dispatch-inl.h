// Included once per family's .cc, after the last foreach_target pass: looks a target up among those compiled. Highway's
// own dispatch picks one target per process; filters here may be forced to different ones, so the table is asked by
// target.
#pragma once

#include "hwy/highway.h"
#include "kernels/registry.h"

namespace bloomline::kernels {

template <Layout kLayout, int kBit = 0>
const detail::BlockOps* FindForTarget(int k, int64_t target) {
  if constexpr (kBit == 63) {
    return nullptr;
  } else {
    constexpr int64_t kTarget = int64_t{1} << kBit;
    if constexpr ((HWY_TARGETS & kTarget) != 0) {
      if (target == kTarget) return TargetOps<kLayout, kTarget>::Find(k);
    }
    return FindForTarget<kLayout, kBit + 1>(k, target);
  }
}

}  // namespace bloomline::kernels
