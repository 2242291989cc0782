#include "api/tools/parameter_type.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <optional>

#include "api/answer/json_literal.h"
#include "api/fields/json_text.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr int kSchemaDepthMax = 32;

struct TypeName {
  std::string_view name;
  bool ParameterType::* allowed;
};

constexpr std::array<TypeName, 7> kTypes{{{"null", &ParameterType::null},
                                          {"boolean", &ParameterType::boolean},
                                          {"integer", &ParameterType::integer},
                                          {"number", &ParameterType::number},
                                          {"object", &ParameterType::object},
                                          {"array", &ParameterType::array},
                                          {"string", &ParameterType::string}}};

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

bool has_type(const ParameterType& type) {
  return std::ranges::any_of(kTypes, [&](const TypeName& known) { return type.*known.allowed; });
}

// What both allow. Nothing in common: the first, for a schema that allows nothing cannot be meant.
ParameterType both(const ParameterType& first, const ParameterType& second) {
  ParameterType common;
  common.members = first.members.empty() ? second.members : first.members;
  if (!has_type(first) || !has_type(second)) {
    const ParameterType& typed = has_type(first) ? first : second;
    for (const TypeName& known : kTypes) {
      common.*known.allowed = typed.*known.allowed;
    }
    return common;
  }
  for (const TypeName& known : kTypes) {
    common.*known.allowed = first.*known.allowed && second.*known.allowed;
  }
  common.integer =
      common.integer || (first.integer && second.number) || (first.number && second.integer);
  return has_type(common) ? common : first;
}

// What one of them allows. One that allows anything makes all of it open.
ParameterType either(const std::vector<ParameterType>& types) {
  ParameterType all;
  for (const ParameterType& type : types) {
    if (type.is_open()) {
      return {};
    }
    for (const TypeName& known : kTypes) {
      all.*known.allowed = all.*known.allowed || type.*known.allowed;
    }
    all.members.insert(all.members.end(), type.members.begin(), type.members.end());
  }
  return all;
}

ParameterType::Member make_member(const json::value& value) {
  const std::string text = to_json(value);
  if (value.is_string()) {
    return {std::string(view(value.get_string())), text};
  }
  return {text, respace_json(text).value_or(text)};
}

void allow_type_of(const json::value& value, ParameterType& type) {
  switch (value.kind()) {
    case json::kind::null:
      type.null = true;
      break;
    case json::kind::bool_:
      type.boolean = true;
      break;
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      type.number = true;
      break;
    case json::kind::string:
      type.string = true;
      break;
    case json::kind::array:
      type.array = true;
      break;
    case json::kind::object:
      type.object = true;
      break;
  }
}

class SchemaReader {
 public:
  explicit SchemaReader(const json::value& root) : root_(root) {}

  ParameterType read(const json::value& schema, int depth) const {
    if (!schema.is_object() || depth > kSchemaDepthMax) {
      return {};
    }
    const json::object& object = schema.get_object();
    ParameterType type = own_type(object);
    if (const json::value* target = find_reference(object)) {
      type = both(type, read(*target, depth + 1));
    }
    if (const json::array* parts = list(object, "allOf")) {
      for (const json::value& part : *parts) {
        type = both(type, read(part, depth + 1));
      }
    }
    for (const std::string_view key : {"anyOf", "oneOf"}) {
      if (const json::array* parts = list(object, key)) {
        std::vector<ParameterType> choices;
        for (const json::value& part : *parts) {
          choices.push_back(read(part, depth + 1));
        }
        type = both(type, either(choices));
      }
    }
    const json::value* nullable = object.if_contains("nullable");
    if (nullable != nullptr && nullable->is_bool() && nullable->get_bool() && !type.is_open()) {
      type.null = true;
    }
    return type;
  }

 private:
  static const json::array* list(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(json::string_view(key.data(), key.size()));
    return value != nullptr ? value->if_array() : nullptr;
  }

  static void allow_named(const json::value& name, ParameterType& type) {
    for (const TypeName& known : kTypes) {
      if (name.is_string() && view(name.get_string()) == known.name) {
        type.*known.allowed = true;
      }
    }
  }

  static ParameterType own_type(const json::object& object) {
    ParameterType type;
    if (const json::value* names = object.if_contains("type")) {
      allow_named(*names, type);
      if (const json::array* several = names->if_array()) {
        for (const json::value& name : *several) {
          allow_named(name, type);
        }
      }
    }
    const bool typed = has_type(type);
    const auto add = [&](const json::value& value) {
      type.members.push_back(make_member(value));
      if (!typed) {
        allow_type_of(value, type);
      }
    };
    if (const json::array* members = list(object, "enum")) {
      std::ranges::for_each(*members, add);
    }
    if (const json::value* constant = object.if_contains("const")) {
      add(*constant);
    }
    return type;
  }

  // The target of "$ref": "#/a/b" (a JSON Pointer, RFC 6901) inside the root schema.
  const json::value* find_reference(const json::object& object) const {
    const json::value* reference = object.if_contains("$ref");
    if (reference == nullptr || !reference->is_string()) {
      return nullptr;
    }
    std::string_view path = view(reference->get_string());
    if (!path.starts_with('#')) {
      return nullptr;
    }
    path.remove_prefix(1);
    if (path.empty()) {
      return &root_;
    }
    boost::system::error_code error;
    return root_.find_pointer(json::string_view(path.data(), path.size()), error);
  }

  const json::value& root_;
};

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return out;
}

// Any sign and leading zeros, also 5.0; the digits stay, however many.
std::optional<std::string> lenient_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  if (const std::size_t point = text.find('.'); point != std::string_view::npos) {
    const std::string_view fraction = text.substr(point + 1);
    if (fraction.empty() || fraction.find_first_not_of('0') != std::string_view::npos) {
      return std::nullopt;
    }
    text = text.substr(0, point);
  }
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t first = std::min(text.find_first_not_of('0'), text.size() - 1);
  return (negative ? "-" : "") + std::string(text.substr(first));
}

std::optional<std::string> container(std::string_view text, char open) {
  if (!text.starts_with(open)) {
    return std::nullopt;
  }
  auto value = respace_json(text);
  return value ? value : json_of_python(text);
}

// `strict`: only as the type is written, not everything that could be meant.
std::optional<std::string> as_type(bool ParameterType::* type, std::string_view text, bool strict) {
  if (type == &ParameterType::null) {
    return text == "null" || text == "None" ? std::optional<std::string>("null") : std::nullopt;
  }
  if (type == &ParameterType::boolean) {
    const std::string word = lower(text);
    const bool known = word == "true" || word == "false";
    const bool written = text == word || text == "True" || text == "False";
    return known && (written || !strict) ? std::optional(word) : std::nullopt;
  }
  if (type == &ParameterType::integer) {
    if (strict && !is_json_integer(text)) {
      return std::nullopt;
    }
    return lenient_integer(text);
  }
  if (type == &ParameterType::number) {
    return is_json_number(text) ? std::optional(std::string(text)) : std::nullopt;
  }
  if (type == &ParameterType::object) {
    return container(text, '{');
  }
  return type == &ParameterType::array ? container(text, '[') : std::nullopt;
}

}  // namespace

bool ParameterType::is_open() const {
  return members.empty() && !has_type(*this);
}

bool ParameterType::is_text() const {
  const bool others = null || boolean || integer || number || object || array;
  return string && !others && std::ranges::all_of(members, [](const Member& member) {
           return member.json == json_string(member.text);
         });
}

ParameterType read_parameter_type(const json::value& schema, const json::value& root) {
  return SchemaReader(root).read(schema, 0);
}

CoercedValue coerce_value(const ParameterType& type, std::string_view text) {
  const auto member = std::ranges::find(type.members, text, &ParameterType::Member::text);
  if (member != type.members.end()) {
    return {member->json};
  }
  if (type.is_open()) {
    const std::string_view inside = trim(text);
    const bool may_be = inside.starts_with('{') || inside.starts_with('[');
    auto value = may_be ? respace_json(inside) : std::nullopt;
    return {value ? std::move(*value) : json_string(text)};
  }
  const auto types =
      std::ranges::count_if(kTypes, [&](const TypeName& known) { return type.*known.allowed; });
  // White space around is part of a string, and of nothing else.
  const std::string_view inside = type.string ? text : trim(text);
  for (const TypeName& known : kTypes) {
    if (!(type.*known.allowed) || known.allowed == &ParameterType::string) {
      continue;
    }
    if (auto value = as_type(known.allowed, inside, types > 1)) {
      return {std::move(*value)};
    }
  }
  return {json_string(text), type.string};
}

}  // namespace sluice
