#include "api/answer/call_markup.h"

#include <algorithm>
#include <initializer_list>

namespace sluice {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kBlanks = " \t";
constexpr std::size_t kTagNameBytesMax = 512;  // with the blanks around it

Match more_unless_end(const Lookahead& ahead) {
  return ahead.at_end ? Match::no : Match::more;
}

Match any_of(std::initializer_list<Match> matches) {
  return std::max(matches);  // yes wins over more, more over no
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(kBlanks, at), text.size());
}

std::string_view trim_blanks(std::string_view text) {
  const std::size_t begin = skip_blanks(text, 0);
  const std::size_t last = text.find_last_not_of(kBlanks);
  return last == std::string_view::npos ? std::string_view() : text.substr(begin, last + 1 - begin);
}

}  // namespace

Lookahead Lookahead::after_space() const {
  return after(std::min(text.find_first_not_of(kSpace), text.size()));
}

Match match_tag(const Lookahead& ahead, std::string_view tag) {
  if (ahead.text.starts_with(tag)) {
    return Match::yes;
  }
  return tag.starts_with(ahead.text) ? more_unless_end(ahead) : Match::no;
}

NamedTag match_named_tag(const Lookahead& ahead, std::string_view word) {
  NamedTag tag;
  tag.match = match_tag(ahead, word);
  if (tag.match != Match::yes) {
    return tag;
  }
  const std::string_view text = ahead.text;
  const std::size_t equals =
      skip_blanks(text.substr(0, word.size() + kTagNameBytesMax), word.size());
  if (equals == text.size()) {
    tag.match = more_unless_end(ahead);
    return tag;
  }
  if (text[equals] != '=') {
    tag.match = Match::no;
    return tag;
  }
  tag.head_size = equals + 1;
  const std::string_view window = text.substr(tag.head_size, kTagNameBytesMax);
  const std::size_t stop = window.find_first_of("\r\n<>");
  if (stop == std::string_view::npos && window.size() < kTagNameBytesMax) {
    tag.match = more_unless_end(ahead);
    return tag;
  }
  tag.match = Match::no;
  if (stop != std::string_view::npos && window[stop] == '>') {
    tag.name = trim_blanks(window.substr(0, stop));
    tag.size = tag.head_size + stop + 1;
    if (!tag.name.empty() && tag.name.find_first_of(kBlanks) == std::string_view::npos) {
      tag.match = Match::yes;
    }
  }
  return tag;
}

Match match_declared_function(const Lookahead& ahead, const ToolSet& tools) {
  const NamedTag tag = match_named_tag(ahead, kFunctionOpen);
  const bool undeclared = tag.match == Match::yes && tools.find(tag.name) == nullptr;
  return undeclared ? Match::no : tag.match;
}

Match closes_parameter(const Lookahead& ahead, const ToolSet& tools) {
  const Lookahead next = ahead.after_space();
  if (next.text.empty()) {
    return next.at_end ? Match::yes : Match::more;
  }
  Match function = match_tag(next, kFunctionClose);
  if (function == Match::yes) {
    function = closes_function(next.after(kFunctionClose.size()), tools);
  }
  NamedTag parameter = match_named_tag(next, kParameterOpen);
  if (parameter.head_size > 0) {
    parameter.match = Match::yes;
  }
  return any_of(
      {function, parameter.match, match_tag(next, kCallClose), match_tag(next, kCallOpen)});
}

Match closes_function(const Lookahead& ahead, const ToolSet& tools) {
  const Lookahead next = ahead.after_space();
  if (next.text.empty()) {
    return next.at_end ? Match::yes : Match::more;
  }
  return any_of({match_tag(next, kCallClose), match_tag(next, kCallOpen),
                 match_declared_function(next, tools)});
}

Match closes_call(const Lookahead& ahead) {
  const Lookahead next = ahead.after_space();
  if (next.text.empty()) {
    return next.at_end ? Match::yes : Match::more;
  }
  return match_tag(next, kCallOpen);
}

}  // namespace sluice
