// For tests: whether a result is the error it should be.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::test {

// "" if the result is an Error of this code whose message holds all parts, else what is wrong.
template <typename T>
std::string error_mismatch(const Result<T>& result, ErrorCode code,
                           std::initializer_list<std::string_view> parts) {
  if (result.has_value()) {
    return "no error, expected one about " + std::string(*parts.begin());
  }
  const std::string& message = result.error().message;
  if (result.error().code != code) {
    return "the code is " + std::string(to_string(result.error().code)) + ": " + message;
  }
  for (const std::string_view part : parts) {
    if (message.find(part) == std::string::npos) {
      return "\"" + std::string(part) + "\" is not in: " + message;
    }
  }
  return {};
}

}  // namespace sluice::test

// EXPECT_ERROR(result, code, {"part of the message", ...})
#define EXPECT_ERROR(...) EXPECT_EQ(::sluice::test::error_mismatch(__VA_ARGS__), "")
