#include "tools/layout_option.h"

#include "tools/cli_error.h"
#include "tools/numbers.h"

namespace bloomline::cli {

void LayoutOption::Declare(CLI::App& app, const std::string& layout_help, const std::string& k_help) {
  app.add_option("--layout", layout_, layout_help)->type_name("L");
  app.add_option("--k", k_, k_help)->type_name("K");
}

LayoutChoice LayoutOption::Read() const {
  LayoutChoice choice;
  if (layout_) {
    const Result<LayoutChoice> named = TryParseLayout(*layout_);
    if (!named.ok()) {
      ThrowUsage("--layout", *layout_,
                 "must be auto, word64, sector512z1, sector512z2, sector512z4, sector512z8, split512, line512, "
                 "split256, counting4 or counting8, with or without a k that fits (word64k5)");
    }
    choice = *named;
  }
  if (!k_) return choice;
  const int k = static_cast<int>(ParseCount("--k", *k_, kMinHashes, kMaxHashes));
  if (choice.k != 0 && choice.k != k) {
    ThrowUsage("--k", *k_, "contradicts --layout " + Printable(*layout_) + ", whose k is " + std::to_string(choice.k));
  }
  if (choice.layout != Layout::kAuto && !IsValidHashCount(choice.layout, k)) {
    const std::string zones = std::to_string(ZonesOf(choice.layout));
    ThrowUsage("--k", *k_,
               "does not fit --layout " + Printable(*layout_) + ": must be a multiple of " + zones + ", " + zones +
                   " to " + std::to_string(kMaxHashes));
  }
  choice.k = k;
  return choice;
}

}  // namespace bloomline::cli
