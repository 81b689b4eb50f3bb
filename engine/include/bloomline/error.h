// Errors: one exception type for code that throws, `Result<T>` for code that must not.
//
// Everything that throws has a twin whose name starts with Try (Filter::Load, Filter::TryLoad; the
// constructor's twin is Filter::Create) and which returns a Result, so that consumers built with
// -fno-exceptions can use all of the library.
//
// Where memory runs out in such a function, whatever it was wanted for (the message of another error, too), the Error
// is kOutOfMemory, what the function made is freed, and the objects and files that it was called on are as they were.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "bloomline/export.h"

namespace bloomline {

enum class ErrorCode : int {
  kInvalidArgument = 1,  // an argument is outside its allowed range
  kMismatch = 2,         // two filters differ in layout, size, k, seed, hash or key kind
  kOutOfMemory = 3,      // the memory asked for is not to be had
  kIo = 4,               // the operating system refused to open, read, write, sync or rename a file
  kCorrupt = 5,          // a snapshot is cut, changed, or was never one
  kUnsupported = 6,      // a well-formed snapshot of a newer version, or of another kind of object
};

// The name of a code for logs, e.g. "invalid argument".
BLOOMLINE_API const char* ErrorCodeName(ErrorCode code) noexcept;

// What went wrong. The message names the argument or the file, its value and what is allowed.
class BLOOMLINE_API Error : public std::runtime_error {
 public:
  // os_error: the errno behind a kIo error, 0 elsewhere.
  Error(ErrorCode code, const std::string& message, int os_error = 0);
  Error(const Error& other);
  Error(Error&& other) noexcept;
  Error& operator=(const Error& other);
  Error& operator=(Error&& other) noexcept;
  ~Error() override;
  ErrorCode code() const noexcept { return code_; }
  int os_error() const noexcept { return os_error_; }

 private:
  ErrorCode code_;
  int os_error_;
};

namespace detail {
// Throws `error`; ends the program where the library was built without exceptions.
[[noreturn]] BLOOMLINE_API void ThrowError(const Error& error);
}  // namespace detail

// A value or an Error. `value()` on an error throws that error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  T& value() & {
    RequireOk();
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    RequireOk();
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    RequireOk();
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Only where ok() is false.
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  void RequireOk() const {
    if (!ok()) detail::ThrowError(error());
  }
  std::variant<T, Error> state_;
};

// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  void value() const {
    if (error_) detail::ThrowError(*error_);
  }
  // Only where ok() is false.
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace bloomline
