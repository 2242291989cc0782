// The input of a custom tool out of the arguments of the function that stands for it: from
// {"input": "text"} in pieces to the text in pieces.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

class CustomInput {
 public:
  // The text that became complete. Never half a character.
  std::string append(std::string_view arguments);

  // The rest, when the call ends: of arguments in another form, all that can be read.
  std::string finish();

 private:
  std::string decode();

  std::string arguments_;  // so far
  std::size_t used_ = 0;   // of them; 0: not yet known to have the usual form
  bool closed_ = false;    // the string has ended
};

}  // namespace sluice
