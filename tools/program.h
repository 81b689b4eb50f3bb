// The command line as a function: parses, runs one command, turns what it throws into one line and an exit code.
#pragma once

namespace bloomline::cli {

// Exit codes: tools/cli_error.h. May be called again; writes to standard output and standard error.
int RunProgram(int argc, char** argv);

}  // namespace bloomline::cli
