// line512, k = 1 … 16, on every target.
#include "kernels/registry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/line.cc"
#include "hwy/foreach_target.h"
#include "kernels/batch-inl.h"

namespace bloomline::kernels {
template <>
struct TargetOps<Layout::kLine512, HWY_TARGET> {
  static const detail::BlockOps* Find(int k) { return HWY_NAMESPACE::OpsOf<Layout::kLine512>(k); }
};
}  // namespace bloomline::kernels

#if HWY_ONCE
#include "kernels/dispatch-inl.h"
namespace bloomline::kernels {
const detail::BlockOps* FindLineOps(int k, int64_t target) { return FindForTarget<Layout::kLine512>(k, target); }
}  // namespace bloomline::kernels
#endif
