// Compiled grammars, kept for the next request with the same one: agents send the same schema with
// every turn.
//
// Thread rule: all methods from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/grammar_matcher.h"
#include "text/tokenizer.h"

namespace sluice {

// A grammar before its first token. Immutable; the tokenizer need not outlive it.
class CompiledGrammar {
 public:
  explicit CompiledGrammar(GrammarMatcher matcher) : matcher_(std::move(matcher)) {}

  // A matcher of its own for one sequence.
  Result<GrammarMatcher> start() const;

 private:
  mutable std::mutex mutex_;  // copying a matcher is not for two threads at once
  const GrammarMatcher matcher_;
};

class GrammarCache {
 public:
  static constexpr std::size_t kGrammarsMax = 64;
  static constexpr std::size_t kGrammarBytesMax = std::size_t{256} << 10;  // of one text

  // stop_ids end an answer, besides the tokenizer's eos_token. on_compiled, if any, hears how long
  // each text took that was compiled for a request, also in vain; from the thread that asked. The
  // tokenizer must outlive the cache.
  GrammarCache(const Tokenizer& tokenizer, std::vector<std::int32_t> stop_ids,
               std::function<void(double seconds)> on_compiled = {});

  // The tables that the first grammar of a tokenizer needs (a second for 250,000 tokens) and that
  // no request should wait for.
  Result<void> prepare();

  // Errors: invalid_argument (what is wrong in the text, or its size), resource_exhausted.
  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSource& source);

  const Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  struct Entry {
    std::string key;  // kind and text
    std::shared_ptr<const CompiledGrammar> grammar;
  };

  Result<GrammarMatcher> create(const GrammarSource& source) const;
  std::shared_ptr<const CompiledGrammar> find(const std::string& key);
  void keep(Entry entry);

  const Tokenizer& tokenizer_;
  const std::vector<std::int32_t> stop_ids_;
  const std::function<void(double seconds)> on_compiled_;
  std::mutex mutex_;
  std::list<Entry> entries_;                                                 // last used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;  // views into entries_
};

}  // namespace sluice
