#include "bloomline/layout.h"

#include <string>
#include <string_view>

#include "engine/out_of_memory.h"

namespace bloomline {
namespace {

// A name that leaves k open; sector512z1 is read but printed as word64.
struct Name {
  std::string_view text;
  Layout layout;
};
constexpr Name kOpenNames[] = {
    {"word64", Layout::kSector512z1},      {"sector512z1", Layout::kSector512z1}, {"sector512z2", Layout::kSector512z2},
    {"sector512z4", Layout::kSector512z4}, {"sector512z8", Layout::kSector512z8}, {"line512", Layout::kLine512},
};

Error UnknownLayout(std::string_view name) {
  return Error(ErrorCode::kInvalidArgument,
               "layout = '" + std::string(name) +
                   "': must be auto, word64, sector512z1, sector512z2, sector512z4, sector512z8, split512, line512, "
                   "split256, counting4 or counting8, with k appended where it is open (word64k5)");
}

}  // namespace

bool IsValidHashCount(Layout layout, int k) noexcept {
  if (k < kMinHashes || k > kMaxHashes) return false;
  switch (layout) {
    case Layout::kSector512z1:
    case Layout::kSector512z2:
    case Layout::kSector512z4:
    case Layout::kSector512z8:
      return k % ZonesOf(layout) == 0;
    case Layout::kLine512:
      return true;
    case Layout::kSplit256:
    case Layout::kCounting4:
    case Layout::kCounting8:
      return k == 8;
    case Layout::kAuto:
      break;
  }
  return false;
}

int ZonesOf(Layout layout) noexcept {
  switch (layout) {
    case Layout::kSector512z2:
      return 2;
    case Layout::kSector512z4:
      return 4;
    case Layout::kSector512z8:
    case Layout::kSplit256:
    case Layout::kCounting4:
    case Layout::kCounting8:
      return 8;
    case Layout::kSector512z1:
    case Layout::kLine512:
    case Layout::kAuto:
      break;
  }
  return 1;
}

int BlockBits(Layout layout) noexcept { return layout == Layout::kSplit256 ? 256 : 512; }

int CellsPerBlock(Layout layout) noexcept {
  if (layout == Layout::kCounting4) return 128;
  return layout == Layout::kCounting8 ? 64 : BlockBits(layout);
}

std::string LayoutName(Layout layout, int k) {
  switch (layout) {
    case Layout::kAuto:
      return "auto";
    case Layout::kSector512z1:
      return "word64";
    case Layout::kSector512z2:
      return "sector512z2";
    case Layout::kSector512z4:
      return "sector512z4";
    case Layout::kSector512z8:
      return k == 8 ? "split512" : "sector512z8";
    case Layout::kLine512:
      return "line512";
    case Layout::kSplit256:
      return "split256";
    case Layout::kCounting4:
      return "counting4";
    case Layout::kCounting8:
      return "counting8";
  }
  return "unknown";
}

std::string LayoutNameWithK(Layout layout, int k) {
  std::string name = LayoutName(layout, k);
  const bool named_with_k = layout == Layout::kAuto || layout == Layout::kSplit256 || IsCounting(layout) ||
                            (layout == Layout::kSplit512 && k == 8);
  if (!named_with_k) name += "k" + std::to_string(k);
  return name;
}

Result<LayoutChoice> TryParseLayout(std::string_view name) try {
  if (name == "auto") return LayoutChoice{Layout::kAuto, 0};
  if (name == "split512") return LayoutChoice{Layout::kSplit512, 8};
  if (name == "split256") return LayoutChoice{Layout::kSplit256, 8};
  if (name == "counting4") return LayoutChoice{Layout::kCounting4, 8};
  if (name == "counting8") return LayoutChoice{Layout::kCounting8, 8};
  for (const Name& open : kOpenNames) {
    if (name.substr(0, open.text.size()) != open.text) continue;
    const std::string_view rest = name.substr(open.text.size());
    if (rest.empty()) return LayoutChoice{open.layout, 0};
    if (rest[0] != 'k') continue;
    // One or two digits, as printed: no sign, no leading zero.
    const std::string_view digits = rest.substr(1);
    if (digits.empty() || digits.size() > 2 || digits[0] == '0' ||
        digits.find_first_not_of("0123456789") != std::string_view::npos) {
      break;
    }
    int k = 0;
    for (const char digit : digits) k = k * 10 + (digit - '0');
    if (!IsValidHashCount(open.layout, k)) {
      const int zones = ZonesOf(open.layout);
      return Error(ErrorCode::kInvalidArgument,
                   "layout = '" + std::string(name) + "': k must be " +
                       (zones > 1 ? "a multiple of " + std::to_string(zones) + " up to 16" : "1 to 16"));
    }
    return LayoutChoice{open.layout, k};
  }
  return UnknownLayout(name);
} catch (...) {
  return detail::CaughtError();
}

}  // namespace bloomline
