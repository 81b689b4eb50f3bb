#include "bloomline/error.h"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "engine/out_of_memory.h"

namespace bloomline {

const char* ErrorCodeName(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kMismatch:
      return "mismatch";
    case ErrorCode::kOutOfMemory:
      return "out of memory";
    case ErrorCode::kIo:
      return "input/output";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kUnsupported:
      return "unsupported";
  }
  return "unknown";
}

// Not in the header: see BLOOMLINE_INLINE.
Error::Error(ErrorCode code, const std::string& message, int os_error)
    : std::runtime_error(message), code_(code), os_error_(os_error) {}
Error::Error(const Error& other) = default;
Error::Error(Error&& other) noexcept = default;
Error& Error::operator=(const Error& other) = default;
Error& Error::operator=(Error&& other) noexcept = default;

// Here, not in the header: one vtable and one type_info, so that an Error thrown by the shared library is caught as
// such.
Error::~Error() = default;

namespace detail {

void ThrowError(const Error& error) {
#if defined(__cpp_exceptions)
  throw error;
#else
  std::fprintf(stderr, "bloomline: %s: %s\n", ErrorCodeName(error.code()), error.what());
  std::abort();
#endif
}

const Error& NoMemory() noexcept {
  static const auto* const error =  // never destroyed: threads may still need it at exit
                                    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): when the library is loaded,
                                    // nobody could handle it
      new Error(ErrorCode::kOutOfMemory, "no memory is left for what was asked for");
  return *error;
}

namespace {
// While there is memory.
[[maybe_unused]] const Error& made_at_load = NoMemory();
}  // namespace

Error CaughtError() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  } catch (const std::length_error&) {
    return NoMemory();
  } catch (const std::system_error& error) {
    const std::error_code& code = error.code();
    if (code != std::errc::resource_unavailable_try_again && code != std::errc::not_enough_memory) throw;
    return NoMemory();
  }
}

}  // namespace detail
}  // namespace bloomline
