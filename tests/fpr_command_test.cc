// bloomline fpr: one prediction against the goldens, the finite case, the overview, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bloomline/fpr_model.h"
#include "tests/cli_runner.h"
#include "tests/golden_fpr.h"

namespace bloomline::test {
using testing::kGoldenClassicExact;
using testing::kGoldenFpr;
namespace {

class FprCommand : public CliTest {};

TEST_F(FprCommand, PrintsEveryGolden) {
  for (const testing::GoldenFpr& golden : kGoldenFpr) {
    std::string layout = golden.layout;
    if (layout.ends_with("_split")) layout.resize(layout.size() - 6);
    const auto json = RunJson(
        {"fpr", "--layout", layout, "--k", std::to_string(golden.k), "--bits-per-key", std::to_string(golden.per_key)});
    ASSERT_TRUE(json.contains("predicted_fpr")) << json.dump();
    EXPECT_NEAR(json["predicted_fpr"].get<double>() / golden.fpr, 1.0, 1e-6)
        << golden.layout << " k=" << golden.k << " at " << golden.per_key;
  }
}

TEST_F(FprCommand, FiniteFiltersAreExact) {
  for (const testing::GoldenClassicExact& golden : kGoldenClassicExact) {
    if (golden.m % 8 != 0) continue;
    const auto json = RunJson({"fpr", "--layout", "classic", "--k", std::to_string(golden.k), "--keys",
                               std::to_string(golden.n), "--memory", std::to_string(golden.m / 8)});
    EXPECT_NEAR(json["predicted_fpr"].get<double>() / golden.exact, 1.0, 1e-6) << golden.m;
  }
  // One block of split512: every key is in it, so that the rate is the occupancy of one line.
  const auto one = RunJson({"fpr", "--layout", "split512", "--keys", "51", "--memory", "64"});
  EXPECT_EQ(one["blocks"], 1);
  EXPECT_NEAR(one["predicted_fpr"].get<double>(), std::pow(1 - std::pow(63.0 / 64, 51), 8), 1e-11);
  const auto rounded = RunJson({"fpr", "--layout", "line512", "--k", "7", "--keys", "1M", "--memory", "1MiB"});
  EXPECT_EQ(rounded["memory_bytes"], 1 << 20);
  EXPECT_NEAR(rounded["predicted_fpr"].get<double>(), PredictedFpr(Layout::kLine512, 7, 1 << 14, 1'000'000), 1e-12);
  EXPECT_EQ(RunJson({"fpr", "--layout", "split512", "--keys", "0", "--memory", "1kB"})["predicted_fpr"], 0);
}

TEST_F(FprCommand, CountersPerKeyAndBestK) {
  const auto counting = RunJson({"fpr", "--layout", "counting4", "--bits-per-key", "10"});
  EXPECT_EQ(counting["bits_per_key"], 40);
  EXPECT_EQ(counting["counters_per_key"], 10);
  const auto best = RunJson({"fpr", "--layout", "word64", "--bits-per-key", "10"});
  EXPECT_EQ(best["k"], BestHashCount(Layout::kWord64, 10));
}

TEST_F(FprCommand, OverviewHasEveryLayout) {
  const std::string svg = Path("fpr.svg");
  const auto json = RunJson({"fpr", "--table", "--svg", svg});
  ASSERT_TRUE(json["rows"].is_array());
  for (const auto& row : json["rows"]) {
    EXPECT_LT(row["classic"]["predicted_fpr"], row["line512"]["predicted_fpr"]);
    EXPECT_LE(row["line512"]["predicted_fpr"], row["word64"]["predicted_fpr"]);
  }
  std::ifstream file(svg);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const char* layout : {"word64", "sector512z2", "split512", "split256", "line512", "classic"}) {
    EXPECT_NE(text.find(layout), std::string::npos) << layout;
  }
  EXPECT_NE(text.find("</svg>"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
}

TEST_F(FprCommand, BadArgumentsAreNamed) {
  const auto refused = [this](std::vector<std::string> arguments, const std::vector<std::string>& names) {
    arguments.insert(arguments.begin(), "fpr");
    ExpectError(arguments, 2, names);
  };
  refused({}, {"--bits-per-key"});
  refused({"--bits-per-key", "10"}, {"--layout is required"});
  refused({"--layout", "split512", "--keys", "10"}, {"--memory"});
  refused({"--layout", "split512", "--keys", "10", "--memory", "1MiB", "--bits-per-key", "3"}, {"--bits-per-key"});
  for (const char* bits : {"0", "-1", "nan", "inf", "1e9", "", "ten"}) {
    refused({"--layout", "split512", "--bits-per-key", bits}, {"--bits-per-key"});
  }
  for (const char* memory : {"0", "-1", "10XB", "1e30", "MiB", "1PiB", "nan"}) {
    refused({"--layout", "split512", "--keys", "10", "--memory", memory}, {"--memory"});
  }
  refused({"--layout", "split256", "--keys", "10", "--memory", "3GiB"}, {"--memory", "2 GiB"});
  refused({"--layout", "auto", "--bits-per-key", "10"}, {"--layout auto"});
  refused({"--layout", "counting4", "--k", "7", "--bits-per-key", "10"}, {"--k 7"});
  refused({"--layout", "classic", "--k", "256", "--bits-per-key", "10"}, {"--k 256"});
  refused({"--table", "--layout", "split512"}, {"--table"});
}

}  // namespace
}  // namespace bloomline::test
