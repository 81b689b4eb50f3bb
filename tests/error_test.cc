// Error and Result: names, values, and what becomes of other libraries' exceptions.
#include "bloomline/error.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/out_of_memory.h"

namespace bloomline {
namespace {

TEST(Error, CodesHaveNames) {
  const std::vector<std::pair<ErrorCode, std::string>> names = {{ErrorCode::kInvalidArgument, "invalid argument"},
                                                                {ErrorCode::kMismatch, "mismatch"},
                                                                {ErrorCode::kOutOfMemory, "out of memory"},
                                                                {ErrorCode::kIo, "input/output"},
                                                                {ErrorCode::kCorrupt, "corrupt"},
                                                                {ErrorCode::kUnsupported, "unsupported"}};
  for (const auto& [code, name] : names) EXPECT_EQ(ErrorCodeName(code), name);
  EXPECT_EQ(ErrorCodeName(static_cast<ErrorCode>(0)), std::string("unknown"));
}

TEST(Error, IsCopiedAndMovedAsAWhole) {
  const Error error(ErrorCode::kIo, "cannot open", 2);
  Error other = error;
  EXPECT_EQ(other.code(), ErrorCode::kIo);
  EXPECT_EQ(other.os_error(), 2);
  EXPECT_STREQ(other.what(), "cannot open");
  other = Error(ErrorCode::kCorrupt, "is damaged");
  EXPECT_EQ(other.code(), ErrorCode::kCorrupt);
  EXPECT_EQ(other.os_error(), 0);
  other = error;
  const Error moved = std::move(other);
  EXPECT_EQ(moved.os_error(), 2);
  EXPECT_STREQ(moved.what(), "cannot open");
}

TEST(Error, ResultsThrowWhatTheyHold) {
  const Result<int> good = 3;
  EXPECT_EQ(*good, 3);
  const Result<int> bad = Error(ErrorCode::kMismatch, "differ");
  EXPECT_FALSE(bad);
  EXPECT_THROW((void)bad.value(), Error);
  const Status done;
  EXPECT_NO_THROW(done.value());
  const Status failed = Error(ErrorCode::kUnsupported, "newer");
  try {
    failed.value();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "newer");
  }
}

// What CaughtError makes of an exception.
template <class Exception>
Error Caught(const Exception& exception) {
  try {
    throw exception;
  } catch (...) {
    return detail::CaughtError();
  }
}

TEST(Error, ExceptionsForWantOfResourcesAreNoMemory) {
  EXPECT_EQ(Caught(std::bad_alloc()).code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(Caught(std::length_error("vector")).code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(Caught(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))).code(),
            ErrorCode::kOutOfMemory);
  EXPECT_EQ(Caught(std::system_error(std::make_error_code(std::errc::not_enough_memory))).code(),
            ErrorCode::kOutOfMemory);
  EXPECT_EQ(Caught(Error(ErrorCode::kMismatch, "differ")).code(), ErrorCode::kMismatch);
  // Not the library's to hide.
  EXPECT_THROW(Caught(std::system_error(std::make_error_code(std::errc::permission_denied))), std::system_error);
  EXPECT_THROW(Caught(std::logic_error("a bug")), std::logic_error);
}

}  // namespace
}  // namespace bloomline
