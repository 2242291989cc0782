// POST /v1/completions: raw text or token prompts, no template, answers verbatim.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/fields/generation_fields.h"
#include "api/reply_format.h"

namespace sluice {

inline constexpr std::int64_t kCompletionPromptsMax = 64;
inline constexpr std::int64_t kCompletionTokensDefault = 16;
inline constexpr std::int64_t kCompletionLogprobsMax = 5;

using CompletionPrompt = std::variant<std::string, std::vector<TokenId>>;

struct CompletionRequest {
  GenerationFields generation;
  std::vector<CompletionPrompt> prompts;  // at least one
  // What stands behind the text that is asked for; the prompts are strings then, perhaps empty.
  std::optional<std::string> suffix = {};
  bool parse_special = true;  // control-token spellings in strings become tokens
  bool echo = false;          // the prompt is repeated at the head of the text
  std::vector<std::string> ignored;

  // Whether the echo comes with logprobs, too.
  bool scores_prompt() const { return echo && generation.logprobs >= 0; }
};

ApiResult<CompletionRequest> parse_completion_request(std::string body,
                                                      const RequestLimits& limits);

// Where the tokens of one choice stand in its text: what each of them adds to it. Needed for
// logprobs.
struct CompletionText {
  using TextOf = std::function<std::string(TokenId)>;  // what became complete with this token

  TextOf answer = {};
  // Of a prompt that is echoed with its scores; else there are 0 tokens.
  TextOf prompt = {};
  std::int64_t prompt_tokens = 0;
  std::int64_t prompt_characters = 0;  // of the echo
};

struct CompletionReplyOptions {
  bool include_usage = false;
  bool continuous_usage = false;
  bool logprobs = false;
  bool return_token_ids = false;
  std::vector<CompletionText> texts = {};                   // per choice, when logprobs
  std::vector<std::vector<TokenId>> prompt_token_ids = {};  // per choice, when return_token_ids
};

std::int64_t character_count(std::string_view text);

// Choice index = prompt index * n + k. Objects are called text_completion, chunks too.
class CompletionReply final : public ReplyFormat {
 public:
  CompletionReply(ReplyHead head, CompletionReplyOptions options, TokenBytes token_bytes);

  std::vector<SseEvent> begin(const AnswerUsage& usage) override;
  std::vector<SseEvent> delta(std::size_t choice, const AnswerDelta& delta,
                              std::span<const TokenId> token_ids,
                              const AnswerUsage& usage) override;
  std::vector<SseEvent> end(std::size_t choice, const AnswerEnd& end,
                            std::span<const TokenId> token_ids, const AnswerUsage& usage) override;
  std::vector<SseEvent> finish(const AnswerUsage& usage) override;
  std::vector<SseEvent> fail(const std::string& error_json) override;
  std::string whole(std::span<const ChoiceAnswer> choices, const AnswerUsage& usage) override;

 private:
  std::string chunk(boost::json::array choices, const AnswerUsage& usage) const;
  boost::json::object choice_object(std::size_t choice, std::string_view text,
                                    std::span<const TokenEvent> tokens,
                                    std::span<const TokenId> token_ids);
  boost::json::object logprobs(std::size_t choice, std::span<const TokenEvent> tokens);
  std::int64_t next_offset(std::size_t choice, TokenId token_id);

  struct Place {
    std::int64_t tokens = 0;
    std::int64_t characters = 0;  // of their text
  };

  ReplyHead head_;
  CompletionReplyOptions options_;
  TokenBytes token_bytes_;
  std::map<std::size_t, Place> places_;  // by choice: how far its logprobs are
};

}  // namespace sluice
