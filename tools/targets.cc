// bloomline targets: the SIMD instruction sets of this program on this machine.
#include <algorithm>
#include <string>
#include <vector>

#include "bloomline/target.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/output.h"

namespace bloomline::cli {
namespace {

class TargetsCommand final : public Command {
 public:
  const char* name() const override { return "targets"; }
  const char* summary() const override { return "List the SIMD targets: compiled, supported here, chosen"; }
  const char* epilogue() const override {
    return "Best first. A filter's bytes and answers are the same on every target; only the speed differs.\n"
           "\n"
           "Examples:\n"
           "  bloomline targets\n"
           "  bloomline targets --json | jq -r .chosen\n"
           "  BLOOMLINE_TARGET=AVX2 bloomline query words.bloom --keys text.txt";
  }

  void Declare(CLI::App&) override {}

  void Run(const CommonOptions& common) override {
    const std::vector<std::string> compiled = CompiledTargets();
    const std::vector<std::string> supported = SupportedTargets();
    // A wrong BLOOMLINE_TARGET chooses none. The list, which shows what it may be, comes before the error.
    const Result<std::string> choice = TryChosenTarget();
    const std::string chosen = choice.ok() ? *choice : std::string();
    Print(common, compiled, supported, chosen);
    Must(choice);
  }

 private:
  static void Print(const CommonOptions& common, const std::vector<std::string>& compiled,
                    const std::vector<std::string>& supported, const std::string& chosen) {
    if (common.json) {
      Json json;
      json["compiled"] = compiled;
      json["supported"] = supported;
      json["chosen"] = chosen.empty() ? Json(nullptr) : Json(chosen);
      PrintJson(json);
      return;
    }
    std::string text = "target     supported  chosen\n";
    for (const std::string& target : compiled) {
      const bool here = std::find(supported.begin(), supported.end(), target) != supported.end();
      std::string line = target;
      line.resize(std::max<size_t>(11, line.size() + 1), ' ');
      line += here ? "yes" : "no";
      if (target == chosen) {
        line.resize(22, ' ');
        line += "*";
      }
      text += line + "\n";
    }
    PrintText(text);
  }
};

}  // namespace

std::unique_ptr<Command> MakeTargetsCommand() { return std::make_unique<TargetsCommand>(); }

}  // namespace bloomline::cli
