// split256 on every target.
#include "kernels/registry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/split256.cc"
#include "hwy/foreach_target.h"
#include "kernels/batch-inl.h"

namespace bloomline::kernels {
template <>
struct TargetOps<Layout::kSplit256, HWY_TARGET> {
  static const detail::BlockOps* Find(int k) { return HWY_NAMESPACE::OpsOf<Layout::kSplit256>(k); }
};
}  // namespace bloomline::kernels

#if HWY_ONCE
#include "kernels/dispatch-inl.h"
namespace bloomline::kernels {
const detail::BlockOps* FindSplit256Ops(int k, int64_t target) { return FindForTarget<Layout::kSplit256>(k, target); }
}  // namespace bloomline::kernels
#endif
