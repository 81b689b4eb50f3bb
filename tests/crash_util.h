// What the tests of saving under bad luck share: two contents of a file, and the ways to write the one over the other.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bloomline/counting_filter.h"
#include "bloomline/filter.h"
#include "tests/snapshot_util.h"

namespace bloomline::test {

// Counters beyond their maximum in many places: the file has a section for them.
inline CountingFilter SpilledCounting(uint64_t blocks, uint64_t seed) {
  CountingFilter filter(SmallConfig(Layout::kCounting4, 8, blocks, "", seed).WithKeyKind(KeyKind::kU64),
                        OverflowPolicy::kSpill);
  const std::vector<uint64_t> keys = Random(seed).Take(200);
  for (int i = 0; i < 20; ++i) filter.AddBatch(std::span<const uint64_t>(keys));
  return filter;
}

// Becomes the command line program; the caller is a child. 127 where that fails.
[[noreturn]] inline void BecomeCli(const std::vector<std::string>& arguments) {
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(null, STDERR_FILENO);
  std::vector<char*> argv = {const_cast<char*>("bloomline")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(BLOOMLINE_CLI_PATH, argv.data());
  _exit(127);
}

inline int RunCli(const std::vector<std::string>& arguments) {
  return RunInChild([&]() -> int { BecomeCli(arguments); });
}

inline void WriteLines(const std::string& path, uint64_t count, uint64_t seed) {
  Random random(seed);
  std::string text;
  for (uint64_t i = 0; i < count; ++i) text += std::to_string(random.Next()) + "\n";
  WriteBytes(path, std::as_bytes(std::span(text)));
}

// Loads a file of either kind by all that the library checks: header, checksums, shape.
inline bool IsWhole(const std::string& path) {
  const Result<Filter> filter = Filter::TryLoad(path);
  return filter.ok() || CountingFilter::TryLoad(path).ok();
}

inline bool IsTemporary(const std::string& name) { return name.starts_with(".bloomline-") && name.ends_with(".tmp"); }

}  // namespace bloomline::test
