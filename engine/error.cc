#include "bloomline/error.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

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

// Here, not in the header: one vtable and one type_info, so that an Error thrown by the shared library is caught as
// such.
Error::~Error() = default;

namespace detail {

void ThrowError(Error error) {
#if defined(__cpp_exceptions)
  throw Error(std::move(error));
#else
  std::fprintf(stderr, "bloomline: %s: %s\n", ErrorCodeName(error.code()), error.what());
  std::abort();
#endif
}

}  // namespace detail
}  // namespace bloomline
