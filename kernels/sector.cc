// sector512z1 (word64), z2, z4 and z8 (split512) with every k that fits, on every target.
#include "kernels/registry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sector.cc"
#include "hwy/foreach_target.h"
#include "kernels/batch-inl.h"

namespace bloomline::kernels {
template <>
struct TargetOps<Layout::kSector512z1, HWY_TARGET> {
  static const detail::BlockOps* Find(int k) { return HWY_NAMESPACE::OpsOf<Layout::kSector512z1>(k); }
};
template <>
struct TargetOps<Layout::kSector512z2, HWY_TARGET> {
  static const detail::BlockOps* Find(int k) { return HWY_NAMESPACE::OpsOf<Layout::kSector512z2>(k); }
};
template <>
struct TargetOps<Layout::kSector512z4, HWY_TARGET> {
  static const detail::BlockOps* Find(int k) { return HWY_NAMESPACE::OpsOf<Layout::kSector512z4>(k); }
};
template <>
struct TargetOps<Layout::kSector512z8, HWY_TARGET> {
  static const detail::BlockOps* Find(int k) { return HWY_NAMESPACE::OpsOf<Layout::kSector512z8>(k); }
};
}  // namespace bloomline::kernels

#if HWY_ONCE
#include "kernels/dispatch-inl.h"
namespace bloomline::kernels {
const detail::BlockOps* FindSectorOps(Layout layout, int k, int64_t target) {
  switch (layout) {
    case Layout::kSector512z1:
      return FindForTarget<Layout::kSector512z1>(k, target);
    case Layout::kSector512z2:
      return FindForTarget<Layout::kSector512z2>(k, target);
    case Layout::kSector512z4:
      return FindForTarget<Layout::kSector512z4>(k, target);
    case Layout::kSector512z8:
      return FindForTarget<Layout::kSector512z8>(k, target);
    default:
      return nullptr;
  }
}
}  // namespace bloomline::kernels
#endif
