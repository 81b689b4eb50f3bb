// --threads, --pages and --placement, as the commands share them.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "bloomline/memory.h"

namespace bloomline::cli {

class ThreadsOption {
 public:
  void Declare(CLI::App& app);
  // ThreadPool::kAuto where nothing or "auto" was given. CliError(2).
  int Read() const;

 private:
  std::optional<std::string> threads_;
};

class MemoryOption {
 public:
  void Declare(CLI::App& app);
  // The library's defaults where nothing was given. CliError(2).
  MemoryPolicy Read() const;
  bool Given() const { return pages_ || placement_; }

 private:
  std::optional<std::string> pages_;
  std::optional<std::string> placement_;
};

}  // namespace bloomline::cli
