// When no memory is left: what functions that must not throw return then, and what the others throw.
//
// Below the public functions code allocates as it likes. Each public function that returns a Result or Status ends in
//
//   } catch (...) {
//     return detail::CaughtError();
//   }
//
// so that std::bad_alloc never leaves the library, wherever it comes from: the message of another error, too.
#pragma once

#include <utility>

#include "bloomline/error.h"

namespace bloomline::detail {

// Made when the library is loaded; copies of it take no memory.
const Error& NoMemory() noexcept;

// Only inside a handler: the Error for the exception in flight. That of an Error is itself; std::bad_alloc,
// std::length_error and a thread that the system refuses for want of resources give NoMemory(). Others are no failure
// that the library knows of and go on as they are.
Error CaughtError();

// Returns body(), for public functions that throw and have no twin.
template <class Body>
auto OrThrowError(const Body& body) {
  try {
    return body();
  } catch (...) {
    ThrowError(CaughtError());
  }
}

}  // namespace bloomline::detail
