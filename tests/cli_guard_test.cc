// The command line's guards: an input is never the output, and where output may go.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli_runner.h"

namespace bloomline::test {
namespace {

constexpr uint64_t kFileLimit = uint64_t{1} << 20;  // a program that reads its own output stops here

class CliGuardTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    for (int i = 0; i < 1000; ++i) keys_ += "key-" + std::to_string(i) + "\n";
    WriteFile(Path("own"), keys_);
    RunJson({"build", "--keys", Path("own"), "--fpr", "0.01", "--out", Path("filter")});
    filter_ = ReadFile(Path("filter"));
  }
  void ExpectUntouched(const std::vector<std::string>& more = {}) const {
    EXPECT_EQ(ReadFile(Path("own")), keys_);
    EXPECT_EQ(ReadFile(Path("filter")), filter_);
    std::vector<std::string> names = {"filter", "own"};
    names.insert(names.end(), more.begin(), more.end());
    std::sort(names.begin(), names.end());
    EXPECT_EQ(Listing(), names);
  }
  std::vector<std::string> Query(const std::string& keys, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"query", Path("filter"), "--keys", keys, "--output", "maybe"});
    return more;
  }

  std::string keys_, filter_;
};

TEST_F(CliGuardTest, StandardInputIsNotTheOutput) {
  CliInput own;
  own.stdin_path = Path("own");
  own.file_limit = kFileLimit;
  ExpectError({"build", "--keys", "-", "--fpr", "0.01", "--out", Path("own")}, 2,
              {"--out ", "same file as --keys - (standard input)"}, own);
  ExpectError(Query("-", {"--lines-to", Path("own")}), 2, {"--lines-to ", "same file as --keys - (standard input)"},
              own);
  ExpectError(Query(Path("own"), {"--lines-to", Path("own")}), 2, {"--lines-to ", "same file as --keys"});
  ExpectError(Query(Path("own"), {"--lines-to", Path("filter")}), 2, {"--lines-to ", "same file as the filter"});
  ExpectUntouched();
  // Both are /dev/null: nothing to destroy.
  EXPECT_EQ(Run(Query("-", {"--lines-to", "/dev/null"})).exit_code, 0);
}

TEST_F(CliGuardTest, StandardOutputIsNotTheInput) {
  CliInput append;
  append.stdout_path = Path("own");
  append.append_stdout = true;
  append.file_limit = kFileLimit;
  ExpectError(Query(Path("own")), 2, {"--keys ", "input file is output file"}, append);
  append.stdin_path = Path("own");
  ExpectError(Query("-"), 2, {"--keys -", "input file is output file"}, append);
  ExpectError({"query", Path("filter"), "--keys", "-", "--output", "bitmap"}, 2, {"input file is output file"}, append);
  append.stdout_path = Path("filter");
  ExpectError(Query("-"), 2, {"FILTER ", "input file is output file"}, append);
  ExpectUntouched();
}

TEST_F(CliGuardTest, OutIsARegularFileOfItsOwn) {
  const std::vector<std::string> build = {"build", "--keys", Path("own"), "--fpr", "0.01", "--out"};
  const auto to = [&](const std::string& out) {
    std::vector<std::string> arguments = build;
    arguments.push_back(out);
    return arguments;
  };
  ExpectError(to("/dev/null"), 3, {"--out /dev/null: not a regular file"});
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  ExpectError(to(Path("fifo")), 3, {"not a regular file"});
  std::filesystem::remove(Path("fifo"));
  ExpectError(to("/dev/stdout"), 2, {"--out /dev/stdout: is where standard output goes"});
  ExpectError({"merge", Path("filter"), Path("filter"), "--out", "/dev/stdout"}, 2, {"is where standard output goes"});
  ExpectError(Query(Path("own"), {"--lines-to", "/dev/stdout"}), 2, {"is where standard output goes"});
  ExpectUntouched();
}

TEST_F(CliGuardTest, FileSizeLimit) {
  CliInput limited;
  limited.file_limit = 3000;
  ExpectError(Query(Path("own"), {"--lines-to", Path("lines")}), 4, {"--lines-to ", "lines", "File too large"},
              limited);
  WriteFile(Path("lines"), "precious");
  ExpectError(Query(Path("own"), {"--lines-to", Path("lines")}), 4, {"File too large"}, limited);
  EXPECT_EQ(ReadFile(Path("lines")), "precious");
  limited.file_limit = 1000;
  ExpectError({"build", "--keys", Path("own"), "--fpr", "0.01", "--out", Path("out")}, 4, {"out", "File too large"},
              limited);
  limited.stdout_path = Path("shell");
  const CliResult result = Run(Query(Path("own")), limited);
  EXPECT_EQ(result.exit_code, 4) << result.err;
  ExpectUntouched({"lines", "shell"});
}

TEST_F(CliGuardTest, LinesToFollowsLinks) {
  std::filesystem::create_directory(Path("d"));
  std::filesystem::create_symlink("d/target", Path("link"));  // dangling
  for (int round = 0; round < 2; ++round) {                   // made, then replaced
    EXPECT_EQ(Run(Query(Path("own"), {"--lines-to", Path("link")})).exit_code, 0);
    EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
    EXPECT_EQ(ReadFile(Path("d/target")), keys_);
  }
  std::filesystem::create_symlink("loop2", Path("loop1"));
  std::filesystem::create_symlink("loop1", Path("loop2"));
  ExpectError(Query(Path("own"), {"--lines-to", Path("loop1")}), 3, {"loop1", "symbolic links"});
  ExpectError({"build", "--keys", Path("own"), "--fpr", "0.01", "--out", Path("loop1")}, 3, {"symbolic links"});
  const std::string longest(255, 'n');
  EXPECT_EQ(Run(Query(Path("own"), {"--lines-to", Path(longest)})).exit_code, 0);
  EXPECT_EQ(ReadFile(Path(longest)), keys_);
  ExpectError(Query(Path("own"), {"--lines-to", Path(longest + "n")}), 3, {"name too long"});
  ExpectError(Query(Path("own"), {"--lines-to", ""}), 2, {"--lines-to ''"});
  ExpectUntouched({"d", "link", "loop1", "loop2", longest});
}

TEST_F(CliGuardTest, ExitCodeIsNotReadFromTheMessage) {
  // The name holds the text of another error: the exit code is that of the real one.
  ExpectError({"info", Path("No space left on device")}, 3, {"No such file"});
}

TEST_F(CliGuardTest, ReportsReadPlainly) {
  // 1,000 KiB or so, a small rate, and no key.
  const CliResult large = Run({"build", "--keys", Path("own"), "--expected", "1023k", "--bits-per-key", "8", "--layout",
                               "split512", "--out", Path("out")});
  EXPECT_EQ(large.exit_code, 0) << large.err;
  EXPECT_NE(large.out.find("memory  999 KiB"), std::string::npos) << large.out;
  const CliResult larger = Run({"build", "--keys", Path("own"), "--expected", "1023.6k", "--bits-per-key", "8",
                                "--layout", "split512", "--out", Path("out")});
  EXPECT_NE(larger.out.find("memory  999.6 KiB"), std::string::npos) << larger.out;
  EXPECT_EQ(larger.out.find("e+"), std::string::npos) << larger.out;
  const CliResult rare = Run({"build", "--keys", Path("own"), "--fpr", "1e-9", "--out", Path("out")});
  EXPECT_NE(rare.out.find("target 1e-09\n"), std::string::npos) << rare.out;
  for (const char* fpr : {"0.01", "0.001", "1e-6"}) {
    const std::string text = Run({"build", "--keys", Path("own"), "--fpr", fpr, "--out", Path("out")}).out;
    EXPECT_NE(text.find("\nwhy "), std::string::npos) << text;
    for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (text.compare(begin, 4, "file") != 0) {
        EXPECT_LT(end - begin, 100u) << text;
      }
    }
  }
  WriteFile(Path("ragged"), std::string(9, 'x'));
  ExpectError({"build", "--keys", Path("ragged"), "--format", "u64le", "--fpr", "0.01", "--out", Path("out")}, 3,
              {"1 byte remains after key 1"});
}

}  // namespace
}  // namespace bloomline::test
