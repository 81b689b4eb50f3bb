// bloomline validate, end to end: what is right passes, what is broken is found, and the statistics are those that a
// direct calculation gives.
#include <gtest/gtest.h>
#include <filesystem>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "bloomline/target.h"
#include "tests/cli_runner.h"

namespace bloomline::test {
namespace {

class ValidateTest : public CliTest {
 protected:
  // A word list, so that the outcome does not depend on what is installed.
  std::string Words() const {
    std::string lines;
    for (int i = 0; i < 40'000; ++i) lines += "word" + std::to_string(i * 7919 % 99991) + "\n";
    WriteFile(Path("words"), lines);
    return Path("words");
  }

  static size_t Count(const Json& cells, const std::string& verdict) {
    return static_cast<size_t>(
        std::count_if(cells.begin(), cells.end(), [&](const Json& cell) { return cell["verdict"] == verdict; }));
  }

  // Runs a command with --json that finds failures: exit code 1, one line on stderr, JSON all the same.
  Json RunFailing(std::vector<std::string> arguments, const std::string& message) const {
    arguments.emplace_back("--json");
    const CliResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    Json json = Json::parse(result.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << result.out;
    return json;
  }
};

// Every layout, pattern and target, with few keys and probes.
TEST_F(ValidateTest, EverythingSmallPasses) {
  const Json json = RunJson({"validate", "--quick", "--words", Words(), "--keys", "20k", "--bits-per-key", "10",
                             "--probes", kSanitized ? "20k" : "200k"});
  EXPECT_EQ(json["summary"]["verdict"], "pass");
  EXPECT_EQ(json["summary"]["failed"], 0);
  EXPECT_EQ(json["summary"]["passed"], json["cells"].size());
  EXPECT_EQ(json["summary"]["family_error"], 0.001);
  std::set<std::string> layouts, patterns, targets, distinct;
  for (const Json& cell : json["cells"]) {
    layouts.insert(cell["layout"].get<std::string>());
    patterns.insert(cell["pattern"].get<std::string>());
    targets.insert(cell["target"].get<std::string>());
    distinct.insert(cell["layout"].dump() + cell["k"].dump() + cell["pattern"].dump() + cell["probe_pattern"].dump());
    EXPECT_EQ(cell["false_negatives"], 0);
    EXPECT_LE(cell["low"], cell["measured_fpr"]);
    EXPECT_GE(cell["high"], cell["measured_fpr"]);
  }
  EXPECT_EQ(layouts, (std::set<std::string>{"word64", "sector512z2", "sector512z4", "split512", "sector512z8",
                                            "line512", "split256", "counting4", "counting8"}));
  for (const char* name : {"random", "sequential", "stride1", "stride60", "big-endian", "dense-low", "dense-high",
                           "pointers16", "pointers64", "ipv4", "doubles", "decimal", "hex", "uuid", "url", "words"}) {
    EXPECT_TRUE(patterns.contains(name)) << name;
  }
  const std::vector<std::string> supported = SupportedTargets();
  EXPECT_EQ(targets, std::set<std::string>(supported.begin(), supported.end()));
  // Cells that differ in their target only are one: three comparisons each share the error.
  EXPECT_EQ(json["summary"]["comparisons"], 3 * distinct.size());
  EXPECT_DOUBLE_EQ(json["summary"]["comparison_error"].get<double>(), 0.001 / static_cast<double>(3 * distinct.size()));
}

// The grid of --quick itself, of two layouts: damaged it fails, undamaged it passes.
TEST_F(ValidateTest, BrokenHashesAreFound) {
  const std::vector<std::string> quick = {"validate", "--quick", "--layouts", "split512,word64",
                                          "--words",  Words(),   "--targets", "best"};
  const Json good = RunJson(quick);
  EXPECT_EQ(good["summary"]["verdict"], "pass");
  const size_t cells = good["cells"].size();
  for (const char* kind : {"hash", "reuse"}) {
    std::vector<std::string> arguments = quick;
    arguments.insert(arguments.end(), {"--break", kind});
    const Json bad = RunFailing(arguments, "of " + std::to_string(cells) + " cells failed");
    EXPECT_EQ(bad["summary"]["verdict"], "fail");
    EXPECT_EQ(Count(bad["cells"], "fail"), bad["summary"]["failed"]);
    // In each layout, and not by a hair.
    for (const char* layout : {"split512", "word64"}) {
      double worst = 0;
      for (const Json& cell : bad["cells"]) {
        if (cell["layout"] != layout || !cell["measured_sigmas"].is_number()) continue;
        worst = std::max(worst, std::abs(cell["measured_sigmas"].get<double>()));
      }
      EXPECT_GT(worst, 8) << kind << " " << layout;
    }
  }
}

TEST_F(ValidateTest, FalseNegativesEndTheRun) {
  const std::vector<std::string> arguments = {
      "validate", "--layouts", "word64k5,line512", "--k", "5,7",       "--keys", "20k",    "--patterns", "decimal",
      "--probes", "10k",       "--bits-per-key",   "10",  "--threads", "1",      "--seed", "5"};
  EXPECT_EQ(RunJson(arguments)["summary"]["verdict"], "pass");
  std::vector<std::string> broken = arguments;
  broken.insert(broken.end(), {"--break", "lose"});
  const Json json = RunFailing(broken, "FALSE NEGATIVES: ");
  EXPECT_EQ(json["summary"]["failed"], 1);
  EXPECT_EQ(json["summary"]["not_run"], json["cells"].size() - 1);
  EXPECT_GT(json["cells"][0]["false_negatives"], 0);
  EXPECT_TRUE(json["cells"][1]["fill_fpr"].is_null());
  const CliResult text = Run(broken);
  EXPECT_EQ(text.exit_code, 1);
  for (const char* part : {"word64k5", "pattern decimal", "target ", "filter seed "}) {
    EXPECT_NE(text.err.find(part), std::string::npos) << part << "\n" << text.err;
  }
  EXPECT_NE(text.out.find("members not found"), std::string::npos) << text.out;
}

TEST_F(ValidateTest, TargetsMustAgree) {
  if (SupportedTargets().size() < 2) GTEST_SKIP() << "one target only";
  const std::vector<std::string> arguments = {"validate", "--layouts",      "split512", "--keys",
                                              "100k",     "--patterns",     "random",   "--probes",
                                              "1M",       "--bits-per-key", "10"};
  const Json good = RunJson(arguments);
  EXPECT_EQ(good["cells"].size(), SupportedTargets().size());
  for (const Json& cell : good["cells"]) {
    EXPECT_EQ(cell["checksum"], good["cells"][0]["checksum"]);
    EXPECT_EQ(cell["false_positives"], good["cells"][0]["false_positives"]);
  }
  std::vector<std::string> broken = arguments;
  broken.insert(broken.end(), {"--break", "target"});
  const Json bad = RunFailing(broken, "cells failed");
  EXPECT_EQ(bad["summary"]["failed"], SupportedTargets().size() - 1);
  EXPECT_NE(bad["cells"][1]["problems"].dump().find("bits differ"), std::string::npos);
}

// The same numbers whatever the threads; others for another seed.
TEST_F(ValidateTest, Deterministic) {
  const auto cells = [&](const char* threads, const char* seed) {
    return RunJson({"validate", "--layouts", "split512,split256", "--keys", "1,5k", "--probes", "20k", "--threads",
                    threads, "--seed", seed, "--words", Words(), "--patterns", "random,words,url,pointers16",
                    "--bits-per-key", "9.5"})["cells"];
  };
  const Json one = cells("1", "7");
  EXPECT_EQ(one, cells("3", "7"));
  const Json other = cells("3", "0x8");
  ASSERT_EQ(one.size(), other.size());
  EXPECT_NE(one[0]["checksum"], other[0]["checksum"]);
}

// P(X ≤ hits) for X ~ Binomial(trials, p), term by term.
double AtMost(int64_t hits, int64_t trials, double p) {
  double sum = 0;
  for (int64_t i = 0; i <= hits; ++i) {
    const auto x = static_cast<double>(i);
    const auto n = static_cast<double>(trials);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(p) +
                    (n - x) * std::log1p(-p));
  }
  return sum;
}

TEST_F(ValidateTest, StatisticsByDirectSums) {
  const Json json = RunJson({"validate", "--layouts", "all", "--keys", "100k", "--probes", "50k", "--patterns",
                             "random,sequential", "--bits-per-key", "8,16,24", "--targets", "best"});
  ASSERT_GE(json["cells"].size(), 42u);
  const double share = json["summary"]["comparison_error"];
  for (const Json& cell : json["cells"]) {
    const int64_t hits = cell["false_positives"];
    const int64_t trials = cell["probes"];
    EXPECT_EQ(trials, 50'000);
    const double rate = cell["fill_fpr"];
    const double low_tail = AtMost(hits, trials, rate);
    const double high_tail = hits == 0 ? 1 : 1 - AtMost(hits - 1, trials, rate);
    EXPECT_NEAR(cell["measured_p"].get<double>(), std::min(1.0, 2 * std::min(low_tail, high_tail)), 1e-6) << cell;
    // Clopper and Pearson: at either end the tail is half of the error.
    EXPECT_NEAR(AtMost(hits, trials, cell["high"].get<double>()) / (share / 2), 1, 1e-3) << cell;
    if (hits == 0) {
      EXPECT_EQ(cell["low"], 0.0);
    } else if (hits < 200) {
      // Upper tails by their own terms: 1 − P would lose them.
      const double low = cell["low"];
      double tail = 0;
      for (int64_t i = hits; i < hits + 400; ++i) {
        const auto x = static_cast<double>(i);
        const auto n = static_cast<double>(trials);
        tail += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(low) +
                         (n - x) * std::log1p(-low));
      }
      EXPECT_NEAR(tail / (share / 2), 1, 1e-3) << cell;
    }
  }
}

// Members among the probes of a mixed cell are no false positives: of the probes 100 000 … 199 999 half are even, and
// the members are the even numbers below 200 000.
TEST_F(ValidateTest, MembersAreNoProbes) {
  const Json json = RunJson({"validate", "--layouts", "split512", "--keys", "100k", "--probes", "100k", "--patterns",
                             "stride1:sequential", "--bits-per-key", "10", "--targets", "best"});
  ASSERT_EQ(json["cells"].size(), 1u);
  EXPECT_EQ(json["cells"][0]["probes"], 50'000);
  EXPECT_EQ(json["cells"][0]["pattern"], "stride1");
  EXPECT_EQ(json["cells"][0]["probe_pattern"], "sequential");
}

TEST_F(ValidateTest, Files) {
  const CliResult result =
      Run({"validate", "--layouts", "split512,word64", "--k", "4,8", "--keys", "50k", "--probes", "100k", "--patterns",
           "random", "--csv", Path("out.csv"), "--svg", Path("out.svg"), "--targets", "best"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("PASS: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("Bonferroni"), std::string::npos) << result.out;
  const std::string csv = ReadFile(Path("out.csv"));
  EXPECT_EQ(csv.rfind("layout,k,bits_per_key,keys,", 0), 0u) << csv;
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < csv.size(); begin = csv.find('\n', begin) + 1) {
    lines.push_back(csv.substr(begin, csv.find('\n', begin) - begin));
    EXPECT_EQ(commas(lines.back()), commas(lines.front())) << lines.back();
  }
  EXPECT_EQ(lines.size(), 1 + 7 * 3u);  // seven loads; split512 with its 8, word64 with both
  const std::string svg = ReadFile(Path("out.svg"));
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  for (const char* text : {"split512", "word64", "bits per key"}) EXPECT_NE(svg.find(text), std::string::npos) << text;
}

TEST_F(ValidateTest, WordLists) {
  const Json json = RunJson({"validate", "--quick", "--words", Words(), "--patterns", "words", "--layouts", "split512",
                             "--bits-per-key", "10", "--targets", "best", "--keys", "1M"});
  ASSERT_EQ(json["cells"].size(), 1u);
  EXPECT_EQ(json["cells"][0]["keys"], 20'000);  // one half; the probes are of the other
  EXPECT_LE(json["cells"][0]["probes"], 20'000);
  EXPECT_GT(json["cells"][0]["probes"], 0);
  ExpectError({"validate", "--words", Path("nowhere")}, 3, {"--words", "nowhere"});
  WriteFile(Path("one"), "word\nword\n");
  ExpectError({"validate", "--words", Path("one")}, 3, {"--words", "at least 2 different lines"});
}

TEST_F(ValidateTest, Arguments) {
  const auto refused = [&](std::vector<std::string> arguments, const std::vector<std::string>& parts) {
    arguments.insert(arguments.begin(), "validate");
    ExpectError(arguments, 2, parts);
  };
  refused({"--layouts", "word65"}, {"--layouts word65", "split512"});
  refused({"--layouts", "split512,"}, {"--layouts split512,", "one comma"});
  refused({"--layouts", "split512", "--k", "7"}, {"--k 7", "none of the layouts"});
  refused({"--k", "17"}, {"--k 17", "1 to 16"});
  refused({"--bits-per-key", "0.5"}, {"--bits-per-key 0.5", "1 to 1024"});
  refused({"--bits-per-key", "nan"}, {"--bits-per-key nan"});
  refused({"--keys", "0"}, {"--keys 0"});
  refused({"--keys", "-1"}, {"--keys -1"});
  refused({"--patterns", "fibonacci"}, {"--patterns fibonacci", "sequential"});
  refused({"--patterns", "random:decimal"}, {"--patterns random:decimal", "both"});
  refused({"--targets", "AVX9"}, {"--targets AVX9", "SCALAR"});
  refused({"--targets", "best", "--target", "best"}, {"--target and --targets exclude"});
  refused({"--probes", "0"}, {"--probes 0"});
  refused({"--family-error", "1"}, {"--family-error 1"});
  refused({"--threads", "0"}, {"--threads 0"});
  refused({"--break", "glass"}, {"--break glass"});
  ExpectError({"validate", "--layouts", "split512", "--keys", "1G", "--bits-per-key", "24"}, 4, {"--keys", "1 GiB"});
  ExpectError({"validate", "--csv", Path("no/such/file")}, 3, {"--csv"});
  const CliResult help = Run({"validate", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.out.find("--break"), std::string::npos);
  for (const char* word : {"--family-error", "--words", "Exit codes", "Examples:"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
}

// One of two outputs under one name would be lost, also where the file is not there yet.
TEST_F(ValidateTest, TwoOutputsAreTwoFiles) {
  const std::vector<std::string> run = {"validate", "--keys",         "100", "--layouts", "split512", "--patterns",
                                        "random",   "--bits-per-key", "10",  "--probes",  "1000"};
  const auto refused = [&](const std::string& csv, const std::string& svg) {
    std::vector<std::string> arguments = run;
    for (const std::string& argument : {std::string("--csv"), csv, std::string("--svg"), svg}) {
      arguments.push_back(argument);
    }
    ExpectError(arguments, 2, {"--svg", "is the same file as --csv"});
  };
  refused(Path("new"), Path("new"));
  refused(Path("new"), Path("./new"));
  std::filesystem::create_symlink(Path("new"), Path("link"));
  refused(Path("new"), Path("link"));
  EXPECT_FALSE(std::filesystem::exists(Path("new")));
  std::vector<std::string> dash = run;
  dash.insert(dash.end(), {"--csv", "-"});
  ExpectError(dash, 2, {"--csv -", "must be the name of a file"});
}

}  // namespace
}  // namespace bloomline::test
