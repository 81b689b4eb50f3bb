// The command line's memory: the filter and 64 MiB at the most, whatever comes in. A program of its own, and one that
// stays small: the kernel counts the parent's pages at the fork as the child's peak.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/cli_runner.h"

namespace bloomline::test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

void WriteManyLines(int fd, size_t bytes) {
  std::string block;
  uint64_t i = 0;
  for (size_t written = 0; written < bytes; written += block.size()) {
    block.clear();
    while (block.size() < 1 << 16) block += "line-number-" + std::to_string(i++) + "\n";
    WriteFully(fd, block);
  }
}

TEST_F(CliTest, PeakMemoryOfAPipeIsBounded) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have memory of their own";
  CliInput input;
  input.pipe = [](int fd) { WriteManyLines(fd, 220 << 20); };
  const CliResult built =
      Run({"build", "--keys", "-", "--expected", "12M", "--bits-per-key", "10", "--out", Path("out"), "--json"}, input);
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const auto filter_bytes = Json::parse(built.out)["memory_bytes"].get<int64_t>();
  EXPECT_LE(built.peak_rss_bytes, filter_bytes + 64 * kMiB);
  input.stdout_path = "/dev/null";
  const CliResult query = Run({"query", Path("out"), "--keys", "-", "--output", "maybe"}, input);
  ASSERT_EQ(query.exit_code, 0) << query.err;
  EXPECT_LE(query.peak_rss_bytes, filter_bytes + 64 * kMiB);
}

TEST_F(CliTest, PeakMemoryOfAFileAndALongLineIsBounded) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have memory of their own";
  const int fd = ::open(Path("keys").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  WriteManyLines(fd, 110 << 20);
  const std::string block(1 << 20, 'z');
  for (int i = 0; i < 110; ++i) WriteFully(fd, block);  // one line
  ::close(fd);
  const CliResult built = Run({"build", "--keys", Path("keys"), "--fpr", "0.01", "--out", Path("out"), "--json"});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const auto filter_bytes = Json::parse(built.out)["memory_bytes"].get<int64_t>();
  EXPECT_LE(built.peak_rss_bytes, filter_bytes + 64 * kMiB);
  CliInput input;
  input.stdout_path = "/dev/null";
  const CliResult query = Run({"query", Path("out"), "--keys", Path("keys"), "--output", "maybe"}, input);
  ASSERT_EQ(query.exit_code, 0) << query.err;
  EXPECT_LE(query.peak_rss_bytes, filter_bytes + 64 * kMiB);
}

}  // namespace
}  // namespace bloomline::test
