// One reader for both notations: what Python adds is allowed where `python_` says so.
#include "api/answer/json_literal.h"

#include <array>
#include <charconv>
#include <cstdint>

namespace sluice {
namespace {

constexpr int kDepthMax = 200;
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kColon = ": ";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t digits_end(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) {
    ++at;
  }
  return at;
}

void append_escape(std::string& out, unsigned int code) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) {
    out += kHex[(code >> static_cast<unsigned>(shift)) & 0xFU];
  }
}

// As JSON: the character itself in UTF-16 escapes.
void append_character(std::string& out, std::uint32_t code) {
  constexpr std::uint32_t kFirstPair = 0x10000;
  if (code < 0x80) {
    append_json_escaped(out, std::string(1, static_cast<char>(code)));
  } else if (code < kFirstPair) {
    append_escape(out, code);
  } else {
    append_escape(out, 0xD800 + ((code - kFirstPair) >> 10U));
    append_escape(out, 0xDC00 + ((code - kFirstPair) & 0x3FFU));
  }
}

class LiteralReader {
 public:
  LiteralReader(std::string_view text, bool python) : text_(text), python_(python) {}

  std::optional<std::string> read() {
    const bool valid = value(0);
    skip_space();
    return valid && at_ == text_.size() ? std::optional(std::move(out_)) : std::nullopt;
  }

  // Keeps the members of the outermost object apart.
  std::optional<JsonMembers> read_members() {
    JsonMembers members;
    members_ = &members;
    skip_space();
    const bool object = at_ < text_.size() && text_[at_] == '{';
    return object && read() ? std::optional(std::move(members)) : std::nullopt;
  }

 private:
  bool value(int depth) {
    skip_space();
    if (at_ == text_.size() || depth > kDepthMax) {
      return false;
    }
    switch (text_[at_]) {
      case '{':
        return items('}', "{", "}", true, depth);
      case '[':
        return items(']', "[", "]", false, depth);
      case '(':
        return python_ && items(')', "[", "]", false, depth);
      case '"':
        return python_ ? python_string('"') : json_text();
      case '\'':
        return python_ && python_string('\'');
      default:
        return word();
    }
  }

  bool items(char close, std::string_view open_out, std::string_view close_out, bool keyed,
             int depth) {
    ++at_;
    out_ += open_out;
    for (bool first = true;; first = false) {
      skip_space();
      if ((first || python_) && take(close)) {
        break;
      }
      out_ += first ? "" : ", ";
      const std::size_t key_begin = out_.size();
      if (keyed && !key(depth)) {
        return false;
      }
      const std::size_t value_begin = out_.size();
      if (!value(depth + 1)) {
        return false;
      }
      if (members_ != nullptr && depth == 0) {
        members_->emplace_back(out_.substr(key_begin, value_begin - key_begin - kColon.size()),
                               out_.substr(value_begin));
      }
      skip_space();
      if (take(close)) {
        break;
      }
      if (!take(',')) {
        return false;
      }
    }
    out_ += close_out;
    return true;
  }

  bool key(int depth) {
    const std::size_t begin = out_.size();
    if (!value(depth + 1)) {
      return false;
    }
    const char first = out_[begin];
    if (first != '"') {  // 1 and None are keys in Python
      if (!python_ || first == '{' || first == '[') {
        return false;
      }
      out_.insert(begin, 1, '"');
      out_ += '"';
    }
    skip_space();
    out_ += kColon;
    return take(':');
  }

  // Copied as it is.
  bool json_text() {
    const std::size_t begin = at_++;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        out_ += text_.substr(begin, at_ - begin);
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) {
        return false;
      }
      if (c == '\\' && !json_escape()) {
        return false;
      }
    }
    return false;
  }

  bool json_escape() {
    ++at_;
    if (at_ == text_.size()) {
      return false;
    }
    if (text_[at_] != 'u') {
      return std::string_view("\"\\/bfnrt").contains(text_[at_]);
    }
    const auto code = hex(at_ + 1, 4);
    at_ += 4;
    return code.has_value();
  }

  bool python_string(char quote) {
    ++at_;
    out_ += '"';
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == quote) {
        out_ += '"';
        return true;
      }
      if (c != '\\') {
        append_json_escaped(out_, std::string_view(&c, 1));
      } else if (!python_escape()) {
        return false;
      }
    }
    return false;
  }

  bool python_escape() {
    if (at_ == text_.size()) {
      return false;
    }
    const char c = text_[at_++];
    constexpr std::string_view kNames = "nrtbfav0\\'\"";
    constexpr std::string_view kMeanings("\n\r\t\b\f\a\v\0\\'\"", 11);
    if (const std::size_t known = kNames.find(c); known != std::string_view::npos) {
      append_json_escaped(out_, kMeanings.substr(known, 1));
      return true;
    }
    if (c == '\n') {
      return true;  // a continued line
    }
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {
      append_json_escaped(out_, text_.substr(at_ - 2, 2));
      return true;
    }
    const auto code = hex(at_, digits);
    if (!code || *code > 0x10FFFF) {
      return false;
    }
    at_ += digits;
    append_character(out_, *code);
    return true;
  }

  std::optional<std::uint32_t> hex(std::size_t at, std::size_t digits) const {
    const std::string_view part = text_.substr(std::min(at, text_.size()), digits);
    std::uint32_t code = 0;
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), code, 16);
    const bool whole =
        part.size() == digits && failure == std::errc() && end == part.data() + digits;
    return whole ? std::optional(code) : std::nullopt;
  }

  // A number or a name.
  bool word() {
    const std::size_t end = std::min(text_.find_first_of(" \t\r\n,:]})", at_), text_.size());
    const std::string_view found = text_.substr(at_, end - at_);
    at_ = end;
    struct Name {
      std::string_view text;
      std::string_view json;
      bool python;
    };
    constexpr std::array<Name, 6> kNames{{{"true", "true", false},
                                          {"false", "false", false},
                                          {"null", "null", false},
                                          {"True", "true", true},
                                          {"False", "false", true},
                                          {"None", "null", true}}};
    for (const Name& name : kNames) {
      if (found == name.text && (python_ || !name.python)) {
        out_ += name.json;
        return true;
      }
    }
    if (!is_json_number(found)) {
      return false;
    }
    out_ += found;
    return true;
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size()); }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) {
      return false;
    }
    ++at_;
    return true;
  }

  std::string_view text_;
  bool python_;
  std::size_t at_ = 0;
  std::string out_;
  JsonMembers* members_ = nullptr;
};

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          append_escape(out, static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  append_json_escaped(out, text);
  out += '"';
  return out;
}

std::optional<std::string> respace_json(std::string_view text) {
  return LiteralReader(text, false).read();
}

std::optional<JsonMembers> read_json_members(std::string_view text) {
  return LiteralReader(text, false).read_members();
}

std::optional<std::string> json_of_python(std::string_view text) {
  return LiteralReader(text, true).read();
}

bool is_json_integer(std::string_view text) {
  if (text.starts_with('-')) {
    text.remove_prefix(1);
  }
  const bool leading_zero = text.size() > 1 && text.front() == '0';
  return !text.empty() && !leading_zero && digits_end(text, 0) == text.size();
}

bool is_json_number(std::string_view text) {
  std::size_t at = std::min(text.find_first_of(".eE"), text.size());
  if (!is_json_integer(text.substr(0, at))) {
    return false;
  }
  if (at < text.size() && text[at] == '.') {
    const std::size_t end = digits_end(text, at + 1);
    if (end == at + 1) {
      return false;
    }
    at = end;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    at += at < text.size() && (text[at] == '+' || text[at] == '-') ? 1 : 0;
    const std::size_t end = digits_end(text, at);
    if (end == at) {
      return false;
    }
    at = end;
  }
  return at == text.size();
}

}  // namespace sluice
