#include "kernels/kernels.h"

#include "hwy/highway.h"
#include "kernels/registry.h"

namespace bloomline::kernels {
namespace {

// Highway's bits are ordered best first on every architecture.
std::vector<int64_t> TargetBits(int64_t set) {
  std::vector<int64_t> bits;
  for (int bit = 0; bit < 63; ++bit) {
    const int64_t target = int64_t{1} << bit;
    if ((set & target) != 0) bits.push_back(target);
  }
  return bits;
}

std::string_view NameOf(int64_t target) {
  return target == HWY_EMU128 || target == HWY_SCALAR ? std::string_view("SCALAR")
                                                      : std::string_view(hwy::TargetName(target));
}

// What runs here. The scalar fallback always does, whatever the CPU has. Asked once: in virtual machines the CPU's
// identification traps, which made up most of the 250 us that a small filter took to make.
int64_t Supported() {
  static const int64_t supported = (hwy::SupportedTargets() | HWY_SCALAR | HWY_EMU128) & (HWY_TARGETS);
  return supported;
}

std::vector<std::string_view> Names(int64_t set) {
  std::vector<std::string_view> names;
  for (const int64_t target : TargetBits(set)) names.push_back(NameOf(target));
  return names;
}

}  // namespace

std::vector<std::string_view> CompiledTargetNames() { return Names(HWY_TARGETS); }
std::vector<std::string_view> SupportedTargetNames() { return Names(Supported()); }

const detail::BlockOps* FindBlockOps(Layout layout, int k, std::string_view target) {
  for (const int64_t bit : TargetBits(Supported())) {
    if (NameOf(bit) != target) continue;
    switch (layout) {
      case Layout::kAuto:
        return nullptr;
      case Layout::kLine512:
        return FindLineOps(k, bit);
      case Layout::kSplit256:
        return FindSplit256Ops(k, bit);
      case Layout::kCounting4:
      case Layout::kCounting8:
        return FindCountingLookups(layout, k, bit);
      default:
        return FindSectorOps(layout, k, bit);
    }
  }
  return nullptr;
}

const detail::CountingOps* FindCountingOps(Layout layout, OverflowPolicy policy, std::string_view target) {
  if (!IsCounting(layout)) return nullptr;
  for (const int64_t bit : TargetBits(Supported())) {
    if (NameOf(bit) == target) return FindCounting(layout, policy, bit);
  }
  return nullptr;
}

}  // namespace bloomline::kernels
