// bloomline tune: candidates, skyline and recommendation against calibrations written here, and the calibration's own
// file.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bloomline/config.h"
#include "bloomline/fpr_model.h"
#include "bloomline/layout.h"
#include "bloomline/target.h"
#include "bloomline/version.h"
#include "tests/cli_runner.h"

namespace bloomline::test {
namespace {

class TuneTest : public CliTest {
 protected:
  using Times = std::vector<double>;

  // A calibration at 2^10 and 2^20 bytes with the given times, by name with k.
  std::string WriteCalibration(const std::map<std::string, Times>& times) const {
    Json json = {{"kind", "bloomline tune calibration"},
                 {"format", 1},
                 {"version", Version()},
                 {"cpu", "Some CPU, family 1"},
                 {"caches", "L1 Data 48K"},
                 {"target", "AVX2"},
                 {"measured_at", "2026-01-31T12:00:00Z"},
                 {"size_bytes", {1024, 1048576}},
                 {"lookup_batch", Json::array()}};
    for (const auto& [name, ns] : times) {
      const LayoutChoice choice = *TryParseLayout(name);
      json["lookup_batch"].push_back(
          {{"layout", LayoutName(choice.layout, choice.k)}, {"k", choice.k}, {"ns_per_key", ns}});
    }
    WriteFile(Path("calibration"), json.dump());
    return Path("calibration");
  }

  // Every layout and k, with times that follow no pattern.
  std::string WriteFullCalibration() const {
    std::map<std::string, Times> times;
    uint64_t x = 12345;
    for (const Layout layout : {Layout::kWord64, Layout::kSector512z2, Layout::kSector512z4, Layout::kSector512z8,
                                Layout::kLine512, Layout::kSplit256}) {
      for (int k = kMinHashes; k <= kMaxHashes; ++k) {
        if (!IsValidHashCount(layout, k)) continue;
        x = x * 6364136223846793005 + 1442695040888963407;
        const double ns = 1 + static_cast<double>(x >> 40) / (1 << 24) * 3;
        times[LayoutNameWithK(layout, k)] = {ns, 2 * ns};
      }
    }
    return WriteCalibration(times);
  }

  Json Tune(std::vector<std::string> more) const {
    more.insert(more.begin(), {"tune", "--calibration", Path("calibration")});
    return RunJson(more);
  }

  static const Json& Find(const Json& answer, const std::string& layout, int k) {
    static const Json kNone = Json::object();
    for (const Json& candidate : answer["candidates"]) {
      if (candidate["layout"] == layout && candidate["k"] == k) return candidate;
    }
    ADD_FAILURE() << layout << " " << k << " is not there";
    return kNone;
  }
};

TEST_F(TuneTest, CandidatesMeetTheFprWithInterpolatedTimes) {
  WriteCalibration({{"split512", {1.0, 2.0}}, {"word64k5", {0.5, 5.5}}});
  const Json answer = Tune({"--keys", "20k", "--fpr", "1%"});
  ASSERT_EQ(answer["candidates"].size(), 2u);
  for (const Json& candidate : answer["candidates"]) {
    const bool split = candidate["layout"] == "split512";
    const Layout layout = split ? Layout::kSplit512 : Layout::kWord64;
    const int k = split ? 8 : 5;
    const uint64_t blocks = BlocksForFpr(layout, k, 20000, 0.01);
    EXPECT_EQ(candidate["k"], k);
    EXPECT_EQ(candidate["blocks"], blocks);
    EXPECT_EQ(candidate["memory_bytes"], blocks * 64);
    EXPECT_DOUBLE_EQ(candidate["bits_per_key"].get<double>(), static_cast<double>(blocks * 512) / 20000);
    EXPECT_EQ(candidate["predicted_fpr"].get<double>(), PredictedFpr(layout, k, blocks, 20000));
    const double share = (std::log2(static_cast<double>(blocks * 64)) - 10) / 10;
    EXPECT_NEAR(candidate["ns_per_key"].get<double>(), split ? 1 + share : 0.5 + 5 * share, 1e-9);
    EXPECT_TRUE(candidate["cost_ns"].is_null());
  }
  EXPECT_EQ(answer["design_keys"], 20000);
  EXPECT_EQ(answer["design_fpr"], 0.01);
  EXPECT_EQ(answer["calibration"]["measured_at"], "2026-01-31T12:00:00Z");
  EXPECT_EQ(answer["left_out"].size(), 45u);
  EXPECT_EQ(answer["left_out"][0]["why"], "not measured in this calibration");
  // Outside the sizes measured: the nearest one's.
  EXPECT_EQ(Find(Tune({"--keys", "10", "--fpr", "0.01"}), "split512", 8)["ns_per_key"], 1.0);
  EXPECT_EQ(Find(Tune({"--keys", "100M", "--fpr", "0.01"}), "split512", 8)["ns_per_key"], 2.0);
}

// The definition, pair by pair, against the program's sweep.
TEST_F(TuneTest, SkylineIsWhatNothingBeats) {
  WriteFullCalibration();
  const std::vector<std::vector<std::string>> questions = {{"--keys", "1M", "--fpr", "0.01"},
                                                           {"--keys", "7", "--fpr", "0.3"},
                                                           {"--keys", "20k", "--fpr", "1e-4", "--saved-ns", "50"},
                                                           {"--keys", "100k", "--memory", "128KiB"}};
  for (const std::vector<std::string>& question : questions) {
    const Json answer = Tune(question);
    const char* space = question[2] == "--fpr" ? "memory_bytes" : "predicted_fpr";
    int recommended = 0;
    int skyline = 0;
    for (const Json& a : answer["candidates"]) {
      bool beaten = false;
      for (const Json& b : answer["candidates"]) {
        const bool as_good = b[space] <= a[space] && b["ns_per_key"] <= a["ns_per_key"];
        beaten = beaten || (as_good && (b[space] < a[space] || b["ns_per_key"] < a["ns_per_key"]));
      }
      EXPECT_EQ(a["skyline"].get<bool>(), !beaten) << a;
      recommended += a["recommended"].get<bool>() ? 1 : 0;
      skyline += beaten ? 0 : 1;
    }
    EXPECT_EQ(recommended, 1);
    EXPECT_GE(skyline, 1);
    EXPECT_EQ(answer["candidates"].size() + answer["left_out"].size(), 47u);
  }
}

TEST_F(TuneTest, WithoutSavingsTheLibraryChoosesUnlessItIsBeaten) {
  const FilterConfig own = FilterConfig::ForFpr(1'000'000, 0.01);
  const std::string own_name = LayoutNameWithK(own.layout(), own.k());
  ASSERT_NE(own_name, "line512k7");
  // line512 is smaller and slower: a trade, not a defeat.
  WriteCalibration({{own_name, {1.0, 1.0}}, {"line512k7", {1.5, 1.5}}, {"word64k5", {0.9, 0.9}}});
  Json answer = Tune({"--keys", "1M", "--fpr", "0.01"});
  EXPECT_EQ(answer["recommended"]["layout"], LayoutName(own.layout(), own.k()));
  EXPECT_EQ(answer["recommended"]["k"], own.k());
  EXPECT_EQ(answer["recommended"]["memory_bytes"], own.bits() / 8);
  const auto reason = answer["reason"].get<std::string>();
  for (const char* part :
       {"library's own choice", "smallest, line512 k=7", "1.5 ns", "fastest, word64 k=5", "0.9 ns"}) {
    EXPECT_NE(reason.find(part), std::string::npos) << part << "\n" << reason;
  }
  // Smaller and as fast.
  WriteCalibration({{own_name, {1.0, 1.0}}, {"line512k7", {1.0, 1.0}}, {"word64k5", {0.9, 0.9}}});
  answer = Tune({"--keys", "1M", "--fpr", "0.01"});
  EXPECT_EQ(answer["recommended"]["layout"], "line512");
  EXPECT_NE(answer["reason"].get<std::string>().find("beats the library's own choice"), std::string::npos);
  EXPECT_FALSE(Find(answer, LayoutName(own.layout(), own.k()), own.k())["skyline"].get<bool>());
}

TEST_F(TuneTest, SavingsDecideBetweenSpeedAndSelectivity) {
  WriteCalibration({{"word64k5", {1.0, 1.0}}, {"line512k7", {3.0, 3.0}}});
  const uint64_t blocks = (uint64_t{1} << 20) / 64;
  const double word = PredictedFpr(Layout::kWord64, 5, blocks, 800000);
  const double line = PredictedFpr(Layout::kLine512, 7, blocks, 800000);
  const double even = (3.0 - 1.0) / (word - line);  // ns at which both cost the same
  for (const double factor : {0.0, 0.5, 0.99, 1.01, 10.0, 1e6}) {
    const double saved = even * factor;
    const Json answer = Tune({"--keys", "800000", "--memory", "1MiB", "--saved-ns", std::to_string(saved)});
    EXPECT_EQ(answer["recommended"]["layout"], factor < 1 ? "word64" : "line512") << factor;
    EXPECT_NEAR(Find(answer, "word64", 5)["cost_ns"].get<double>(), 1 + word * saved, 1e-6 * (1 + saved));
    EXPECT_NEAR(Find(answer, "line512", 7)["cost_ns"].get<double>(), 3 + line * saved, 1e-6 * (1 + saved));
    EXPECT_EQ(Find(answer, "word64", 5)["memory_bytes"], 1 << 20);
    EXPECT_EQ(answer["candidates"][0]["layout"], "line512");  // in the order of FPR
  }
}

TEST_F(TuneTest, WhatCannotReachTheTargetIsLeftOut) {
  WriteFullCalibration();
  const Json answer = Tune({"--keys", "4G", "--fpr", "1e-8"});
  ASSERT_FALSE(answer["left_out"].empty());
  ASSERT_FALSE(answer["candidates"].empty());
  for (const Json& one : answer["left_out"]) {
    const LayoutChoice choice = *TryParseLayout(one["layout"].get<std::string>());
    EXPECT_EQ(BlocksForFpr(choice.layout, one["k"].get<int>(), 4'000'000'000, 1e-8), 0u) << one;
    EXPECT_EQ(one["why"], "cannot reach the FPR at any size");
  }
  const CliResult text = Run({"tune", "--calibration", Path("calibration"), "--keys", "4G", "--fpr", "1e-8"});
  EXPECT_NE(text.out.find("left out  word64 k=1, k=2"), std::string::npos) << text.out;
}

// The printed options make the very filter.
TEST_F(TuneTest, TheBuildLineBuildsIt) {
  WriteFullCalibration();
  WriteFile(Path("keys"), "a\nb\n");
  for (const std::vector<std::string>& question :
       {std::vector<std::string>{"--keys", "12345", "--fpr", "0.003", "--saved-ns", "1"},
        std::vector<std::string>{"--keys", "12345", "--memory", "20000", "--saved-ns", "1000"},
        std::vector<std::string>{"--keys", "99991", "--memory", "1MiB", "--saved-ns", "5"}}) {
    const Json answer = Tune(question);
    std::vector<std::string> arguments;
    std::string word;
    for (const char c : answer["build"].get<std::string>() + " ") {
      if (c != ' ') {
        word += c;
        continue;
      }
      arguments.push_back(word == "KEYS" ? Path("keys") : word == "FILTER" ? Path("out") : word);
      word.clear();
    }
    ASSERT_EQ(arguments.front(), "bloomline");
    arguments.erase(arguments.begin());
    const Json built = RunJson(arguments);
    for (const char* key : {"layout", "k", "blocks", "memory_bytes", "design_keys"}) {
      EXPECT_EQ(built[key], key == std::string("design_keys") ? answer[key] : answer["recommended"][key]) << key;
    }
  }
  // Fewer than 1 bit per key: build takes no such size.
  EXPECT_TRUE(Tune({"--keys", "1M", "--memory", "1000"})["build"].is_null());
  WriteCalibration({{"word64k5", {1, 1}}});
  EXPECT_EQ(Tune({"--keys", "10M", "--fpr", "0.01"})["config"],
            "bloomline::FilterConfig::ForFpr(10'000'000, 0.01, bloomline::Layout::kWord64, 5)");
  EXPECT_EQ(Tune({"--keys", "10M", "--memory", "1MiB"})["config"],
            "bloomline::FilterConfig::ForBits(8'388'608, 5, bloomline::Layout::kWord64)");
}

TEST_F(TuneTest, TableAndChart) {
  WriteCalibration({{"word64k5", {1, 1}}, {"line512k7", {3, 3}}, {"word64k8", {2, 2}}, {"line512k16", {9, 9}}});
  const std::vector<std::string> base = {"tune", "--calibration", Path("calibration"), "--keys",     "10k", "--fpr",
                                         "0.01", "--svg",         Path("chart.svg"),   "--saved-ns", "7"};
  const CliResult skyline = Run(base);
  EXPECT_EQ(skyline.exit_code, 0) << skyline.err;
  EXPECT_EQ(skyline.err, "");
  for (const char* part : {">*  word64", "\n*   line512", "cost, ns", "2026-01-31T12:00:00Z", "Some CPU", "AVX2",
                           "--layout word64 --k 5", "kWord64, 5", "word64 k=5 costs least"}) {
    EXPECT_NE(skyline.out.find(part), std::string::npos) << part << "\n" << skyline.out;
  }
  EXPECT_EQ(skyline.out.find("9.00"), std::string::npos) << skyline.out;
  std::vector<std::string> all = base;
  all.emplace_back("--all");
  EXPECT_NE(Run(all).out.find("9.00"), std::string::npos);
  const std::string svg = ReadFile(Path("chart.svg"));
  EXPECT_EQ(svg.rfind("<svg", 0), 0u);
  for (const char* part : {"10,000 keys", "skyline", "line512", "word64 k=5", "</svg>"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
}

TEST_F(TuneTest, BadArguments) {
  WriteFullCalibration();
  const std::vector<std::string> listing = Listing();
  const auto refused = [&](std::vector<std::string> more, const std::vector<std::string>& parts) {
    more.insert(more.begin(), {"tune", "--calibration", Path("calibration"), "--svg", Path("chart")});
    ExpectError(more, 2, parts);
  };
  ExpectError({"tune", "--fpr", "0.01"}, 2, {"bloomline tune: --keys is required"});
  refused({"--keys", "5"}, {"one of --fpr and --memory is required"});
  refused({"--keys", "5", "--fpr", "0.1", "--memory", "1MiB"}, {"--fpr and --memory exclude each other"});
  for (const char* n : {"0", "-1", "nan", "1.5", "1099511627777", "x", ""}) {
    refused({"--keys", n, "--fpr", "0.01"}, {"--keys", n, "must be a whole number, 1 to 1,099,511,627,776"});
  }
  for (const char* fpr : {"0", "1", "nan", "inf", "-0.5", "2", "x"}) {
    refused({"--keys", "5", "--fpr", fpr}, {std::string("--fpr ") + fpr + ": must be above 0 and below 1"});
  }
  for (const char* saved : {"-1", "-0.001", "nan", "inf", "1e16", "x"}) {
    refused({"--keys", "5", "--fpr", "0.1", "--saved-ns", saved},
            {std::string("--saved-ns ") + saved + ": must be a number, 0 to 1e+15"});
  }
  for (const char* memory : {"0", "-1", "nan", "64QiB", "x"}) {
    refused({"--keys", "5", "--memory", memory}, {std::string("--memory ") + memory, "64MiB"});
  }
  for (const char* memory : {"1", "31", "257GiB", "1TiB"}) {
    refused({"--keys", "5", "--memory", memory}, {std::string("--memory ") + memory + ": must be 32 bytes to 256 GiB"});
  }
  refused({"--keys", "1T", "--fpr", "1e-12"}, {"--fpr 1e-12", "2^-64"});
  EXPECT_EQ(Listing(), listing);
  ExpectError({"tune", "--calibration", Path("calibration"), "--keys", "5", "--fpr", "0.1", "--svg", Path("no/chart")},
              3, {"--svg", "no/chart"});
  ExpectError(
      {"tune", "--calibration", Path("calibration"), "--keys", "5", "--fpr", "0.1", "--svg", Path("calibration")}, 2,
      {"--svg", "--calibration"});
  ExpectError({"tune", "--calibration", "", "--keys", "5", "--fpr", "0.1"}, 2, {"--calibration ''"});
  EXPECT_EQ(Run({"tune", "--calibration", Path("calibration"), "--keys", "5", "--memory", "256GiB"}).exit_code, 0);
}

// A file that the user named is neither believed nor overwritten when it is something else.
TEST_F(TuneTest, DamagedCalibrationFile) {
  WriteCalibration({{"split512", {1.0, 2.0}}});
  const Json good = Json::parse(ReadFile(Path("calibration")));
  const auto refused = [&](const std::string& bytes, const std::string& part) {
    WriteFile(Path("bad"), bytes);
    for (const bool again : {false, true}) {
      std::vector<std::string> arguments = {"tune", "--calibration", Path("bad"), "--keys", "5", "--fpr", "0.1"};
      if (again) arguments.emplace_back("--recalibrate");
      ExpectError(arguments, 3, {"--calibration", "bad", part});
    }
    EXPECT_EQ(ReadFile(Path("bad")), bytes);
  };
  const auto changed = [&](const char* key, const Json& value) {
    Json json = good;
    json[key] = value;
    return json.dump();
  };
  const auto row = [&](const Json& layout, const Json& k, const Json& ns) {
    return changed("lookup_batch", Json::array({{{"layout", layout}, {"k", k}, {"ns_per_key", ns}}}));
  };
  refused("", "not a calibration");
  refused("precious notes\n", "not a calibration");
  refused("[1, 2]", "not a calibration");
  refused("{}", "not a calibration");
  refused(good.dump().substr(0, 100), "not a calibration");
  refused(std::string(2 << 20, ' '), "not a calibration");
  refused(changed("format", 2), "another format version");
  refused(changed("size_bytes", Json::array()), "no filter sizes");
  refused(changed("size_bytes", {5, 5}), "do not ascend");
  refused(changed("size_bytes", "x"), "wrong type");
  refused(changed("cpu", 7), "wrong type");
  refused(changed("lookup_batch", Json::array()), "no measurements");
  refused(row("word65", 5, {1, 2}), "unknown layout or k");
  refused(row("split512", 9, {1, 2}), "unknown layout or k");
  refused(row("split512", 8, {1}), "length");
  refused(row("split512", 8, {1, 0}), "above 0");
  refused(row("split512", 8, {1, -3}), "above 0");
  refused(row("split512", 8, {1, nullptr}), "wrong type");
  ExpectError({"tune", "--calibration", "/", "--keys", "5", "--fpr", "0.1"}, 3, {"--calibration /"});
  ExpectError({"tune", "--calibration", Path("no/such"), "--keys", "5", "--fpr", "0.1"}, 3,
              {"--calibration", "no/such"});
}

// Measures for real, with the times of this machine.
TEST_F(TuneTest, CacheIsMadeUsedAndReplaced) {
  CliInput home;
  home.environment["XDG_CACHE_HOME"] = Path("cache");
  const std::vector<std::string> arguments = {"tune", "--keys", "1M", "--fpr", "0.01", "--json"};
  const std::string path = Path("cache") + "/bloomline/tune-" + SupportedTargets().front() + ".json";
  std::filesystem::create_directories(Path("cache") + "/bloomline");
  WriteFile(path, "{damaged");
  const CliResult first = Run(arguments, home);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("is unusable (not a calibration): measuring again"), std::string::npos) << first.err;
  const Json measured = Json::parse(first.out);
  EXPECT_EQ(measured["candidates"].size() + measured["left_out"].size(), 47u);
  EXPECT_GE(measured["candidates"].size(), 40u);
  for (const Json& candidate : measured["candidates"]) {
    EXPECT_GT(candidate["ns_per_key"].get<double>(), 0.01);
    EXPECT_LT(candidate["ns_per_key"].get<double>(), 1e5);
  }
  // The second run says nothing and gives the same.
  EXPECT_EQ(RunJson({"tune", "--keys", "1M", "--fpr", "0.01"}, home), measured);
  if (kSanitized) return;  // measuring takes long there
  Json kept = Json::parse(ReadFile(path));
  kept["version"] = "0.0.9";
  WriteFile(path, kept.dump());
  const CliResult again = Run(arguments, home);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_NE(again.err.find("library version 0.0.9, now " + std::string(Version())), std::string::npos) << again.err;
  EXPECT_EQ(Json::parse(ReadFile(path))["version"], Version());
  EXPECT_EQ(Listing().size(), 1u);
  CliInput nowhere;
  nowhere.environment["XDG_CACHE_HOME"] = "/dev/null/cache";
  nowhere.address_limit = uint64_t{240} << 20;  // the largest filter that is measured does not fit: without it, then
  const CliResult lost = Run(arguments, nowhere);
  EXPECT_EQ(lost.exit_code, 0);
  EXPECT_EQ(Json::parse(lost.out)["calibration"]["size_bytes"], Json({65536, 1048576, 16777216}));
  EXPECT_NE(lost.err.find("the calibration is not kept"), std::string::npos) << lost.err;
}

}  // namespace
}  // namespace bloomline::test
