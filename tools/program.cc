#include "tools/program.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "bloomline/error.h"
#include "bloomline/target.h"
#include "bloomline/version.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/output.h"

namespace bloomline::cli {
namespace {

constexpr const char* kEpilogue =
    "Exit codes: 0 done; 1 validate found a filter that fails; 2 bad arguments; 3 bad input or file (missing,\n"
    "unreadable, corrupt, mismatched, not writable, also a broken pipe); 4 out of memory, disk full or a size\n"
    "limit. Errors are one line on standard error.\n"
    "bloomline COMMAND --help explains a command.\n"
    "\n"
    "Examples:\n"
    "  bloomline build --keys words.txt --fpr 0.01 --out words.bloom\n"
    "  bloomline query words.bloom --keys text.txt --output absent\n"
    "  bloomline info words.bloom";

std::vector<std::unique_ptr<Command>> AllCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeBuildCommand());
  commands.push_back(MakeQueryCommand());
  commands.push_back(MakeAddCommand());
  commands.push_back(MakeRemoveCommand());
  commands.push_back(MakeCountCommand());
  commands.push_back(MakeInfoCommand());
  commands.push_back(MakeMergeCommand());
  commands.push_back(MakeFprCommand());
  commands.push_back(MakeTuneCommand());
  commands.push_back(MakeValidateCommand());
  commands.push_back(MakeTargetsCommand());
  commands.push_back(MakeTopologyCommand());
  return commands;
}

class Program {
 public:
  Program() : app_("bloomline: cache-line-blocked Bloom filters, built and queried at memory speed.\n", "bloomline") {
    app_.set_version_flag("--version", std::string("bloomline ") + Version());
    app_.require_subcommand(1);
    app_.footer(kEpilogue);
    app_.get_formatter()->label("SUBCOMMAND", "COMMAND");
    app_.get_formatter()->label("Subcommands", "Commands");
    app_.get_formatter()->column_width(32);
    for (const std::unique_ptr<Command>& command : commands_) {
      CLI::App* sub = app_.add_subcommand(command->name(), command->summary());
      sub->group("Commands");
      sub->footer(command->epilogue());
      command->Declare(*sub);
      sub->add_flag("--json", common_.json, "One JSON object on standard output and nothing else there");
      sub->add_option("--target", common_.target,
                      "SIMD target by name, see bloomline targets; also BLOOMLINE_TARGET [best]")
          ->type_name("NAME");
    }
  }

  int Run(int argc, char** argv) {
    try {
      return ParseAndRun(argc, argv);
    } catch (const BrokenPipe&) {
      return kExitInput;
    } catch (const CliError& error) {
      return Fail(error.exit_code(), error.what());
    } catch (const Error& error) {
      return Fail(ExitCodeFor(error), error.what());
    } catch (const std::bad_alloc&) {
      return Fail(kExitResources, "out of memory");
    } catch (const std::exception& error) {
      return Fail(kExitInput, error.what());
    }
  }

 private:
  int ParseAndRun(int argc, char** argv) {
    const auto names = [this] {
      std::string list;
      for (const auto& command : commands_) list += (list.empty() ? "" : ", ") + std::string(command->name());
      return list;
    };
    if (argc < 2) throw CliError(kExitUsage, "a command is required: " + names() + "; see bloomline --help");
    // CLI11 would say that an argument was not expected.
    if (argv[1][0] != '-' && Find(argv[1]) == nullptr) {
      throw CliError(kExitUsage, Printable(argv[1]) + ": no such command; there are " + names());
    }
    if (Find(argv[1]) != nullptr) context_ += std::string(" ") + argv[1];
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      PrintText(app_.help());
      return kExitDone;
    } catch (const CLI::CallForVersion& version) {
      PrintText(std::string(version.what()) + "\n");
      return kExitDone;
    } catch (const CLI::ArgumentMismatch& error) {
      // CLI11: "--fpr: 1 required P missing", "--fpr: At Most 1 required but received 2".
      const std::string text = error.what();
      const std::string option = text.substr(0, text.find(": "));
      throw CliError(kExitUsage, option + (text.ends_with("missing") ? ": needs a value" : ": may be given once only") +
                                     "; see " + context_ + " --help");
    } catch (const CLI::RequiredError& error) {
      // CLI11 looks for what is missing first: "FILTER is required" for `info --jsn file`.
      for (const std::string& argument : app_.remaining(/*recurse=*/true)) {
        if (argument.size() > 1 && argument[0] == '-' && argument != "--") {
          throw CliError(kExitUsage, Printable(argument) + ": no such option; see " + context_ + " --help");
        }
      }
      throw CliError(kExitUsage, std::string(error.what()) + "; see " + context_ + " --help");
    } catch (const CLI::ParseError& error) {
      throw CliError(kExitUsage, std::string(error.what()) + "; see " + context_ + " --help");
    }
    ForceTarget();
    const std::string command = app_.get_subcommands().front()->get_name();
    if (command != "targets") Must(TryChosenTarget());  // BLOOMLINE_TARGET may name what is not there
    Find(command)->Run(common_);
    return kExitDone;
  }

  void ForceTarget() const {
    if (common_.target.empty()) return;
    std::string name = common_.target;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    // To the library "best" means unforced, which would leave it to BLOOMLINE_TARGET.
    if (name == "best") name = SupportedTargets().front();
    if (!TryForceTarget(name).ok()) {
      std::string list = "best";
      for (const std::string& target : SupportedTargets()) list += ", " + target;
      ThrowUsage("--target", common_.target, "must be one that this program and this CPU have: " + list);
    }
  }

  Command* Find(std::string_view name) const {
    for (const auto& command : commands_) {
      if (name == command->name()) return command.get();
    }
    return nullptr;
  }

  int Fail(int exit_code, std::string_view message) const {
    std::string line = context_ + ": ";
    for (const char c : message) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
    return exit_code;
  }

  std::vector<std::unique_ptr<Command>> commands_ = AllCommands();
  CommonOptions common_;
  CLI::App app_;
  std::string context_ = "bloomline";  // what errors start with
};

}  // namespace

int RunProgram(int argc, char** argv) { return Program().Run(argc, argv); }

}  // namespace bloomline::cli
