// The command line: arguments, exit codes, output, and every command end to end.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bloomline/filter.h"
#include "bloomline/target.h"
#include "bloomline/version.h"
#include "tests/cli_runner.h"

namespace bloomline::test {
namespace {

std::string NumberedLines(int begin, int end) {
  std::string lines;
  for (int i = begin; i < end; ++i) lines += "key-" + std::to_string(i) + "\n";
  return lines;
}

// ---- Help, version, commands.

TEST_F(CliTest, HelpAndVersion) {
  const CliResult help = Run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* word : {"build", "query", "add", "remove", "count", "info", "merge", "fpr", "tune", "validate",
                           "targets", "topology", "Examples:", "Exit codes:"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  for (const char* command : {"build", "query", "add", "remove", "count", "info", "merge", "fpr", "tune", "validate",
                              "targets", "topology"}) {
    const CliResult result = Run({command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_EQ(result.err, "");
    for (const char* word : {"Examples:", "--json", "--target"}) {
      EXPECT_NE(result.out.find(word), std::string::npos) << command << " " << word;
    }
  }
  const CliResult version = Run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, std::string("bloomline ") + Version() + "\n");
}

TEST_F(CliTest, WrongCommands) {
  ExpectError({}, 2, {"a command is required"});
  ExpectError({"bild"}, 2, {"bild", "no such command", "build"});
  ExpectError({"--nonsense"}, 2, {"--help"});
  ExpectError({"info", "--bogus"}, 2, {"bloomline info: --bogus: no such option"});
  ExpectError({"info"}, 2, {"bloomline info: ", "FILTER", "required"});
  ExpectError({"info", "a", "b"}, 2, {"bloomline info: ", "b"});
  ExpectError({"build", "--fpr"}, 2, {"bloomline build: --fpr: needs a value"});
  ExpectError({"build", "--fpr", "0.1", "--fpr", "0.2"}, 2, {"bloomline build: --fpr: may be given once only"});
  ExpectError({"targets", "--nonsense"}, 2, {"bloomline targets: ", "--nonsense"});
}

TEST_F(CliTest, BuildArguments) {
  WriteFile(Path("keys"), "a\nb\n");
  const std::vector<std::string> base = {"build", "--keys", Path("keys"), "--out", Path("out")};
  const auto refused = [&](std::vector<std::string> more, const std::vector<std::string>& parts) {
    more.insert(more.begin(), base.begin(), base.end());
    ExpectError(more, 2, parts);
  };
  for (const char* fpr : {"0", "-0.0", "1", "1.5", "-1", "nan", "-nan", "inf", "-inf", "1e400", "1e-400", "0.01x", "x",
                          "0x1p-3", "0,01", "200%"}) {
    refused({"--fpr", fpr}, {std::string("bloomline build: --fpr ") + fpr + ": must be above 0 and below 1"});
  }
  refused({"--fpr", ""}, {"--fpr '': must be above 0 and below 1"});
  for (const char* bits : {"0", "0.99", "-8", "1025", "nan", "inf", "1e18", "8bits"}) {
    refused({"--bits-per-key", bits}, {std::string("--bits-per-key ") + bits + ": must be a number, 1 to 1024"});
  }
  for (const char* n : {"0", "-1", "1e18", "1000000000000000000", "18446744073709551616", "1.5", "nan", "inf", "10Q",
                        "9223372036854775808", "18446744073709551615", "1e400", "12 ", "M", "1099511627777"}) {
    refused({"--fpr", "0.01", "--expected", n}, {"--expected", n, "must be a whole number, 1 to 1,099,511,627,776"});
  }
  for (const char* k : {"0", "17", "255", "-1", "8.5", "eight", "99999999999999999999"}) {
    refused({"--fpr", "0.01", "--k", k}, {std::string("--k ") + k + ": must be a whole number, 1 to 16"});
  }
  for (const char* seed : {"-1", "18446744073709551616", "0x", "0xg", "1.0", "1e3"}) {
    refused({"--fpr", "0.01", "--seed", seed}, {std::string("--seed ") + seed, "18446744073709551615"});
  }
  refused({"--fpr", "0.01", "--layout", "word65"}, {"--layout word65", "split512"});
  refused({"--fpr", "0.01", "--layout", "sector512z2k5"}, {"--layout sector512z2k5"});
  refused({"--fpr", "0.01", "--layout", "sector512z2", "--k", "5"}, {"--k 5", "sector512z2", "multiple of 2"});
  refused({"--fpr", "0.01", "--layout", "word64k5", "--k", "6"}, {"--k 6", "word64k5"});
  refused({"--fpr", "0.01", "--layout", "split256", "--k", "7"}, {"--k 7", "split256", "8"});
  refused({"--fpr", "0.01", "--layout", "sector512z8", "--k", "9"}, {"--k 9", "sector512z8", "multiple of 8"});
  refused({"--fpr", "0.01", "--format", "csv"}, {"--format csv", "lines or u64le"});
  refused({"--fpr", "0.01", "--bits-per-key", "10"}, {"--fpr and --bits-per-key exclude"});
  refused({"--fpr", "1e-20"}, {"--fpr 1e-20", "2^-64"});
  refused({"--fpr", "0.01", "--target", "AVX9"}, {"--target AVX9", "SCALAR"});
  refused({}, {"one of --fpr and --bits-per-key is required"});
  ExpectError({"build", "--fpr", "0.01", "--out", Path("out")}, 2, {"--keys"});
  ExpectError({"build", "--fpr", "0.01", "--keys", Path("keys")}, 2, {"--out"});
  ExpectError({"build", "--fpr", "0.01", "--keys", Path("keys"), "--out", "-"}, 2, {"--out -"});
  ExpectError({"build", "--fpr", "0.01", "--keys", Path("keys"), "--out", Path("keys")}, 2, {"same file as --keys"});
  EXPECT_EQ(Listing(), std::vector<std::string>{"keys"});
  EXPECT_EQ(ReadFile(Path("keys")), "a\nb\n");
}

TEST_F(CliTest, CountsInManyForms) {
  WriteFile(Path("keys"), NumberedLines(0, 100));
  std::vector<std::string> files;
  for (const char* n : {"2500", "2.5e3", "2.5k", "0.0025M", "2500.0"}) {
    const Json json =
        RunJson({"build", "--keys", Path("keys"), "--fpr", "0.01", "--expected", n, "--out", Path("out")});
    EXPECT_EQ(json["design_keys"], 2500) << n;
    files.push_back(ReadFile(Path("out")));
  }
  for (const std::string& file : files) EXPECT_EQ(file, files[0]);
  const Json percent =
      RunJson({"build", "--keys", Path("keys"), "--fpr", "1%", "--expected", "2500", "--out", Path("out")});
  EXPECT_EQ(percent["design_fpr"], 0.01);
  EXPECT_EQ(ReadFile(Path("out")), files[0]);
}

// ---- build, info.

TEST_F(CliTest, BuildThenInfo) {
  WriteFile(Path("keys"), NumberedLines(0, 10000));
  const Json built =
      RunJson({"build", "--keys", Path("keys"), "--fpr", "0.01", "--seed", "0x2a", "--out", Path("out")});
  const Json info = RunJson({"info", Path("out")});
  for (const char* key : {"layout",       "k",         "zones",    "blocks",        "bits",        "memory_bytes",
                          "bits_per_key", "hash",      "key_kind", "seed",          "design_keys", "design_fpr",
                          "inserted",     "estimated", "fill",     "predicted_fpr", "fill_fpr",    "saturated",
                          "target",       "threads",   "file",     "file_bytes"}) {
    ASSERT_TRUE(info.contains(key)) << key;
    EXPECT_EQ(built.at(key), info.at(key)) << key;
  }
  EXPECT_EQ(info["format_version"], 1);
  EXPECT_EQ(info["key_kind"], "bytes");
  EXPECT_EQ(info["hash"], "xxh3-64");
  EXPECT_EQ(info["seed"], 42);
  EXPECT_EQ(info["design_keys"], 10000);
  EXPECT_EQ(info["design_fpr"], 0.01);
  EXPECT_EQ(info["inserted"], 10000);
  EXPECT_EQ(info["saturated"], false);
  EXPECT_NEAR(info["estimated"].get<double>(), 10000, 500);
  EXPECT_LE(info["predicted_fpr"].get<double>(), 0.01);
  EXPECT_NEAR(info["fill_fpr"].get<double>(), 0.01, 0.002);
  EXPECT_EQ(info["file_bytes"].get<uint64_t>(), std::filesystem::file_size(Path("out")));
  EXPECT_EQ(built["keys"], 10000);
  EXPECT_GT(built["seconds"].get<double>(), 0);
  EXPECT_GT(built["ns_per_key"].get<double>(), 0);
  EXPECT_FALSE(built["granted_pages"].get<std::string>().empty());

  const Filter filter = Filter::Load(Path("out"));
  EXPECT_EQ(info["layout"], LayoutName(filter.layout(), filter.k()));
  EXPECT_EQ(info["k"], filter.k());
  EXPECT_EQ(info["blocks"], filter.blocks());
  EXPECT_EQ(info["bits"], filter.bits());
  EXPECT_DOUBLE_EQ(info["bits_per_key"].get<double>(), static_cast<double>(filter.bits()) / 10000);
  EXPECT_DOUBLE_EQ(info["fill"].get<double>(), filter.FillFraction());
  EXPECT_DOUBLE_EQ(info["estimated"].get<double>(), filter.EstimatedCount());

  const CliResult text = Run({"info", Path("out")});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("10,000"), std::string::npos) << text.out;
  EXPECT_NE(Run({"build", "--keys", Path("keys"), "--fpr", "0.01", "--out", Path("out")}).out.find("10,000 lines"),
            std::string::npos);
}

TEST_F(CliTest, LayoutsByName) {
  WriteFile(Path("keys"), NumberedLines(0, 1000));
  struct Case {
    std::vector<std::string> arguments;
    const char* layout;
    int k;
  };
  const std::vector<Case> cases = {
      {{"--layout", "word64", "--k", "5"}, "word64", 5}, {{"--layout", "word64k5"}, "word64", 5},
      {{"--layout", "sector512z2k6"}, "sector512z2", 6}, {{"--layout", "sector512z4", "--k", "8"}, "sector512z4", 8},
      {{"--layout", "split512"}, "split512", 8},         {{"--layout", "split512", "--k", "8"}, "split512", 8},
      {{"--layout", "line512k7"}, "line512", 7},         {{"--layout", "split256"}, "split256", 8}};
  for (const Case& c : cases) {
    std::vector<std::string> arguments = {"build", "--keys", Path("keys"), "--bits-per-key",
                                          "12",    "--out",  Path("out")};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const Json json = RunJson(arguments);
    EXPECT_EQ(json["layout"], c.layout);
    EXPECT_EQ(json["k"], c.k);
    EXPECT_TRUE(json["design_fpr"].is_null());
    EXPECT_NEAR(json["bits_per_key"].get<double>(), 12, 0.52);
    EXPECT_EQ(RunJson({"query", Path("out"), "--keys", Path("keys")})["absent"], 0) << c.layout;
  }
  const Json best =
      RunJson({"build", "--keys", Path("keys"), "--fpr", "0.001", "--layout", "auto", "--out", Path("out")});
  EXPECT_NE(best["layout"], "auto");
  EXPECT_LE(best["predicted_fpr"].get<double>(), 0.001);
}

TEST_F(CliTest, MoreKeysThanExpectedWarnAndSaturate) {
  WriteFile(Path("keys"), NumberedLines(0, 20000));
  const CliResult result =
      Run({"build", "--keys", Path("keys"), "--bits-per-key", "8", "--expected", "10", "--out", Path("out"), "--json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("warning: 20,000 keys came, 10 were expected"), std::string::npos) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["saturated"], true);
  EXPECT_TRUE(json["estimated"].is_null());
  EXPECT_EQ(json["fill"], 1.0);
  EXPECT_EQ(json["fill_fpr"], 1.0);
  EXPECT_TRUE(json["bits_per_key"].is_null());
  EXPECT_TRUE(RunJson({"info", Path("out")})["bits_per_key"].is_null());
  EXPECT_NE(Run({"info", Path("out")}).out.find("bits per key: -"), std::string::npos);
  EXPECT_NE(Run({"info", Path("out")}).out.find("saturated"), std::string::npos);
}

TEST_F(CliTest, SeedsMakeOtherFilters) {
  WriteFile(Path("keys"), NumberedLines(0, 1000));
  std::vector<std::string> files;
  for (const char* seed : {"0", "1", "18446744073709551615", "0xffffffffffffffff"}) {
    RunJson({"build", "--keys", Path("keys"), "--fpr", "0.01", "--seed", seed, "--out", Path("out")});
    EXPECT_EQ(RunJson({"query", Path("out"), "--keys", Path("keys")})["maybe"], 1000) << seed;
    files.push_back(ReadFile(Path("out")).substr(4096));
  }
  EXPECT_NE(files[0], files[1]);
  EXPECT_NE(files[0], files[2]);
  EXPECT_EQ(files[2], files[3]);
}

TEST_F(CliTest, AllTargetsWriteTheSameFile) {
  WriteFile(Path("keys"), NumberedLines(0, 5000));
  WriteFile(Path("probes"), NumberedLines(4000, 30000));
  std::string file, bitmap;
  for (const std::string& target : SupportedTargets()) {
    const Json json =
        RunJson({"build", "--keys", Path("keys"), "--fpr", "0.02", "--out", Path("out"), "--target", target});
    EXPECT_EQ(json["target"], target);
    CliInput environment;
    environment.environment["BLOOMLINE_TARGET"] = target;
    const CliResult query = Run({"query", Path("out"), "--keys", Path("probes"), "--output", "bitmap"}, environment);
    EXPECT_EQ(query.exit_code, 0) << query.err;
    EXPECT_EQ(RunJson({"info", Path("out")}, environment)["target"], target);
    if (file.empty()) {
      file = ReadFile(Path("out"));
      bitmap = query.out;
    }
    EXPECT_EQ(ReadFile(Path("out")), file) << target;
    EXPECT_EQ(query.out, bitmap) << target;
  }
  EXPECT_EQ(bitmap.size(), size_t{26000 + 63} / 64 * 8);
}

// ---- Failing without damage.

TEST_F(CliTest, FilesThatCannotBeReadOrWritten) {
  WriteFile(Path("keys"), "a\n");
  ExpectError({"build", "--keys", Path("nowhere"), "--fpr", "0.01", "--out", Path("out")}, 3,
              {"nowhere", "No such file"});
  ExpectError({"build", "--keys", Path(""), "--fpr", "0.01", "--out", Path("out")}, 3, {"directory"});
  ExpectError({"build", "--keys", Path("keys"), "--fpr", "0.01", "--out", Path("no/out")}, 3, {"no/", "No such file"});
  ExpectError({"build", "--keys", Path("keys"), "--fpr", "0.01", "--out", Path("")}, 3, {"--out", "directory"});
  ExpectError({"info", Path("nowhere")}, 3, {"nowhere"});
  ExpectError({"info", Path("keys")}, 3, {"keys"});
  ExpectError({"query", Path("keys"), "--keys", Path("keys")}, 3, {"keys"});
  EXPECT_EQ(Listing(), std::vector<std::string>{"keys"});
}

TEST_F(CliTest, DamagedFilterIsRefused) {
  WriteFile(Path("keys"), NumberedLines(0, 1000));
  RunJson({"build", "--keys", Path("keys"), "--fpr", "0.01", "--out", Path("good")});
  const std::string good = ReadFile(Path("good"));
  std::string changed = good;
  changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
  for (const std::string& bytes : {changed, good.substr(0, good.size() - 1), good.substr(0, 100), std::string()}) {
    WriteFile(Path("bad"), bytes);
    ExpectError({"info", Path("bad")}, 3, {"bad"});
    ExpectError({"query", Path("bad"), "--keys", Path("keys")}, 3, {"bad"});
    ExpectError({"merge", Path("good"), Path("bad"), "--out", Path("good")}, 3, {"bad"});
  }
  EXPECT_EQ(ReadFile(Path("good")), good);
}

TEST_F(CliTest, FailedSaveLeavesTheOldFile) {
  WriteFile(Path("keys"), NumberedLines(0, 100000));
  WriteFile(Path("out"), "precious");
  CliInput limited;
  limited.file_limit = 20000;
  ExpectError({"build", "--keys", Path("keys"), "--fpr", "0.01", "--out", Path("out")}, 4, {"out"}, limited);
  EXPECT_EQ(ReadFile(Path("out")), "precious");
  EXPECT_EQ(Listing(), (std::vector<std::string>{"keys", "out"}));
}

TEST_F(CliTest, TooLargeIsAResourceError) {
  WriteFile(Path("keys"), "a\n");
  ExpectError({"build", "--keys", Path("keys"), "--expected", "1e11", "--bits-per-key", "16", "--layout", "split512",
               "--out", Path("out")},
              4, {"memory"});
  if (kSanitized) return;  // their shadow memory needs more address space than the limit
  CliInput limited;
  limited.address_limit = uint64_t{512} << 20;
  ExpectError({"build", "--keys", Path("keys"), "--expected", "1G", "--bits-per-key", "8", "--out", Path("out")}, 4,
              {"memory"}, limited);
  EXPECT_EQ(Listing(), std::vector<std::string>{"keys"});
}

TEST_F(CliTest, StandardOutputThatFails) {
  WriteFile(Path("keys"), NumberedLines(0, 1000));
  RunJson({"build", "--keys", Path("keys"), "--fpr", "0.01", "--out", Path("out")});
  const std::vector<std::vector<std::string>> commands = {
      {"--help"},
      {"targets"},
      {"info", Path("out"), "--json"},
      {"query", Path("out"), "--keys", Path("keys")},
      {"query", Path("out"), "--keys", Path("keys"), "--output", "maybe"}};
  for (const std::vector<std::string>& command : commands) {
    CliInput full;
    full.stdout_path = "/dev/full";
    ExpectError(command, 4, {"standard output", "No space left"}, full);
    CliInput broken;
    broken.break_stdout = true;
    const CliResult quiet = Run(command, broken);
    EXPECT_GT(quiet.exit_code, 0);
    EXPECT_EQ(quiet.err, "");
    CliInput closed;
    closed.close_stdout = true;
    ExpectError(command, 3, {"standard output"}, closed);
  }
}

// ---- merge.

TEST_F(CliTest, Merge) {
  WriteFile(Path("1"), NumberedLines(0, 3000));
  WriteFile(Path("2"), NumberedLines(2000, 5000));
  WriteFile(Path("12"), NumberedLines(0, 5000));
  for (const std::string name : {"1", "2", "12"}) {
    RunJson({"build", "--keys", Path(name), "--expected", "5000", "--fpr", "0.01", "--out", Path(name + ".blm")});
  }
  const Json merged = RunJson({"merge", Path("1.blm"), Path("2.blm"), "--out", Path("m.blm")});
  EXPECT_NEAR(merged["inserted"].get<double>(), 5000, 250);
  EXPECT_NEAR(merged["estimated"].get<double>(), 5000, 250);
  EXPECT_EQ(RunJson({"query", Path("m.blm"), "--keys", Path("12")})["absent"], 0);
  EXPECT_EQ(ReadFile(Path("m.blm")).substr(4096), ReadFile(Path("12.blm")).substr(4096));
  const std::string expected = ReadFile(Path("m.blm"));
  // Onto either of the inputs.
  std::filesystem::copy_file(Path("2.blm"), Path("b.blm"));
  RunJson({"merge", Path("1.blm"), Path("b.blm"), "--out", Path("b.blm")});
  EXPECT_EQ(ReadFile(Path("b.blm")), expected);
  const CliResult text = Run({"merge", Path("1.blm"), Path("2.blm"), "--out", Path("1.blm")});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("estimated"), std::string::npos);
  EXPECT_EQ(ReadFile(Path("1.blm")), expected);
}

TEST_F(CliTest, MergeRefusesWhatDiffers) {
  WriteFile(Path("keys"), NumberedLines(0, 100));
  WriteFile(Path("integers"), Bytes({1, 2, 3}));
  const auto build = [&](const std::string& out, std::vector<std::string> more) {
    more.insert(more.begin(), {"build", "--bits-per-key", "10", "--out", Path(out)});
    RunJson(more);
  };
  const std::vector<std::string> same = {"--keys", Path("keys"), "--expected", "1000", "--layout"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), same.begin(), same.end());
    return more;
  };
  build("a", with({"word64k5"}));
  const std::string before = ReadFile(Path("a"));
  build("layout", with({"line512k5"}));
  build("k", with({"word64k6"}));
  build("seed", with({"word64k5", "--seed", "77"}));
  build("blocks", {"--keys", Path("keys"), "--expected", "1000000", "--layout", "word64k5"});
  build("kind", {"--keys", Path("integers"), "--format", "u64le", "--expected", "1000", "--layout", "word64k5"});
  ExpectError({"merge", Path("a"), Path("layout"), "--out", Path("a")}, 3, {"word64", "line512"});
  ExpectError({"merge", Path("a"), Path("k"), "--out", Path("a")}, 3, {"5", "6"});
  ExpectError({"merge", Path("a"), Path("seed"), "--out", Path("a")}, 3, {"seed", "0", "77"});
  ExpectError({"merge", Path("a"), Path("blocks"), "--out", Path("a")}, 3, {"20", "19532"});
  ExpectError({"merge", Path("a"), Path("kind"), "--out", Path("a")}, 3, {"bytes", "u64"});
  ExpectError({"merge", Path("a"), Path("nowhere"), "--out", Path("a")}, 3, {"nowhere"});
  ExpectError({"merge", Path("a"), "--out", Path("a")}, 2, {"B"});
  EXPECT_EQ(ReadFile(Path("a")), before);
}

// ---- targets.

TEST_F(CliTest, Targets) {
  const Json json = RunJson({"targets"});
  EXPECT_EQ(json["compiled"].get<std::vector<std::string>>(), CompiledTargets());
  EXPECT_EQ(json["supported"].get<std::vector<std::string>>(), SupportedTargets());
  EXPECT_EQ(json["chosen"], SupportedTargets().front());
  EXPECT_EQ(RunJson({"targets", "--target", "scalar"})["chosen"], "SCALAR");
  EXPECT_EQ(RunJson({"targets", "--target", "EMU128"})["chosen"], "SCALAR");
  CliInput environment;
  environment.environment["BLOOMLINE_TARGET"] = "scalar";
  EXPECT_EQ(RunJson({"targets"}, environment)["chosen"], "SCALAR");
  EXPECT_EQ(RunJson({"targets", "--target", SupportedTargets().front()}, environment)["chosen"],
            SupportedTargets().front());
  environment.environment["BLOOMLINE_TARGET"] = "Z80";
  ExpectError({"info", Path("none")}, 2, {"BLOOMLINE_TARGET", "Z80"}, environment);
  const CliResult listed = Run({"targets", "--json"}, environment);
  EXPECT_EQ(listed.exit_code, 2);
  EXPECT_NE(listed.err.find("BLOOMLINE_TARGET = Z80"), std::string::npos) << listed.err;
  EXPECT_EQ(Json::parse(listed.out)["supported"].get<std::vector<std::string>>(), SupportedTargets());
  EXPECT_TRUE(Json::parse(listed.out)["chosen"].is_null());
  EXPECT_EQ(RunJson({"targets", "--target", "best"}, environment)["chosen"], SupportedTargets().front());
  environment.environment["BLOOMLINE_TARGET"] = "scalar";
  EXPECT_EQ(RunJson({"targets", "--target", "Best"}, environment)["chosen"], SupportedTargets().front());
  const CliResult text = Run({"targets"});
  EXPECT_EQ(text.exit_code, 0);
  for (const std::string& target : CompiledTargets()) EXPECT_NE(text.out.find(target), std::string::npos) << target;
}

}  // namespace
}  // namespace bloomline::test
