// --layout and --k, as the commands share them.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "bloomline/layout.h"

namespace bloomline::cli {

class LayoutOption {
 public:
  void Declare(CLI::App& app, const std::string& layout_help, const std::string& k_help);
  // What was given: kAuto and 0 where nothing was. CliError(2) for a name that does not exist and a k that does not
  // fit.
  LayoutChoice Read() const;
  const std::optional<std::string>& layout() const { return layout_; }
  const std::optional<std::string>& k() const { return k_; }

 private:
  std::optional<std::string> layout_;
  std::optional<std::string> k_;
};

}  // namespace bloomline::cli
