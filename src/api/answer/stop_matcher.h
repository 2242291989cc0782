// Finds the first of several stop texts in a stream of text, wherever the stream is cut.
//
// Text that may still become a stop text is held back; what was let out is never part of a match.
// The match that ends first wins; of several that end together, the longest. So the result does not
// depend on how the text was split.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

class StopMatcher {
 public:
  // Empty stop texts are dropped. keep_match: the matched text is let out too.
  StopMatcher(std::vector<std::string> stops, bool keep_match);

  // The text that can be let out now. After a match nothing more comes out.
  std::string append(std::string_view text);

  // The rest, when the text ends without a match.
  std::string finish();

  const std::optional<std::string>& matched() const { return matched_; }

 private:
  std::size_t held_size() const;

  std::vector<std::string> stops_;
  bool keep_match_;
  std::string buffer_;  // let out so far: nothing of it
  std::optional<std::string> matched_;
};

// Length of the longest end of `text` that is a beginning of `word`, but not all of it.
std::size_t partial_match_size(std::string_view text, std::string_view word);

}  // namespace sluice
