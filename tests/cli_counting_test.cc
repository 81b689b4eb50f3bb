// Counting filters on the command line: build --layout counting4, add, remove, count; query, info and merge on them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bloomline/counting_filter.h"
#include "bloomline/fpr_model.h"
#include "tests/cli_counting_util.h"

namespace bloomline::test {
namespace {

// ---- build.

TEST_F(CliCountingTest, BuildArguments) {
  WriteFile(Path("keys"), "a\nb\n");
  const auto refused = [&](Strings more, const Strings& parts) {
    more.insert(more.begin(), {"build", "--keys", Path("keys"), "--out", Path("out"), "--fpr", "0.01"});
    ExpectError(more, 2, parts);
  };
  refused({"--overflow", "reject"}, {"--overflow reject: needs --layout counting4 or counting8"});
  refused({"--overflow", "reject", "--layout", "split512"}, {"--overflow reject: needs --layout counting4"});
  for (const char* policy : {"", "none", "Saturate", "wrap"}) {
    refused({"--layout", "counting4", "--overflow", policy}, {"--overflow ", "must be saturate, reject or spill"});
  }
  refused({"--layout", "counting4", "--k", "7"}, {"--k 7: contradicts --layout counting4, whose k is 8"});
  refused({"--layout", "counting8", "--k", "16"}, {"--k 16: contradicts --layout counting8, whose k is 8"});
  refused({"--layout", "counting5"}, {"--layout counting5: must be", "counting8"});
  EXPECT_EQ(Listing(), Strings{"keys"});
}

TEST_F(CliCountingTest, BuildWritesWhatTheLibraryDoes) {
  const Strings keys = Keys(0, 5000);
  WriteFile(Path("keys"), Joined(keys));
  for (const Layout layout : {Layout::kCounting4, Layout::kCounting8}) {
    for (const OverflowPolicy policy : {OverflowPolicy::kSaturate, OverflowPolicy::kReject, OverflowPolicy::kSpill}) {
      const std::string name = LayoutName(layout, 8);
      const FilterConfig by_fpr = FilterConfig::ForFpr(5000, 0.01, layout).WithKeyKind(KeyKind::kBytes).WithSeed(9);
      CountingFilter expected(by_fpr, policy);
      for (const std::string& key : keys) expected.Add(key);
      const Json json = RunJson({"build", "--keys", Path("keys"), "--fpr", "0.01", "--layout", name, "--seed", "9",
                                 "--overflow", OverflowPolicyName(policy), "--out", Path("f")});
      EXPECT_EQ(ReadFile(Path("f")), Snapshot(expected)) << name << OverflowPolicyName(policy);
      EXPECT_EQ(json["overflow"], OverflowPolicyName(policy));
      EXPECT_LE(json["predicted_fpr"].get<double>(), 0.01);
      EXPECT_EQ(json["refused"], 0);
      EXPECT_EQ(json["keys"], 5000);
      EXPECT_EQ(json["inserted"], 5000);
    }
    // --bits-per-key means memory, so that counters are fewer.
    const Json sized = RunJson({"build", "--keys", Path("keys"), "--bits-per-key", "40", "--layout",
                                LayoutName(layout, 8), "--out", Path("f")});
    EXPECT_EQ(sized["overflow"], "saturate");
    EXPECT_NEAR(sized["bits_per_key"].get<double>(), 40, 0.2);
    EXPECT_NEAR(sized["counters_per_key"].get<double>(), layout == Layout::kCounting4 ? 10 : 5, 0.05);
  }
}

TEST_F(CliCountingTest, BuildCountsWhatItRefuses) {
  const Strings keys = Keys(0, 3000);
  WriteFile(Path("keys"), Joined(keys));
  CountingFilter expected(FilterConfig::ForBitsPerKey(200, 40, Layout::kCounting4).WithKeyKind(KeyKind::kBytes),
                          OverflowPolicy::kReject);
  uint64_t refused = 0;
  for (const std::string& key : keys) refused += expected.Add(key) ? 0 : 1;
  ASSERT_GT(refused, 0u);
  const Strings command = {"build",      "--keys", Path("keys"), "--bits-per-key", "40",    "--expected", "200",
                           "--overflow", "reject", "--layout",   "counting4",      "--out", Path("f")};
  const CliResult text = Run(command);
  EXPECT_EQ(text.exit_code, 0);
  ASSERT_LT(refused, 1000u);
  const std::string warning =
      "bloomline build: warning: " + std::to_string(refused) + " of 3,000 keys refused: a counter";
  EXPECT_EQ(text.err.rfind(warning, 0), 0u) << text.err;
  EXPECT_NE(text.out.find("3,000 lines, refused: "), std::string::npos) << text.out;
  Strings with_json = command;
  with_json.emplace_back("--json");
  const Json json = Json::parse(Run(with_json).out);
  EXPECT_EQ(json["refused"], refused);
  EXPECT_EQ(json["inserted"], 3000 - refused);
  EXPECT_EQ(json["keys"], 3000);
  EXPECT_EQ(ReadFile(Path("f")), Snapshot(expected));
}

// ---- add, remove, count, query against a model.

// Random adds and removes of few keys, so that counters fill up; the model is a multiset.
TEST_F(CliCountingTest, HistoryAgainstAModel) {
  for (const std::string policy : kPolicies) {
    SCOPED_TRACE(policy);
    std::mt19937 random(17);
    std::map<std::string, int> model;
    uint64_t members = 0;
    Build({}, 500, policy);
    CountingFilter twin = CountingFilter::Load(Path("f"));
    bool refused_any = false;
    for (int round = 0; round < 5; ++round) {
      Strings added;
      for (int i = 0; i < 150; ++i) added.push_back(KeyName(static_cast<int>(random() % 10)));
      WriteFile(Path("lines"), Joined(added));
      const Json add = OnLines("add", added, {"--output", "refused", "--lines-to", Path("refused")});
      Strings refused = Split(ReadFile(Path("refused")));
      EXPECT_EQ(add["keys"], 150);
      EXPECT_EQ(add["refused"], refused.size());
      EXPECT_EQ(add["added"], 150 - refused.size());
      refused_any = refused_any || !refused.empty();
      Strings expected_refused;
      for (const std::string& key : added) {
        if (!twin.Add(key)) {
          expected_refused.push_back(key);
          continue;
        }
        ++model[key];
        ++members;
      }
      EXPECT_EQ(refused, expected_refused);
      EXPECT_EQ(add["inserted"], members);

      Strings removed;
      for (auto& [key, count] : model) {
        const int out = static_cast<int>(random() % (static_cast<unsigned>(count) + 1));
        removed.insert(removed.end(), static_cast<size_t>(out), key);
        count -= out;
        members -= static_cast<uint64_t>(out);
      }
      std::shuffle(removed.begin(), removed.end(), random);
      for (const std::string& key : removed) EXPECT_TRUE(twin.Remove(key));
      const Json remove = OnLines("remove", removed);
      EXPECT_EQ(remove["removed"], removed.size());
      EXPECT_EQ(remove["absent"], 0);
      EXPECT_EQ(remove["inserted"], members);
      EXPECT_EQ(ReadFile(Path("f")), Snapshot(twin));

      // No false negatives; every count is what the library says, and no less than the model's.
      Strings asked;
      for (const auto& [key, count] : model) {
        if (count > 0) asked.push_back(key);
      }
      EXPECT_EQ(OnLines("query", asked)["absent"], 0);
      Strings all = Keys(0, 60);
      OnLines("count", all, {"--output", "lines", "--lines-to", Path("counts")});
      const Strings counts = Split(ReadFile(Path("counts")));
      ASSERT_EQ(counts.size(), all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(counts[i], std::to_string(twin.Count(all[i])) + "\t" + all[i]);
        const int held = model.count(all[i]) > 0 ? model[all[i]] : 0;
        EXPECT_GE(twin.Count(all[i]), policy == "saturate" ? std::min<uint64_t>(static_cast<uint64_t>(held), 15)
                                                           : static_cast<uint64_t>(held));
      }
    }
    EXPECT_EQ(refused_any, policy == "reject");
    // Everything out again: empty, but for what saturated.
    Strings rest;
    for (const auto& [key, count] : model) rest.insert(rest.end(), static_cast<size_t>(count), key);
    OnLines("remove", rest);
    const Json info = RunJson({"info", Path("f")});
    EXPECT_EQ(info["inserted"], 0);
    if (policy == "saturate") {
      EXPECT_GT(info["full_counters"], 0);
    } else {
      EXPECT_EQ(info["fill"], 0.0);
      EXPECT_EQ(info["full_counters"], 0);
      EXPECT_EQ(info["spilled_keys"], 0);
    }
  }
}

TEST_F(CliCountingTest, IntegersHashesAndPipes) {
  std::vector<uint64_t> keys(100000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * 0x9e3779b97f4a7c15 + 1;
  WriteFile(Path("keys"), Bytes(keys));
  RunJson({"build", "--keys", "/dev/null", "--format", "u64le", "--expected", "100k", "--fpr", "0.001", "--layout",
           "counting4", "--out", Path("f")});
  CliInput piped;
  piped.pipe = Piped(Bytes(keys));
  EXPECT_EQ(RunJson({"add", Path("f"), "--keys", "-"}, piped)["added"], keys.size());
  CountingFilter expected = CountingFilter::Load(Path("f"));
  EXPECT_EQ(expected.InsertedCount(), keys.size());
  for (const uint64_t key : keys) ASSERT_TRUE(expected.MayContain(key));
  // Absent keys come back as they were.
  std::vector<uint64_t> others(1000);
  for (size_t i = 0; i < others.size(); ++i) others[i] = i;
  std::vector<uint64_t> absent;
  for (const uint64_t key : others) {
    if (!expected.Remove(key)) absent.push_back(key);
  }
  ASSERT_GT(absent.size(), 900u);
  WriteFile(Path("others"), Bytes(others));
  const CliResult removed = Run({"remove", Path("f"), "--keys", Path("others"), "--output", "absent"});
  EXPECT_EQ(removed.exit_code, 0) << removed.err;
  EXPECT_EQ(Words(removed.out), absent);
  EXPECT_EQ(ReadFile(Path("f")), Snapshot(expected));
  // Integers are counted in decimal.
  WriteFile(Path("two"), Bytes({keys[99999], 1ull << 63}));
  const CliResult counted = Run({"count", Path("f"), "--keys", Path("two"), "--output", "lines"});
  EXPECT_EQ(counted.out, std::to_string(expected.Count(keys[99999])) + "\t" + std::to_string(keys[99999]) + "\n" +
                             std::to_string(expected.Count(uint64_t{1} << 63)) + "\t9223372036854775808\n");

  // A file that holds hashes: u64le values are taken as they are, and the format must be given.
  CountingFilter hashes(FilterConfig::ForFpr(1000, 0.01, Layout::kCounting8).WithKeyKind(KeyKind::kHashed));
  hashes.Save(Path("h"));
  WriteFile(Path("hashes"), Bytes({HashInteger(5, 0), HashInteger(6, 0), HashInteger(5, 0)}));
  ExpectError({"add", Path("h"), "--keys", Path("hashes")}, 2, {"--format is required", "hashed", "64-bit hashes"});
  EXPECT_EQ(RunJson({"add", Path("h"), "--keys", Path("hashes"), "--format", "u64le"})["added"], 3);
  const CountingFilter loaded = CountingFilter::Load(Path("h"));
  EXPECT_EQ(loaded.Count(uint64_t{5}), 2u);
  EXPECT_EQ(loaded.Count(uint64_t{6}), 1u);
  EXPECT_EQ(RunJson({"count", Path("h"), "--keys", Path("hashes"), "--format", "u64le"})["largest"], 2);
  EXPECT_EQ(RunJson({"remove", Path("h"), "--keys", Path("hashes"), "--format", "u64le"})["absent"], 0);
  EXPECT_EQ(RunJson({"info", Path("h")})["fill"], 0.0);
}

TEST_F(CliCountingTest, LongLines) {
  const std::string longest = std::string(5 << 20, 'x') + "\r";
  const Strings lines = {"", longest, "short", longest};
  Build({}, 100, "reject");
  CliInput piped;
  piped.pipe = Piped(Joined(lines));
  EXPECT_EQ(RunJson({"add", Path("f"), "--keys", "-"}, piped)["added"], 4);
  EXPECT_EQ(CountingFilter::Load(Path("f")).Count(longest), 2u);
  const CliResult counted = Run({"count", Path("f"), "--keys", "-", "--output", "lines"}, piped);
  EXPECT_TRUE(counted.out == "1\t\n2\t" + longest + "\n1\tshort\n2\t" + longest + "\n");
  EXPECT_EQ(RunJson({"remove", Path("f"), "--keys", "-"}, piped)["removed"], 4);
  const CliResult absent = Run({"remove", Path("f"), "--keys", "-", "--output", "absent"}, piped);
  EXPECT_TRUE(absent.out == Joined(lines));
}

TEST_F(CliCountingTest, CountSummary) {
  Strings keys;
  for (int i = 0; i < 20; ++i) keys.insert(keys.end(), static_cast<size_t>(i), KeyName(i));
  for (const std::string policy : kPolicies) {
    Build({}, 10000, policy);
    OnLines("add", keys);
    const Json count = OnLines("count", Keys(0, 20));
    EXPECT_EQ(count["keys"], 20);
    EXPECT_EQ(count["absent"], 1);
    EXPECT_EQ(count["maybe"], 19);
    EXPECT_EQ(count["largest"], policy == "spill" ? 19 : 15);
    Json expected = Json::array();
    for (int i = 0; i < 15; ++i) expected.push_back({{"from", i}, {"to", i}, {"keys", 1}});
    if (policy == "spill") {
      expected.push_back({{"from", 15}, {"to", 15}, {"keys", 1}});
      expected.push_back({{"from", 16}, {"to", 31}, {"keys", 4}});
    } else {
      expected.push_back({{"from", 15}, {"to", policy == "reject" ? Json(15) : Json(nullptr)}, {"keys", 5}});
    }
    EXPECT_EQ(count["histogram"], expected) << policy;
    const std::string text = Run({"count", Path("f"), "--keys", Path("lines")}).out;
    EXPECT_EQ(text.rfind("maybe 19, absent 1 of 20 keys, ", 0), 0u) << text;
    const char* last = policy == "spill"    ? "\n16 to 31     4   20 %\n"
                       : policy == "reject" ? "\n15        5   25 %\n"
                                            : "\n15 or more     5   25 %\n";
    EXPECT_NE(text.find(last), std::string::npos) << text;
    EXPECT_EQ(text.find("15 or more") != std::string::npos, policy == "saturate") << text;
  }
  Build(Strings(300, "often"), 1000, "saturate", "counting8");
  const std::string text = Run({"count", Path("f"), "--keys", Path("lines")}).out;
  EXPECT_EQ(text.rfind("maybe 0, absent 20 of 20 keys", 0), 0u) << text;
  const Json often = OnLines("count", {"often"});
  EXPECT_EQ(often["largest"], 255);
  EXPECT_EQ(often["histogram"], Json::parse(R"([{"from":128,"to":null,"keys":1}])"));
  Build({}, 5000, "spill", "counting8");
  OnLines("add", Strings(3000, "often"));
  EXPECT_EQ(OnLines("count", {"often"})["histogram"], Json::parse(R"([{"from":2048,"to":4095,"keys":1}])"));
  EXPECT_EQ(OnLines("count", {})["histogram"], Json::array());
  EXPECT_EQ(Run({"count", Path("f"), "--keys", "/dev/null"}).out, "maybe 0, absent 0 of 0 keys\n");
}

// ---- query, info, merge.

TEST_F(CliCountingTest, QueryAnswersAsCountDoes) {
  for (const std::string layout : {"counting4", "counting8"}) {
    Build(Keys(0, 2000), 2000, "spill", layout);
    const Json query = OnLines("query", Keys(1000, 30000));
    const Json count = OnLines("count", Keys(1000, 30000));
    EXPECT_EQ(query["maybe"], count["maybe"]);
    EXPECT_GE(query["maybe"], 1000);
    EXPECT_EQ(query["layout"], layout);
    EXPECT_EQ(query["overflow"], "spill");
    const CliResult bitmap = Run({"query", Path("f"), "--keys", Path("keys"), "--output", "bitmap"});
    EXPECT_EQ(bitmap.out.substr(0, 248), std::string(248, '\xff'));
    EXPECT_EQ(Run({"query", Path("f"), "--keys", Path("keys"), "--output", "absent"}).out, "");
  }
}

TEST_F(CliCountingTest, Info) {
  for (const std::string policy : kPolicies) {
    Build({}, 1000, policy);
    OnLines("add", Strings(20, "often"));
    const CountingFilter filter = CountingFilter::Load(Path("f"));
    const OverflowReport report = filter.Overflow();
    const Json info = RunJson({"info", Path("f")});
    EXPECT_EQ(info["overflow"], policy);
    EXPECT_EQ(info["counters"], report.counters);
    EXPECT_EQ(info["full_counters"], 8);
    EXPECT_EQ(info["spilled_counters"], policy == "spill" ? 8 : 0);
    EXPECT_EQ(info["spilled_keys"], policy == "spill" ? 8 * 5 : 0);
    EXPECT_EQ(info["spill_bytes"], report.spill_bytes);
    EXPECT_DOUBLE_EQ(info["overflow_chance"].get<double>(),
                     CounterOverflowChance(filter.layout(), filter.blocks(), filter.InsertedCount()));
    EXPECT_DOUBLE_EQ(info["counters_per_key"].get<double>(),
                     static_cast<double>(report.counters) / static_cast<double>(filter.InsertedCount()));
    EXPECT_EQ(info["inserted"], policy == "reject" ? 15 : 20);
    EXPECT_EQ(info["zones"], 8);
    EXPECT_EQ(info["format_version"], 1);
    const std::string text = Run({"info", Path("f")}).out;
    for (const char* part : {"counting4, k = 8", " counters per key", "8 full: at 15", policy.c_str(),
                             "predicted chance of any: ", "of the counters are above 0"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
    EXPECT_EQ(text.find("40 in 8 entries") != std::string::npos, policy == "spill") << text;
  }
  // A plain filter has none of it.
  RunJson({"build", "--keys", Path("lines"), "--fpr", "0.01", "--out", Path("plain")});
  const Json plain = RunJson({"info", Path("plain")});
  for (const char* key : {"overflow", "counters", "full_counters", "overflow_chance"})
    EXPECT_FALSE(plain.contains(key));
}

TEST_F(CliCountingTest, Merge) {
  Strings twelve(12, "both");
  for (const std::string policy : kPolicies) {
    SCOPED_TRACE(policy);
    Build(twelve, 1000, policy, "counting4", "f");
    Build(Keys(0, 5), 1000, policy, "counting4", "g");
    const Json merged = RunJson({"merge", Path("f"), Path("g"), "--out", Path("m")});
    EXPECT_EQ(merged["inserted"], 17);
    EXPECT_EQ(merged["overflow"], policy);
    EXPECT_EQ(CountingFilter::Load(Path("m")).Count("both"), 12u);
    EXPECT_EQ(CountingFilter::Load(Path("m")).Count("key-4"), 1u);
    std::filesystem::remove(Path("m"));
    // 24 of one key do not fit 4 bits.
    if (policy == "reject") {
      ExpectError({"merge", Path("f"), Path("f"), "--out", Path("m")}, 3, {"reject", "15"});
      EXPECT_EQ(Listing(), (Strings{"f", "g", "keys"}));
      const std::string before = ReadFile(Path("f"));
      ExpectError({"merge", Path("f"), Path("f"), "--out", Path("f")}, 3, {"reject"});
      EXPECT_EQ(ReadFile(Path("f")), before);
      continue;
    }
    const CliResult text = Run({"merge", Path("f"), Path("f"), "--out", Path("m")});
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_NE(text.out.find("24 added"), std::string::npos) << text.out;
    EXPECT_EQ(CountingFilter::Load(Path("m")).Count("both"), policy == "spill" ? 24u : 15u);
    std::filesystem::remove(Path("m"));
  }
  Build(twelve, 1000, "spill", "counting4", "f");
  Build(twelve, 1000, "reject", "counting4", "policy");
  Build(twelve, 1000, "spill", "counting8", "layout");
  Build(twelve, 2000, "spill", "counting4", "size");
  RunJson({"build", "--keys", Path("keys"), "--bits-per-key", "40", "--layout", "split512", "--out", Path("plain")});
  const auto differ = [&](const char* other, const Strings& parts) {
    ExpectError({"merge", Path("f"), Path(other), "--out", Path("m")}, 3, parts);
    ExpectError({"merge", Path(other), Path("f"), "--out", Path("m")}, 3, {});
  };
  differ("policy", {"overflow policy", "spill and reject"});
  differ("layout", {"layout", "counting4 and counting8"});
  differ("size", {"blocks"});
  differ("plain", {"only the first has counters"});
  EXPECT_FALSE(std::filesystem::exists(Path("m")));
}

}  // namespace
}  // namespace bloomline::test
