// add, remove and count that fail: the filter's file stays as it was.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "bloomline/counting_filter.h"
#include "tests/cli_counting_util.h"

namespace bloomline::test {
namespace {

TEST_F(CliCountingTest, WrongArguments) {
  Build(Keys(0, 10), 100, "reject");
  const std::string before = ReadFile(Path("f"));
  WriteFile(Path("integers"), Bytes({1, 2}));
  RunJson({"build", "--keys", Path("keys"), "--fpr", "0.01", "--layout", "split512", "--out", Path("plain")});
  const std::string plain = ReadFile(Path("plain"));
  for (const std::string command : {"add", "remove", "count"}) {
    const auto refused = [&](Strings more, int code, Strings parts) {
      more.insert(more.begin(), command);
      parts.insert(parts.begin(), "bloomline " + command + ": ");
      ExpectError(more, code, parts);
    };
    const std::string f = Path("f");
    const std::string keys = Path("keys");
    refused({f}, 2, {"--keys", "required"});
    refused({"--keys", keys}, 2, {"FILTER", "required"});
    refused({f, "--keys", keys, "--nonsense"}, 2, {"--nonsense"});
    refused({f, "--keys", keys, "--format", "csv"}, 2, {"--format csv: must be lines or u64le"});
    refused({f, "--keys", Path("integers"), "--format", "u64le"}, 3, {"--format u64le", "kind bytes"});
    refused({f, "--keys", keys, "--output", "maybe"}, 2, {"--output maybe: must be "});
    refused({f, "--keys", keys, "--lines-to", Path("x")}, 2, {"--lines-to", "needs --output "});
    refused({f, "--keys", Path("nowhere")}, 3, {"nowhere: No such file"});
    refused({f, "--keys", Path("")}, 3, {"directory"});
    refused({Path("nowhere"), "--keys", keys}, 3, {"nowhere"});
    refused({keys, "--keys", keys}, 3, {"keys"});
    refused({Path("plain"), "--keys", keys}, 3, {"plain: its layout, split512, has no counters", "counting4"});
    const std::string per_key = command == "add" ? "refused" : command == "remove" ? "absent" : "lines";
    refused({f, "--keys", keys, "--output", per_key, "--lines-to", f}, 2, {"--lines-to", "same file as the filter"});
    refused({f, "--keys", keys, "--output", per_key, "--lines-to", keys}, 2, {"--lines-to", "same file as --keys"});
    refused({f, "--keys", keys, "--output", per_key, "--lines-to", Path("no/x")}, 3, {"no/x"});
    if (command != "count") refused({f, "--keys", f}, 2, {"FILTER", "same file as --keys"});
    CliInput appended;
    appended.stdout_path = f;
    appended.append_stdout = true;
    const CliResult onto = Run({command, f, "--keys", keys, "--output", per_key}, appended);
    EXPECT_EQ(onto.exit_code, 2) << onto.err;
  }
  EXPECT_EQ(ReadFile(Path("f")), before);
  EXPECT_EQ(ReadFile(Path("plain")), plain);
  EXPECT_EQ(Listing(), (Strings{"f", "integers", "keys", "plain"}));
}

TEST_F(CliCountingTest, KeysThatEndBadlyChangeNothing) {
  std::vector<uint64_t> keys(200000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  WriteFile(Path("keys"), Bytes(keys));
  RunJson({"build", "--keys", Path("keys"), "--format", "u64le", "--fpr", "0.01", "--layout", "counting4", "--out",
           Path("f")});
  const std::string before = ReadFile(Path("f"));
  WriteFile(Path("ragged"), Bytes(keys) + "abc");
  CliInput piped;
  piped.pipe = Piped(Bytes(keys) + "abc");
  for (const std::string command : {"add", "remove"}) {
    ExpectError({command, Path("f"), "--keys", Path("ragged")}, 3, {"ragged: 1,600,003 bytes", "3 bytes remain"});
    ExpectError({command, Path("f"), "--keys", "-"}, 3, {"3 bytes remain after key 200,000"}, piped);
    EXPECT_EQ(ReadFile(Path("f")), before);
  }
#ifdef __linux__
  // Reading from address 0 of a process is an error of read, not of open.
  ExpectError({"add", Path("f"), "--keys", "/proc/self/mem"}, 3, {"/proc/self/mem: Input/output error"});
#endif
  EXPECT_EQ(ReadFile(Path("f")), before);
  EXPECT_EQ(Listing(), (Strings{"f", "keys", "ragged"}));
}

TEST_F(CliCountingTest, OutputThatFailsChangesNothing) {
  Build({}, 100, "reject");
  WriteFile(Path("lines"), Joined(Strings(30, "often")));
  const std::string before = ReadFile(Path("f"));
  CliInput full;
  full.stdout_path = "/dev/full";
  ExpectError({"add", Path("f"), "--keys", Path("lines"), "--output", "refused"}, 4, {"standard output"}, full);
  CliInput broken;
  broken.break_stdout = true;
  EXPECT_EQ(Run({"add", Path("f"), "--keys", Path("lines"), "--output", "refused"}, broken).exit_code, 3);
  ExpectError({"add", Path("f"), "--keys", Path("lines"), "--output", "refused", "--lines-to", "/dev/full"}, 4,
              {"--lines-to /dev/full", "No space left"});
  EXPECT_EQ(ReadFile(Path("f")), before);
}

TEST_F(CliCountingTest, OutputThatFailsAfterTheSaveSaysSo) {
  Build({}, 100, "reject");
  WriteFile(Path("lines"), "a\n");
  CliInput full;
  full.stdout_path = "/dev/full";
  ExpectError({"add", Path("f"), "--keys", Path("lines")}, 4, {"standard output: No space left", "f was saved"}, full);
  ExpectError({"add", Path("f"), "--keys", Path("lines"), "--json"}, 4, {"f was saved"}, full);
  EXPECT_EQ(CountingFilter::Load(Path("f")).Count("a"), 2u);
  // Nothing was added, nothing was saved.
  const CliResult none = Run({"add", Path("f"), "--keys", "/dev/null"}, full);
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_EQ(none.err.find("saved"), std::string::npos) << none.err;
}

TEST_F(CliCountingTest, AFileThatIsReplacedMeanwhileStaysSo) {
  Build({}, 1000, "saturate", "counting4", "other");
  const std::string other = ReadFile(Path("other"));
  Build({}, 100000, "saturate");
  CliInput piped;
  piped.pipe = [&](int fd) {
    const std::string many = Joined(Keys(0, 50000));
    ASSERT_GT(many.size(), size_t{1} << 18);  // more than a pipe holds: the filter has been loaded when it is written
    WriteFully(fd, many);
    std::filesystem::rename(Path("other"), Path("f"));
  };
  ExpectError({"add", Path("f"), "--keys", "-"}, 3, {"f: was replaced while the keys were read"}, piped);
  EXPECT_EQ(ReadFile(Path("f")), other);
}

TEST_F(CliCountingTest, FilesThatCannotBeReplacedStay) {
  Build(Keys(0, 1000), 1000, "spill");
  const std::string before = ReadFile(Path("f"));
  CliInput limited;
  limited.file_limit = 4096;
  for (const std::string command : {"add", "remove"}) {
    ExpectError({command, Path("f"), "--keys", Path("keys")}, 4, {"f"}, limited);
    ExpectError({command, Path("f"), "--keys", Path("keys"), "--output", command == "add" ? "refused" : "absent",
                 "--lines-to", Path("others")},
                4, {"f"}, limited);
  }
  EXPECT_EQ(ReadFile(Path("f")), before);
  EXPECT_EQ(Listing(), (Strings{"f", "keys"}));
}

TEST_F(CliCountingTest, AReadOnlyDirectoryKeepsItsFile) {
  constexpr uid_t kNobody = 65534;
  Build(Keys(0, 1000), 1000, "spill");
  std::filesystem::create_directory(Path("d"));
  std::filesystem::rename(Path("f"), Path("d/f"));
  const std::string before = ReadFile(Path("d/f"));
  ASSERT_EQ(::chmod(Path("d/f").c_str(), 0444), 0);
  ASSERT_EQ(::chmod(Path("d").c_str(), 0555), 0);
  // The permissions mean nothing to the superuser: the commands run as somebody else then.
  CliInput input;
  if (::geteuid() == 0) {
    input.user = kNobody;
    ASSERT_EQ(::chmod(Path("keys").c_str(), 0444), 0);
    ASSERT_EQ(::chmod(Path("").c_str(), 0755), 0);
    if (Run({"--version"}, input).exit_code != 0) GTEST_SKIP() << "another user cannot run the program where it lies";
  }
  const CliResult add = Run({"add", Path("d/f"), "--keys", Path("keys")}, input);
  const CliResult remove = Run({"remove", Path("d/f"), "--keys", Path("keys")}, input);
  ASSERT_EQ(::chmod(Path("d").c_str(), 0755), 0);
  for (const CliResult& result : {add, remove}) {
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_NE(result.err.find("Permission denied"), std::string::npos) << result.err;
  }
  EXPECT_EQ(ReadFile(Path("d/f")), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(Path("d")), {}), 1);
}

TEST_F(CliCountingTest, AWriteProtectedFilterIsNotReplaced) {
  constexpr uid_t kNobody = 65534;
  Build(Keys(0, 1000), 1000, "spill");
  const std::string before = ReadFile(Path("f"));
  CliInput input;
  if (::geteuid() == 0) {
    input.user = kNobody;
    for (const char* name : {"", "keys", "f"}) {
      ASSERT_EQ(::chown(Path(name).c_str(), kNobody, static_cast<gid_t>(-1)), 0);
    }
    if (Run({"--version"}, input).exit_code != 0) GTEST_SKIP() << "another user cannot run the program where it lies";
  }
  ASSERT_EQ(::chmod(Path("f").c_str(), 0444), 0);
  for (const std::string command : {"add", "remove"}) {
    ExpectError({command, Path("f"), "--keys", Path("keys")}, 3, {"f", "is not to be changed", "Permission denied"},
                input);
  }
  EXPECT_EQ(ReadFile(Path("f")), before);
}

TEST_F(CliCountingTest, SavesThroughLinksAndKeepsTheMode) {
  Build({}, 1000, "saturate");
  ASSERT_EQ(::chmod(Path("f").c_str(), 0640), 0);
  std::filesystem::create_symlink("f", Path("link"));
  WriteFile(Path("lines"), "a\n");
  EXPECT_EQ(RunJson({"add", Path("link"), "--keys", Path("lines")})["inserted"], 1);
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  struct stat info {};
  ASSERT_EQ(::stat(Path("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  EXPECT_EQ(CountingFilter::Load(Path("f")).Count("a"), 1u);
}

TEST_F(CliCountingTest, NothingToChangeNothingWritten) {
  Build(Keys(0, 100), 1000, "saturate");
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(Path("f").c_str(), &before), 0);
  EXPECT_EQ(OnLines("add", {})["added"], 0);
  EXPECT_EQ(OnLines("remove", {"foreign"})["absent"], 1);
  ASSERT_EQ(::stat(Path("f").c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
}

TEST_F(CliCountingTest, MoreThanExpectedWarns) {
  Build(Keys(0, 100), 100, "saturate");
  WriteFile(Path("lines"), Joined(Keys(100, 201)));
  const CliResult add = Run({"add", Path("f"), "--keys", Path("lines")});
  EXPECT_EQ(add.exit_code, 0);
  EXPECT_NE(add.err.find("warning: 201 keys are in the filter, 100 were expected"), std::string::npos) << add.err;
  EXPECT_EQ(add.out.rfind("added 101, refused 0 of 101 keys, ", 0), 0u) << add.out;
  EXPECT_NE(add.out.find("; 201 keys in the filter\n"), std::string::npos) << add.out;
  const CliResult remove = Run({"remove", Path("f"), "--keys", Path("lines")});
  EXPECT_EQ(remove.err, "");
  EXPECT_EQ(remove.out.rfind("removed 101, absent 0 of 101 keys, ", 0), 0u) << remove.out;
  EXPECT_NE(remove.out.find("; 100 keys in the filter\n"), std::string::npos) << remove.out;
}

TEST_F(CliCountingTest, NoMemoryForSpilledCountersIsAResourceError) {
  if (kSanitized) GTEST_SKIP() << "shadow memory needs more address space than the limit";
  std::vector<uint64_t> keys(100000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  WriteFile(Path("keys"), Bytes(keys));
  // 15 of each key fill every counter without any excess; the next ones need a table entry for each of them.
  RunJson({"build", "--keys", "/dev/null", "--format", "u64le", "--expected", "200k", "--bits-per-key", "40",
           "--layout", "counting4", "--overflow", "spill", "--out", Path("f")});
  std::string many;
  for (int i = 0; i < 17; ++i) many += Bytes(keys);
  WriteFile(Path("many"), many);
  const std::string before = ReadFile(Path("f"));
  CliInput limited;
  limited.address_limit = uint64_t{40} << 20;
  ExpectError({"add", Path("f"), "--keys", Path("many")}, 4, {"out of memory"}, limited);
  EXPECT_EQ(ReadFile(Path("f")), before);
  // It was the limit.
  const CliResult unlimited = Run({"add", Path("f"), "--keys", Path("many")});
  EXPECT_EQ(unlimited.exit_code, 0) << unlimited.err;
  EXPECT_NE(ReadFile(Path("f")), before);
}

}  // namespace
}  // namespace bloomline::test
