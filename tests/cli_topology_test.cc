// bloomline topology: this machine, made-up ones, and that they are told apart.
#include <gtest/gtest.h>

#include <string>

#include "bloomline/target.h"
#include "tests/cli_runner.h"

namespace bloomline::test {
namespace {

TEST_F(CliTest, TopologyOfThisMachine) {
  const Json json = RunJson({"topology"});
  ASSERT_TRUE(json["nodes"].is_array());
  ASSERT_FALSE(json["nodes"].empty());
  EXPECT_GT(json["nodes"][0]["memory_bytes"].get<uint64_t>(), 0u);
  EXPECT_FALSE(json["nodes"][0]["cpus"].empty());
  EXPECT_FALSE(json["cores"].empty());
  EXPECT_FALSE(json["caches"].empty());
  EXPECT_TRUE(json["distances"].is_array());
  EXPECT_EQ(json["synthetic"], false);
  EXPECT_EQ(json["auto"]["memory_bytes"], uint64_t{1} << 30);
  EXPECT_GE(json["auto"]["threads"].get<int>(), 1);
  EXPECT_EQ(json["auto"]["target"], TryChosenTarget().value());
  const CliResult text = Run({"topology", "--memory", "64MiB"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* part : {"machine", "node 0", "caches", "For a filter of 64 MiB", "placement", "pages", "threads"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
}

TEST_F(CliTest, TopologyOfAMadeUpMachine) {
  const std::vector<std::string> command = {"topology", "--synthetic", "numa:2 l3:1(size=33554432) core:2 pu:2",
                                            "--memory"};
  auto with = [&](const char* memory) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back(memory);
    return arguments;
  };
  const Json large = RunJson(with("1GiB"));
  EXPECT_EQ(large["synthetic"], true);
  EXPECT_NE(large["note"], "");
  EXPECT_EQ(large["nodes"].size(), 2u);
  EXPECT_EQ(large["nodes"][1]["cpus"], Json::parse("[4,5,6,7]"));
  EXPECT_EQ(large["cores"].size(), 4u);
  EXPECT_EQ(large["auto"]["placement"], "interleave");
  EXPECT_EQ(large["auto"]["threads"], 8);
  EXPECT_EQ(RunJson(with("32MiB"))["auto"]["placement"], "local");
  const CliResult text = Run(with("1GiB"));
  EXPECT_EQ(text.out.rfind("made up", 0), 0u) << text.out;
}

TEST_F(CliTest, ATopologyFromTheEnvironmentIsNotTheMachines) {
  CliInput input;
  input.environment = {{"HWLOC_SYNTHETIC", "numa:2 core:1 pu:1"}, {"HWLOC_THISSYSTEM", "0"}};
  const Json json = RunJson({"topology"}, input);
  EXPECT_EQ(json["synthetic"], true);
  EXPECT_EQ(json["nodes"].size(), 2u);
  EXPECT_NE(json["note"].get<std::string>().find("HWLOC_SYNTHETIC"), std::string::npos) << json["note"];
}

TEST_F(CliTest, TopologyArguments) {
  ExpectError({"topology", "--synthetic", "nonsense"}, 2, {"--synthetic", "nonsense", "numa:2"});
  ExpectError({"topology", "--memory", "many"}, 2, {"--memory", "many"});
  ExpectError({"topology", "--memory", "0"}, 2, {"--memory", "0"});
  ExpectError({"topology", "extra"}, 2, {"extra"});
}

}  // namespace
}  // namespace bloomline::test
