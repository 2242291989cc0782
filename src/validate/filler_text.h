// Plain sentences that say nothing: the text that facts are hidden in, and that prompts are made
// long with. The same seed makes the same text.
//
// Thread rule: one owner.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "base/result.h"
#include "validate/asked_server.h"

namespace sluice::validate {

class FillerText {
 public:
  // bytes_per_token: of the server's tokenizer on such text; see measure().
  FillerText(std::uint64_t seed, double bytes_per_token)
      : random_(seed), bytes_per_token_(bytes_per_token) {}

  // Asks the server how long its tokens are. Error corrupt_data: it does not count them.
  static Result<double> measure(AskedServer& server);

  // Whole sentences of about that many tokens.
  std::string tokens(std::int64_t count);
  // Four digits.
  std::string code();

 private:
  std::string sentence();
  const char* pick(const std::vector<const char*>& words) {
    return words[random_() % words.size()];
  }

  std::mt19937_64 random_;
  double bytes_per_token_;
};

}  // namespace sluice::validate
