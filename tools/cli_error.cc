#include "tools/cli_error.h"

#include <cerrno>
#include <cstring>

namespace bloomline::cli {
namespace {

bool IsResource(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG || error_number == ENOMEM ||
         error_number == EMFILE || error_number == ENFILE;
}

}  // namespace

std::string Printable(std::string_view value) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  bool quote = value.empty();
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      quote = quote || c == ' ';
      out += c;
    }
  }
  return quote ? "'" + out + "'" : out;
}

void ThrowUsage(std::string_view option, std::string_view value, std::string_view problem) {
  throw CliError(kExitUsage, std::string(option) + " " + Printable(value) + ": " + std::string(problem));
}

void ThrowSystem(const std::string& what, int error_number) {
  throw CliError(IsResource(error_number) ? kExitResources : kExitInput, what + ": " + std::strerror(error_number));
}

int ExitCodeFor(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
      return kExitUsage;
    case ErrorCode::kOutOfMemory:
      return kExitResources;
    case ErrorCode::kIo:
      return IsResource(error.os_error()) ? kExitResources : kExitInput;
    case ErrorCode::kMismatch:
    case ErrorCode::kCorrupt:
    case ErrorCode::kUnsupported:
      return kExitInput;
  }
  return kExitInput;
}

void ThrowLibrary(const Error& error, std::string_view context) {
  std::string message(context);
  if (!message.empty()) message += ": ";
  throw CliError(ExitCodeFor(error), message + error.what());
}

}  // namespace bloomline::cli
