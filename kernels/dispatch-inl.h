// Included once per family's .cc, after the last foreach_target pass: looks a target up among those compiled. Highway's
// own dispatch picks one target per process; filters here may be forced to different ones, so the table is asked by
// target.
#pragma once

#include "hwy/highway.h"
#include "kernels/registry.h"

namespace bloomline::kernels {

// find.operator()<kTarget>() for `target`, one bit; nullptr where it is not compiled.
template <class Ops, class Find, int kBit = 0>
const Ops* FindAtTarget(int64_t target, const Find& find) {
  if constexpr (kBit == 63) {
    return nullptr;
  } else {
    constexpr int64_t kTarget = int64_t{1} << kBit;
    if constexpr ((HWY_TARGETS & kTarget) != 0) {
      if (target == kTarget) return find.template operator()<kTarget>();
    }
    return FindAtTarget<Ops, Find, kBit + 1>(target, find);
  }
}

template <Layout kLayout>
const detail::BlockOps* FindForTarget(int k, int64_t target) {
  return FindAtTarget<detail::BlockOps>(target,
                                        [k]<int64_t kTarget>() { return TargetOps<kLayout, kTarget>::Find(k); });
}

}  // namespace bloomline::kernels
