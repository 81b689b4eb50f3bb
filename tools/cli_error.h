// How a command fails: exit codes, and the one place that maps the library's errors to them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "bloomline/error.h"

namespace bloomline::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitUsage = 2;  // bad arguments
inline constexpr int kExitInput = 3;  // a file or its contents: missing, unreadable, corrupt, mismatched, unwritable
inline constexpr int kExitResources = 4;  // out of memory or descriptors, disk full, file size limit

// Ends a command. main() prints "bloomline <command>: <message>" as one line on stderr and exits with the code.
class CliError : public std::runtime_error {
 public:
  CliError(int exit_code, const std::string& message) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

// The reader of our output went away (`| head`): ends the program without a message.
class BrokenPipe : public std::runtime_error {
 public:
  BrokenPipe() : std::runtime_error("broken pipe") {}
};

// Exit code 2: "--fpr 1.5: must be above 0 and below 1".
[[noreturn]] void ThrowUsage(std::string_view option, std::string_view value, std::string_view problem);

// Exit code 3, or 4 where `error_number` (an errno) says that space or memory ran out: "<what>: <strerror>".
[[noreturn]] void ThrowSystem(const std::string& what, int error_number);

// The exit code for an error of the library.
int ExitCodeFor(const Error& error);
[[noreturn]] void ThrowLibrary(const Error& error, std::string_view context);

// The value of a Result; its error, put behind `context` and mapped to an exit code, where it has none.
template <class T>
T Must(Result<T> result, std::string_view context = {}) {
  if (!result.ok()) ThrowLibrary(result.error(), context);
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

// `value` as it can stand in a one-line message: quoted where it is empty or has blanks, control bytes escaped.
std::string Printable(std::string_view value);

}  // namespace bloomline::cli
