// The request fields that limit which tokens an answer may have, in the spellings of OpenAI
// (response_format), vLLM (structured_outputs, guided_*) and llama.cpp (json_schema).
//
// Grammars are compiled here, so that what is wrong with one is found while its path is known.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "api/fields/json_fields.h"
#include "api/fields/request_limits.h"
#include "request/request.h"
#include "text/grammar_cache.h"

namespace sluice {

inline constexpr std::int64_t kBadWordsMax = 256;
inline constexpr std::int64_t kBadWordBytesMax = 256;
inline constexpr std::int64_t kChoiceTextsMax = 1024;  // of guided_choice

struct ConstraintFields {
  std::shared_ptr<const CompiledGrammar> grammar = nullptr;  // of the content; null: any text
  bool grammar_has_calls = false;                            // it is one of tool calls
  std::shared_ptr<const CompiledGrammar> calls = nullptr;    // of calls that come by themselves
  std::int64_t tokens_min = 0;
  std::vector<std::vector<TokenId>> bad_words = {};  // every spelling of every word
  std::vector<TokenId> allowed_token_ids = {};       // empty: all
};

// limits.grammars may be null: then every grammar is refused.
ConstraintFields read_constraint_fields(JsonFields& body, const RequestLimits& limits);

// {"type": "text" | "json_object" | "json_schema", ...}; the schema and `strict` beside the type or
// in an object named json_schema. Null for text, and after an error.
std::shared_ptr<const CompiledGrammar> read_text_format(JsonFields& format,
                                                        const RequestLimits& limits);

}  // namespace sluice
