// The command line's keys: how lines and integers are read, streamed and printed again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bloomline/filter.h"
#include "tests/cli_runner.h"
#include "tests/test_util.h"

namespace bloomline::test {
namespace {

// What `build --fpr 0.01 --expected n` must write for these keys: the library, one key at a time.
template <class Key>
std::string Expected(const std::vector<Key>& keys, uint64_t n, KeyKind kind, uint64_t seed = 0) {
  Filter filter(FilterConfig::ForFpr(n, 0.01).WithKeyKind(kind).WithSeed(seed));
  for (const Key& key : keys) filter.Insert(key);
  std::vector<std::byte> bytes(filter.SerializedBytes());
  filter.SerializeTo(bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Lines of every awkward kind, and the bytes of a file of them.
std::vector<std::string> AwkwardLines() {
  using namespace std::string_literals;
  return {"plain",
          "",
          "carriage return\r",
          "\0"s,
          "a\0b"s,
          "\xff\xfe invalid \xc3",
          " blanks ",
          "",
          "Stra\xc3\x9f"
          "e",
          std::string(1 << 20, 'x'),
          std::string(3 << 20, 'y'),
          "last, without a line feed"};
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST_F(CliTest, BytesOfALineAreTheKey) {
  const std::vector<std::string> lines = AwkwardLines();
  std::string text = Joined(lines);
  text.pop_back();
  WriteFile(Path("keys"), text);
  const std::string expected = Expected(lines, lines.size(), KeyKind::kBytes);
  const Json built = RunJson({"build", "--keys", Path("keys"), "--fpr", "0.01", "--out", Path("out")});
  EXPECT_EQ(built["keys"], lines.size());
  EXPECT_EQ(built["design_keys"], lines.size());
  EXPECT_EQ(ReadFile(Path("out")), expected);
  // The same through stdin, as a file and as a pipe in uneven pieces.
  CliInput redirected;
  redirected.stdin_path = Path("keys");
  RunJson({"build", "--keys", "-", "--fpr", "0.01", "--out", Path("out2")}, redirected);
  EXPECT_EQ(ReadFile(Path("out2")), expected);
  CliInput piped;
  piped.pipe = [&](int fd) {
    for (size_t at = 0, piece = 1; at < text.size(); at += piece, piece = piece * 3 % 100003 + 1) {
      WriteFully(fd, std::string_view(text).substr(at, piece));
    }
  };
  RunJson({"build", "--keys", "-", "--expected", "12", "--fpr", "0.01", "--out", Path("out3")}, piped);
  EXPECT_EQ(ReadFile(Path("out3")), expected);
  // And back: every line as it was, in its order.
  const CliResult maybe = Run({"query", Path("out"), "--keys", "-", "--output", "maybe"}, piped);
  EXPECT_EQ(maybe.exit_code, 0) << maybe.err;
  EXPECT_TRUE(maybe.out == text + "\n");
  EXPECT_EQ(Run({"query", Path("out"), "--keys", Path("keys"), "--output", "absent"}).out, "");
}

TEST_F(CliTest, LinesLongerThanAnyBuffer) {
  // Around the reader's buffer of 4 MiB and well beyond, with short ones between.
  const size_t buffer = size_t{4} << 20;
  std::vector<std::string> lines;
  Random random(5);
  for (const size_t size : {buffer - 1, buffer, buffer + 1, buffer + 1234567, size_t{3}, 2 * buffer, size_t{0}}) {
    std::string line(size, ' ');
    for (char& c : line) c = static_cast<char>(random.Next() | 0x80);
    lines.push_back(std::move(line));
  }
  for (const bool final_feed : {true, false}) {
    std::string text = Joined(lines);
    if (!final_feed) text += "the end" + lines[3];
    std::vector<std::string> keys = lines;
    if (!final_feed) keys.push_back("the end" + lines[3]);
    for (const std::string seed : {"0", "99"}) {
      const std::string expected = Expected(keys, 100, KeyKind::kBytes, std::stoull(seed));
      WriteFile(Path("keys"), text);
      CliInput piped;
      piped.pipe = Piped(text);
      RunJson(
          {"build", "--keys", Path("keys"), "--expected", "100", "--fpr", "0.01", "--seed", seed, "--out", Path("a")});
      EXPECT_TRUE(ReadFile(Path("a")) == expected);
      RunJson({"build", "--keys", "-", "--expected", "100", "--fpr", "0.01", "--seed", seed, "--out", Path("b")},
              piped);
      EXPECT_TRUE(ReadFile(Path("b")) == expected);
      const std::string printed = final_feed ? text : text + "\n";
      EXPECT_TRUE(Run({"query", Path("a"), "--keys", Path("keys"), "--output", "maybe"}).out == printed);
      EXPECT_TRUE(Run({"query", Path("a"), "--keys", "-", "--output", "maybe"}, piped).out == printed);
    }
  }
  // Long lines that are absent.
  WriteFile(Path("one"), "a\n");
  RunJson({"build", "--keys", Path("one"), "--expected", "100", "--fpr", "1e-9", "--out", Path("a")});
  const std::string text = Joined(lines);
  CliInput piped;
  piped.pipe = Piped(text);
  EXPECT_TRUE(Run({"query", Path("a"), "--keys", "-", "--output", "absent"}, piped).out == text);
  WriteFile(Path("keys"), text);
  EXPECT_TRUE(Run({"query", Path("a"), "--keys", Path("keys"), "--output", "absent"}).out == text);
}

TEST_F(CliTest, NoKeysMakeAValidEmptyFilter) {
  WriteFile(Path("keys"), "");
  WriteFile(Path("probes"), "a\nb\n\n");
  for (const std::string format : {"lines", "u64le"}) {
    const Json built =
        RunJson({"build", "--keys", Path("keys"), "--format", format, "--fpr", "0.01", "--out", Path("out")});
    EXPECT_EQ(built["keys"], 0);
    EXPECT_EQ(built["inserted"], 0);
    EXPECT_EQ(built["fill"], 0.0);
    EXPECT_EQ(built["predicted_fpr"], 0.0);
    EXPECT_TRUE(built["bits_per_key"].is_null());
    EXPECT_TRUE(built["ns_per_key"].is_null());
    EXPECT_EQ(RunJson({"info", Path("out")})["estimated"], 0.0);
    EXPECT_EQ(Run({"info", Path("out")}).exit_code, 0);
    const Json none = RunJson({"query", Path("out"), "--keys", Path("keys")});
    EXPECT_EQ(none["keys"], 0);
    EXPECT_TRUE(none["ns_per_key"].is_null());
  }
  RunJson({"build", "--keys", Path("keys"), "--fpr", "0.01", "--out", Path("out")});
  const Json query = RunJson({"query", Path("out"), "--keys", Path("probes")});
  EXPECT_EQ(query["keys"], 3);
  EXPECT_EQ(query["absent"], 3);
  EXPECT_EQ(Run({"query", Path("out"), "--keys", Path("keys")}).out, "maybe 0, absent 0 of 0 keys\n");
  EXPECT_EQ(Run({"query", Path("out"), "--keys", Path("keys"), "--output", "bitmap"}).out, "");
}

TEST_F(CliTest, Integers) {
  const std::vector<uint64_t> keys = Random(3).Take(200000);
  WriteFile(Path("keys"), Bytes(keys));
  const std::string expected = Expected(keys, keys.size(), KeyKind::kU64);
  const Json built =
      RunJson({"build", "--keys", Path("keys"), "--format", "u64le", "--fpr", "0.01", "--out", Path("a")});
  EXPECT_EQ(built["key_kind"], "u64");
  EXPECT_EQ(built["hash"], "mix64");
  EXPECT_TRUE(ReadFile(Path("a")) == expected);
  // In pieces that split keys.
  CliInput piped;
  const std::string bytes = Bytes(keys);
  piped.pipe = [&](int fd) {
    for (size_t at = 0; at < bytes.size(); at += 4099) WriteFully(fd, std::string_view(bytes).substr(at, 4099));
  };
  RunJson({"build", "--keys", "-", "--format", "u64le", "--expected", "200000", "--fpr", "0.01", "--out", Path("b")},
          piped);
  EXPECT_TRUE(ReadFile(Path("b")) == expected);
  EXPECT_TRUE(Run({"query", Path("a"), "--keys", "-", "--output", "maybe"}, piped).out == bytes);
  const Json query = RunJson({"query", Path("a"), "--keys", Path("keys"), "--format", "u64le"});
  EXPECT_EQ(query["maybe"], 200000);
}

TEST_F(CliTest, CutIntegersAreRefused) {
  const std::string cut = Bytes({1, 2, 3}) + "abcde";
  WriteFile(Path("keys"), cut);
  WriteFile(Path("out"), "precious");
  ExpectError({"build", "--keys", Path("keys"), "--format", "u64le", "--fpr", "0.01", "--out", Path("out")}, 3,
              {"keys", "5 bytes remain after key 3"});
  CliInput piped;
  piped.pipe = Piped(cut);
  ExpectError({"build", "--keys", "-", "--format", "u64le", "--expected", "3", "--fpr", "0.01", "--out", Path("out")},
              3, {"--keys -", "5 bytes remain after key 3"}, piped);
  EXPECT_EQ(ReadFile(Path("out")), "precious");
  WriteFile(Path("whole"), Bytes({1, 2, 3}));
  RunJson({"build", "--keys", Path("whole"), "--format", "u64le", "--fpr", "0.01", "--out", Path("f")});
  ExpectError({"query", Path("f"), "--keys", Path("keys"), "--output", "maybe"}, 3, {"5 bytes remain"});
  WriteFile(Path("answers"), "old");
  ExpectError({"query", Path("f"), "--keys", "-", "--output", "maybe", "--lines-to", Path("answers")}, 3,
              {"5 bytes remain"}, piped);
  EXPECT_EQ(ReadFile(Path("answers")), "old");
  EXPECT_EQ(Listing(), (std::vector<std::string>{"answers", "f", "keys", "out", "whole"}));
}

TEST_F(CliTest, APipeNeedsExpected) {
  CliInput piped;
  piped.pipe = Piped("a\nb\n");
  ExpectError({"build", "--keys", "-", "--fpr", "0.01", "--out", Path("out")}, 2, {"--expected"}, piped);
  EXPECT_TRUE(Listing().empty());
}

TEST_F(CliTest, TheFileSaysHowToReadKeys) {
  WriteFile(Path("lines"), "a\nb\n");
  WriteFile(Path("integers"), Bytes({1, 2}));
  RunJson({"build", "--keys", Path("lines"), "--fpr", "0.01", "--out", Path("l")});
  RunJson({"build", "--keys", Path("integers"), "--format", "u64le", "--fpr", "0.01", "--out", Path("i")});
  EXPECT_EQ(RunJson({"query", Path("l"), "--keys", Path("lines")})["maybe"], 2);
  EXPECT_EQ(RunJson({"query", Path("l"), "--keys", Path("lines"), "--format", "lines"})["maybe"], 2);
  EXPECT_EQ(RunJson({"query", Path("i"), "--keys", Path("integers")})["maybe"], 2);
  ExpectError({"query", Path("l"), "--keys", Path("lines"), "--format", "u64le"}, 3,
              {"--format u64le", "bytes", "lines"});
  ExpectError({"query", Path("i"), "--keys", Path("lines"), "--format", "lines"}, 3, {"--format lines", "u64"});
  ExpectError({"query", Path("l"), "--keys", Path("lines"), "--format", "csv"}, 2, {"--format csv"});

  // Filters of the library's users: the kind may be open.
  Filter hashed(FilterConfig::ForFpr(10, 1e-6).WithKeyKind(KeyKind::kHashed));
  hashed.InsertHash(0x123456789abcdef0);
  hashed.Save(Path("h"));
  WriteFile(Path("hashes"), Bytes({0x123456789abcdef0, 0xfedcba9876543210}));
  ExpectError({"query", Path("h"), "--keys", Path("hashes")}, 2, {"--format is required", "hashed"});
  EXPECT_EQ(Run({"query", Path("h"), "--keys", Path("hashes"), "--format", "u64le", "--output", "maybe"}).out,
            Bytes({0x123456789abcdef0}));
  Filter open(FilterConfig::ForFpr(10, 1e-6));
  open.Insert("a");
  open.Insert(uint64_t{7});
  open.Save(Path("o"));
  WriteFile(Path("sevens"), Bytes({7, 8}));
  ExpectError({"query", Path("o"), "--keys", Path("lines")}, 2, {"--format is required", "unspecified"});
  EXPECT_EQ(Run({"query", Path("o"), "--keys", Path("lines"), "--format", "lines", "--output", "maybe"}).out, "a\n");
  EXPECT_EQ(Run({"query", Path("o"), "--keys", Path("sevens"), "--format", "u64le", "--output", "maybe"}).out,
            Bytes({7}));
}

TEST_F(CliTest, QueryOutputsAgree) {
  std::string keys, probes;
  std::vector<std::string> lines;
  for (int i = 0; i < 3000; ++i) keys += std::to_string(i) + "\n";
  for (int i = 2000; i < 9001; ++i) lines.push_back(std::to_string(i));
  probes = Joined(lines);
  WriteFile(Path("keys"), keys);
  WriteFile(Path("probes"), probes);
  RunJson({"build", "--keys", Path("keys"), "--fpr", "0.05", "--out", Path("out")});
  const Filter filter = Filter::Load(Path("out"));
  std::string maybe, absent;
  for (const std::string& line : lines) (filter.MayContain(line) ? maybe : absent) += line + "\n";
  const auto query = [&](const std::string& output) {
    const CliResult result = Run({"query", Path("out"), "--keys", Path("probes"), "--output", output});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    return result.out;
  };
  EXPECT_EQ(query("maybe"), maybe);
  EXPECT_EQ(query("absent"), absent);
  // The bitmap from the file and from a pipe that comes in odd pieces, so that batches end anywhere in a word.
  const std::vector<uint64_t> bitmap = Words(query("bitmap"));
  ASSERT_EQ(bitmap.size(), (lines.size() + 63) / 64);
  std::string from_bitmap;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (BitOf(bitmap, i)) from_bitmap += lines[i] + "\n";
  }
  EXPECT_EQ(from_bitmap, maybe);
  EXPECT_EQ(bitmap.back() >> (lines.size() % 64), 0u);
  CliInput piped;
  piped.pipe = [&](int fd) {
    for (size_t at = 0, piece = 1; at < probes.size(); at += piece, piece = piece * 7 % 1009 + 1) {
      WriteFully(fd, std::string_view(probes).substr(at, piece));
    }
  };
  EXPECT_EQ(Words(Run({"query", Path("out"), "--keys", "-", "--output", "bitmap"}, piped).out), bitmap);

  const auto hits = static_cast<uint64_t>(std::count(maybe.begin(), maybe.end(), '\n'));
  const Json count = RunJson({"query", Path("out"), "--keys", Path("probes"), "--output", "count"});
  EXPECT_EQ(count["keys"], lines.size());
  EXPECT_EQ(count["maybe"], hits);
  EXPECT_EQ(count["absent"], lines.size() - hits);
  EXPECT_GT(count["ns_per_key"].get<double>(), 0);
  const CliResult text = Run({"query", Path("out"), "--keys", Path("probes")});
  EXPECT_EQ(text.out.rfind("maybe ", 0), 0u) << text.out;
  EXPECT_NE(text.out.find("of 7,001 keys"), std::string::npos) << text.out;

  // With --json, lines go to a file or nowhere.
  const Json with_lines =
      RunJson({"query", Path("out"), "--keys", Path("probes"), "--output", "maybe", "--lines-to", Path("m")});
  EXPECT_EQ(with_lines["maybe"], hits);
  EXPECT_EQ(ReadFile(Path("m")), maybe);
  EXPECT_EQ(RunJson({"query", Path("out"), "--keys", Path("probes"), "--output", "absent"})["maybe"], hits);
  ExpectError({"query", Path("out"), "--keys", Path("probes"), "--lines-to", Path("m")}, 2, {"--lines-to", "--output"});
  ExpectError({"query", Path("out"), "--keys", Path("probes"), "--output", "all"}, 2, {"--output all", "bitmap"});
  ExpectError({"query", Path("out"), "--keys", Path("probes"), "--output", "maybe", "--lines-to", Path("probes")}, 2,
              {"same file as --keys"});
  ExpectError({"query", Path("out"), "--keys", Path("probes"), "--output", "maybe", "--lines-to", Path("out")}, 2,
              {"same file as the filter"});
  ExpectError({"query", Path("out"), "--keys", Path("probes"), "--output", "maybe", "--lines-to", "/dev/full"}, 4,
              {"/dev/full", "No space left"});
  EXPECT_EQ(ReadFile(Path("probes")), probes);
}

}  // namespace
}  // namespace bloomline::test
