#include "tools/tune/layouts.h"

#include <array>

namespace bloomline::cli {
namespace {

constexpr std::array<Layout, 8> kLayouts = {Layout::kWord64,      Layout::kSector512z2, Layout::kSector512z4,
                                            Layout::kSector512z8, Layout::kLine512,     Layout::kSplit256,
                                            Layout::kCounting4,   Layout::kCounting8};

}  // namespace

std::vector<LayoutChoice> TunedLayouts() {
  std::vector<LayoutChoice> choices;
  for (const Layout layout : kLayouts) {
    for (int k = kMinHashes; k <= kMaxHashes; ++k) {
      if (IsValidHashCount(layout, k)) choices.push_back({layout, k});
    }
  }
  return choices;
}

std::string ChoiceText(LayoutChoice choice) {
  std::string name = LayoutName(choice.layout, choice.k);
  if (name != LayoutNameWithK(choice.layout, choice.k)) name += " k=" + std::to_string(choice.k);
  return name;
}

const char* LayoutConstant(LayoutChoice choice) {
  switch (choice.layout) {
    case Layout::kWord64:
      return "kWord64";
    case Layout::kSector512z2:
      return "kSector512z2";
    case Layout::kSector512z4:
      return "kSector512z4";
    case Layout::kSector512z8:
      return choice.k == 8 ? "kSplit512" : "kSector512z8";
    case Layout::kLine512:
      return "kLine512";
    case Layout::kSplit256:
      return "kSplit256";
    case Layout::kCounting4:
      return "kCounting4";
    case Layout::kCounting8:
      return "kCounting8";
    case Layout::kAuto:
      break;
  }
  return "kAuto";
}

}  // namespace bloomline::cli
