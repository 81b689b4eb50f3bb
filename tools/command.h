// What a command of `bloomline` is. A new command is one file that defines a Make… function, declared here and listed
// in main.cc.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

namespace bloomline::cli {

// Options that every command has; declared and applied by main.cc.
struct CommonOptions {
  bool json = false;   // one JSON object on stdout and nothing else there
  std::string target;  // already forced when Run is called
};

class Command {
 public:
  virtual ~Command() = default;
  virtual const char* name() const = 0;
  virtual const char* summary() const = 0;   // one sentence for the list of commands
  virtual const char* epilogue() const = 0;  // at the bottom of its --help: notes and examples
  // Declares its own options. Numbers are taken as text and read in Run by numbers.h, whose messages name the option.
  virtual void Declare(CLI::App& app) = 0;
  // Does the work. Fails by CliError or by an Error of the library.
  virtual void Run(const CommonOptions& common) = 0;
};

std::unique_ptr<Command> MakeBuildCommand();
std::unique_ptr<Command> MakeQueryCommand();
std::unique_ptr<Command> MakeAddCommand();
std::unique_ptr<Command> MakeRemoveCommand();
std::unique_ptr<Command> MakeCountCommand();
std::unique_ptr<Command> MakeInfoCommand();
std::unique_ptr<Command> MakeMergeCommand();
std::unique_ptr<Command> MakeTargetsCommand();
std::unique_ptr<Command> MakeTopologyCommand();
std::unique_ptr<Command> MakeValidateCommand();
std::unique_ptr<Command> MakeFprCommand();
std::unique_ptr<Command> MakeTuneCommand();

}  // namespace bloomline::cli
