#include "api/responses/custom_input.h"

#include "api/fields/json_text.h"
#include "api/tools/call_arguments.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::string_view kUsualBegin = R"({"input": ")";
// Size of the escape at the front of `text`; 0 when more of it must come first. Half of a surrogate
// pair waits for the other half.
std::size_t escape_size(std::string_view text) {
  if (text.size() < 2) {
    return 0;
  }
  if (text[1] != 'u') {
    return 2;
  }
  constexpr std::size_t kUnit = 6;
  if (text.size() < kUnit) {
    return 0;
  }
  const bool leading = (text[2] == 'd' || text[2] == 'D') &&
                       std::string_view("89abAB").find(text[3]) != std::string_view::npos;
  const std::size_t size = leading ? 2 * kUnit : kUnit;
  return text.size() < size ? 0 : size;
}

}  // namespace

std::string CustomInput::append(std::string_view arguments) {
  arguments_ += arguments;
  if (used_ == 0 && arguments_.starts_with(kUsualBegin)) {
    used_ = kUsualBegin.size();
  }
  return used_ == 0 ? std::string() : decode();
}

// Takes whole characters and escapes up to the quote that ends the string.
std::string CustomInput::decode() {
  std::size_t end = used_;
  while (!closed_ && end < arguments_.size()) {
    if (arguments_[end] == '"') {
      closed_ = true;
    } else if (arguments_[end] == '\\') {
      const std::size_t size = escape_size(std::string_view(arguments_).substr(end));
      if (size == 0) {
        break;
      }
      end += size;
    } else {
      ++end;
    }
  }
  const std::string quoted = '"' + arguments_.substr(used_, end - used_) + '"';
  const auto text = parse_json(quoted);
  if (!text || !text->is_string()) {
    return {};  // ends inside a character: the next piece completes it
  }
  used_ = end;
  return std::string(text->get_string());
}

std::string CustomInput::finish() {
  if (used_ != 0) {
    return {};
  }
  const json::object arguments = tool_call_arguments(json::value(json::string(arguments_)));
  const json::value* input = arguments.if_contains("input");
  if (input == nullptr) {
    return arguments_ == "{}" ? std::string() : arguments_;
  }
  return input->is_string() ? std::string(input->get_string()) : to_json(*input);
}

}  // namespace sluice
