// Typed reading of the fields of a JSON object, with the path of each for error messages.
//
// Rules shared by all dialects: null means absent; 512.0 is an integer; a string is never a number;
// fields nobody asked for are reported, not refused. The first error is kept and every later read
// goes on, so a parser reads straight down and asks once at the end.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.h"

namespace sluice {

// What reading one body found besides values. Thread rule: one owner.
class FieldReport {
 public:
  void fail(ApiErrorKind kind, std::string message, std::string param);
  bool failed() const { return error_.has_value(); }
  const ApiError& error() const { return *error_; }

  // Only the first few KiB of paths are kept: they end in a header of 1 KiB.
  void ignore(std::string path);
  std::vector<std::string> take_ignored() { return std::move(ignored_); }

 private:
  std::optional<ApiError> error_;
  std::vector<std::string> ignored_;
  std::size_t ignored_bytes_ = 0;
};

struct IntegerRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

struct NumberRange {
  double min = 0.0;
  double max = 0.0;
  bool min_open = false;  // the minimum itself is out of range
};

class JsonFields {
 public:
  // `path` is the path of the object itself; empty for the body. object and report must outlive
  // this.
  JsonFields(const boost::json::object& object, std::string path, FieldReport& report);

  // The value if present and not null. Counts as asked for.
  const boost::json::value* find(std::string_view key);
  bool has(std::string_view key) { return find(key) != nullptr; }

  std::optional<std::string> string(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, IntegerRange range);
  std::optional<double> number(std::string_view key, NumberRange range);
  const boost::json::array* array(std::string_view key);
  std::optional<JsonFields> object(std::string_view key);

  // A present field ends the request: unsupported_parameter, because of `reason`.
  void reject(std::string_view key, std::string_view reason);

  // Reports every field that was not asked for. Call when all others were read.
  void ignore_rest();

  std::string path_of(std::string_view key) const;
  const std::string& path() const { return path_; }
  FieldReport& report() { return *report_; }

 private:
  void fail_type(std::string_view key, std::string_view want, const boost::json::value& seen);

  const boost::json::object* object_;
  std::string path_;
  FieldReport* report_;
  std::vector<bool> asked_;  // by position in the object
};

// The name of a JSON value's type as a client would say it: "string", "number", ...
std::string_view json_type_name(const boost::json::value& value);

// The object that a request's body must be. Errors invalid_json, invalid_type.
ApiResult<boost::json::object> parse_json_object(std::string text);

// Lets `read` take the fields of a body. Returns the paths of those that it did not ask for, or the
// first error.
using ReadBody = std::function<void(JsonFields& body)>;
ApiResult<std::vector<std::string>> read_body(std::string text, const ReadBody& read);
ApiResult<std::vector<std::string>> read_body(const boost::json::object& object,
                                              const ReadBody& read);

// The value as an integer: 512 and 512.0, nothing else.
std::optional<std::int64_t> as_integer(const boost::json::value& value);

}  // namespace sluice
