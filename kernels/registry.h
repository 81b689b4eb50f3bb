// How the per-target code of one .cc file becomes known outside of it. Internal to kernels/.
#pragma once

#include <cstdint>

#include "bloomline/detail/block_ops.h"
#include "bloomline/layout.h"
#include "bloomline/overflow_policy.h"

namespace bloomline::kernels {

using FindOps = const detail::BlockOps* (*)(int k);

// A family of layouts defines one of these per Highway target, as a specialisation inside its foreach_target pass.
template <Layout kLayout, int64_t kTarget>
struct TargetOps {
  static const detail::BlockOps* Find(int) { return nullptr; }
};

// The kernels of (layout, k) compiled for one of Highway's targets (a single bit); nullptr where there are none.
// Defined beside the layouts' code.
const detail::BlockOps* FindSectorOps(Layout layout, int k, int64_t target);
const detail::BlockOps* FindLineOps(int k, int64_t target);
const detail::BlockOps* FindSplit256Ops(int k, int64_t target);
const detail::BlockOps* FindCountingLookups(Layout layout, int k, int64_t target);
const detail::CountingOps* FindCounting(Layout layout, OverflowPolicy policy, int64_t target);

}  // namespace bloomline::kernels
