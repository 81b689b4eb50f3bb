// build and query with several threads, other pages and placements: the same files and answers, and honest reports.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli_runner.h"

namespace bloomline::test {
namespace {

// Enough for the pool to be started, and for more than one round of it.
std::string ManyLines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "key-" + std::to_string(i * 7) + "\n";
  return text;
}

std::string ManyIntegers(uint64_t count) {
  std::vector<uint64_t> values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = i * 0x9e3779b97f4a7c15;
  return Bytes(values);
}

TEST_F(CliTest, FilesAreTheSameWhateverTheThreads) {
  WriteFile(Path("lines"), ManyLines(1'200'000) + std::string(5 << 20, 'x') + "\nlast");  // a line beyond the buffer
  WriteFile(Path("integers"), ManyIntegers(2'500'000));
  for (const std::string format : {"lines", "u64le"}) {
    const std::string keys = Path(format == "lines" ? "lines" : "integers");
    std::string expected;
    for (const std::string threads : {"1", "2", "3", "auto"}) {
      const Json json = RunJson({"build", "--keys", keys, "--format", format, "--fpr", "0.001", "--seed", "9",
                                 "--threads", threads, "--out", Path("out")});
      if (threads != "auto") {
        EXPECT_EQ(json["threads"], std::stoi(threads));
      }
      EXPECT_GE(json["threads"].get<int>(), 1);
      const std::string bytes = ReadFile(Path("out"));
      if (expected.empty()) expected = bytes;
      EXPECT_TRUE(bytes == expected) << format << " " << threads;
    }
    const Json one = RunJson({"query", Path("out"), "--keys", keys, "--threads", "1"});
    const Json two = RunJson({"query", Path("out"), "--keys", keys, "--threads", "2"});
    EXPECT_EQ(one["threads"], 1);
    EXPECT_EQ(two["threads"], 2);
    EXPECT_EQ(one["absent"], 0);
    EXPECT_EQ(one["maybe"], two["maybe"]);
    for (const std::string output : {"bitmap", "maybe"}) {
      const CliResult serial = Run({"query", Path("out"), "--keys", keys, "--threads", "1", "--output", output});
      const CliResult parallel = Run({"query", Path("out"), "--keys", keys, "--threads", "2", "--output", output});
      EXPECT_EQ(parallel.exit_code, 0) << parallel.err;
      EXPECT_TRUE(serial.out == parallel.out) << output;
    }
  }
}

TEST_F(CliTest, FewKeysStartNoThreads) {
  WriteFile(Path("keys"), "a\nb\n");
  EXPECT_EQ(
      RunJson({"build", "--keys", Path("keys"), "--fpr", "0.01", "--threads", "2", "--out", Path("out")})["threads"],
      1);
  EXPECT_EQ(RunJson({"query", Path("out"), "--keys", Path("keys"), "--threads", "2"})["threads"], 1);
}

TEST_F(CliTest, FilesAreTheSameWhateverTheMemory) {
  WriteFile(Path("keys"), ManyIntegers(400'000));
  const std::vector<std::string> base = {"build",          "--keys", Path("keys"), "--format", "u64le",
                                         "--bits-per-key", "64",     "--out",      Path("out")};
  RunJson(base);
  const std::string expected = ReadFile(Path("out"));
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{{"--pages", "default"},
                                                                                       {"--pages", "transparent"},
                                                                                       {"--pages", "2MiB"},
                                                                                       {"--pages", "1GiB"},
                                                                                       {"--placement", "local"},
                                                                                       {"--placement", "interleave"},
                                                                                       {"--placement", "bind:0"},
                                                                                       {"--placement", "replicate"},
                                                                                       {"--placement", "partition"}}) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Json json = RunJson(arguments);
    EXPECT_NE(json["granted_pages"], "");
    EXPECT_GE(json["copies"].get<int>(), 1);
    EXPECT_TRUE(ReadFile(Path("out")) == expected) << options[0] << " " << options[1];
    if (options[1] == "default") {
      EXPECT_EQ(json["granted_pages"].get<std::string>().find("2MiB"), std::string::npos);
    }
  }
}

TEST_F(CliTest, ThreadsPagesAndPlacementArguments) {
  WriteFile(Path("keys"), "a\n");
  const auto with = [&](const std::string& option, const std::string& value) {
    return std::vector<std::string>{"build", "--keys",    Path("keys"), "--fpr", "0.01",
                                    "--out", Path("out"), option,       value};
  };
  for (const char* value : {"0", "-1", "4097", "1.5", "many", ""})
    ExpectError(with("--threads", value), 2, {"--threads"});
  for (const char* value : {"4k", "2mib", "huge", ""}) ExpectError(with("--pages", value), 2, {"--pages", "1GiB"});
  for (const char* value : {"near", "bind", ""})
    ExpectError(with("--placement", value), 2, {"--placement", "replicate"});
  for (const char* value : {"bind:", "bind:x", "bind:-1"}) ExpectError(with("--placement", value), 2, {"--placement"});
  ExpectError(with("--placement", "bind:777"), 2, {"--placement", "bind:777", "nodes are 0"});
  EXPECT_EQ(Listing(), std::vector<std::string>{"keys"});
  RunJson({"build", "--keys", Path("keys"), "--fpr", "0.01", "--out", Path("out")});
  ExpectError({"query", Path("out"), "--keys", Path("keys"), "--threads", "0"}, 2, {"--threads", "0"});
}

}  // namespace
}  // namespace bloomline::test
