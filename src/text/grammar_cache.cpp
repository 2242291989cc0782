#include "text/grammar_cache.h"

#include <chrono>

namespace sluice {

Result<GrammarMatcher> CompiledGrammar::start() const {
  const std::lock_guard lock(mutex_);
  return matcher_.clone();
}

GrammarCache::GrammarCache(const Tokenizer& tokenizer, std::vector<std::int32_t> stop_ids,
                           std::function<void(double seconds)> on_compiled)
    : tokenizer_(tokenizer), stop_ids_(std::move(stop_ids)), on_compiled_(std::move(on_compiled)) {}

Result<void> GrammarCache::prepare() {
  SLUICE_TRY(create({.kind = GrammarKind::regex, .text = "a"}));
  return {};
}

Result<GrammarMatcher> GrammarCache::create(const GrammarSource& source) const {
  return GrammarMatcher::create(source, tokenizer_,
                                {.vocab_size = tokenizer_.vocab_size(), .stop_ids = stop_ids_});
}

Result<std::shared_ptr<const CompiledGrammar>> GrammarCache::compile(const GrammarSource& source) {
  if (source.text.size() > kGrammarBytesMax) {
    return fail(ErrorCode::invalid_argument,
                "the grammar has " + std::to_string(source.text.size()) + " bytes, at most " +
                    std::to_string(kGrammarBytesMax) + " are allowed");
  }
  std::string key(1, static_cast<char>(source.kind));
  key += source.text;
  if (auto known = find(key)) {
    return known;
  }
  // Not under the lock: others need not wait for this one. Two threads may do the same work.
  const auto begin = std::chrono::steady_clock::now();
  auto matcher = create(source);
  if (on_compiled_) {
    on_compiled_(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  if (!matcher) {
    return std::unexpected(std::move(matcher).error());
  }
  auto grammar = std::make_shared<const CompiledGrammar>(std::move(*matcher));
  keep({.key = std::move(key), .grammar = grammar});
  return grammar;
}

std::shared_ptr<const CompiledGrammar> GrammarCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->grammar;
}

void GrammarCache::keep(Entry entry) {
  const std::lock_guard lock(mutex_);
  if (by_key_.contains(entry.key)) {
    return;
  }
  entries_.push_front(std::move(entry));
  by_key_.emplace(entries_.front().key, entries_.begin());
  if (entries_.size() > kGrammarsMax) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace sluice
