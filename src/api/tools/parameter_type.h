// From the text of a parameter's value to the JSON its schema wants. In the markup of calls values
// are bare text: 5 may be the number or the string, and only the schema can tell.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// What a schema allows, reduced to what the form of a value depends on.
struct ParameterType {
  bool null = false;
  bool boolean = false;
  bool integer = false;
  bool number = false;
  bool object = false;
  bool array = false;
  bool string = false;

  struct Member {
    std::string text;  // as the model writes it
    std::string json;
  };
  std::vector<Member> members = {};  // of enum and const; empty when there is neither

  // No type at all: anything goes.
  bool is_open() const;

  // Every text stands for itself, so it can be sent while it comes.
  bool is_text() const;
};

// Reads type (a name or a list), nullable, enum, const, $ref ("#/..." into `root`), allOf (all must
// allow), anyOf and oneOf (one must allow). What it does not know allows anything.
ParameterType read_parameter_type(const boost::json::value& schema, const boost::json::value& root);

struct CoercedValue {
  std::string json;
  bool fits = true;  // false: no allowed type fits, and the text was kept as a string
};

// With several types the first fitting one of null, boolean, integer, number, object, array, string
// is meant, if the text is how that type is written: 03106 is no number where strings are allowed.
// One type alone is read with more tolerance. Objects and arrays may be written as in Python.
CoercedValue coerce_value(const ParameterType& type, std::string_view text);

}  // namespace sluice
