// What the tests of counting filters on the command line share.
#pragma once

#include <string>
#include <vector>

#include "bloomline/counting_filter.h"
#include "tests/cli_runner.h"

namespace bloomline::test {

using Strings = std::vector<std::string>;
inline constexpr const char* kPolicies[] = {"saturate", "reject", "spill"};

inline std::string KeyName(int i) { return "key-" + std::to_string(i); }

inline Strings Keys(int begin, int end) {
  Strings keys;
  for (int i = begin; i < end; ++i) keys.push_back(KeyName(i));
  return keys;
}

inline std::string Joined(const Strings& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

inline Strings Split(const std::string& text) {
  Strings lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

inline std::string Snapshot(const CountingFilter& filter) {
  std::vector<std::byte> bytes(filter.SerializedBytes());
  filter.SerializeTo(bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class CliCountingTest : public CliTest {
 protected:
  // A filter "f" of `keys`, sized for `expected` of them at 40 bits of memory, and the keys in "keys".
  Json Build(const Strings& keys, int expected, const std::string& policy, const std::string& layout = "counting4",
             const std::string& out = "f") const {
    WriteFile(Path("keys"), Joined(keys));
    return RunJson({"build", "--keys", Path("keys"), "--bits-per-key", "40", "--expected", std::to_string(expected),
                    "--layout", layout, "--overflow", policy, "--out", Path(out)});
  }
  Json OnLines(const std::string& command, const Strings& lines, Strings more = {}) const {
    WriteFile(Path("lines"), Joined(lines));
    more.insert(more.begin(), {command, Path("f"), "--keys", Path("lines")});
    return RunJson(more);
  }
};

}  // namespace bloomline::test
