// counting4 and counting8 with every overflow policy, on every target.
#include "kernels/registry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/counting.cc"
#include "hwy/foreach_target.h"
#include "kernels/counting-inl.h"

namespace bloomline::kernels {
template <>
struct TargetOps<Layout::kCounting4, HWY_TARGET> {
  static const detail::BlockOps* Find(int k) { return k == 8 ? &HWY_NAMESPACE::kCountingLookups<4> : nullptr; }
  static const detail::CountingOps* FindCounting(OverflowPolicy policy) {
    return HWY_NAMESPACE::CountingOpsOf<4>(policy);
  }
};
template <>
struct TargetOps<Layout::kCounting8, HWY_TARGET> {
  static const detail::BlockOps* Find(int k) { return k == 8 ? &HWY_NAMESPACE::kCountingLookups<8> : nullptr; }
  static const detail::CountingOps* FindCounting(OverflowPolicy policy) {
    return HWY_NAMESPACE::CountingOpsOf<8>(policy);
  }
};
}  // namespace bloomline::kernels

#if HWY_ONCE
#include "kernels/dispatch-inl.h"
namespace bloomline::kernels {
namespace {
template <Layout kLayout>
const detail::CountingOps* FindCountingForTarget(OverflowPolicy policy, int64_t target) {
  return FindAtTarget<detail::CountingOps>(
      target, [policy]<int64_t kTarget>() { return TargetOps<kLayout, kTarget>::FindCounting(policy); });
}
}  // namespace

const detail::BlockOps* FindCountingLookups(Layout layout, int k, int64_t target) {
  return layout == Layout::kCounting4 ? FindForTarget<Layout::kCounting4>(k, target)
                                      : FindForTarget<Layout::kCounting8>(k, target);
}
const detail::CountingOps* FindCounting(Layout layout, OverflowPolicy policy, int64_t target) {
  return layout == Layout::kCounting4 ? FindCountingForTarget<Layout::kCounting4>(policy, target)
                                      : FindCountingForTarget<Layout::kCounting8>(policy, target);
}
}  // namespace bloomline::kernels
#endif
