#include "server/chat_plan.h"

#include <algorithm>
#include <utility>

#include "api/chat/cache_marks.h"
#include "api/chat/chat_prompt.h"
#include "api/tools/call_memory.h"
#include "api/tools/call_replay.h"
#include "server/error_map.h"

namespace sluice {
namespace {

// The continued turn, said again at the head of the answer.
std::vector<AnswerDelta> echo_of(const ChatRequest& request) {
  std::vector<AnswerDelta> deltas;
  if (!request.echo || !request.continuation) {
    return deltas;
  }
  const TurnContinuation& turn = *request.continuation;
  if (!turn.reasoning.empty()) {
    deltas.push_back({AnswerPart::reasoning, turn.reasoning, {}});
  }
  if (!turn.text.empty()) {
    deltas.push_back(
        {turn.reasoning_open ? AnswerPart::reasoning : AnswerPart::content, turn.text, {}});
  }
  return deltas;
}

void allow_calls(const Backend& backend, const ToolUse& use, AnswerRules& rules) {
  if (use.tools == nullptr || use.forbidden) {
    return;
  }
  rules.tools = use.tools;
  rules.new_call_id = [] { return random_id("call_"); };
  rules.call_token = backend.model->tokenizer.token_id(kCallOpen);
  rules.one_call = use.one_call;
}

// Where tools are shown but must not be called, the token that opens a call is never chosen.
GenerationFields generation_of(const Backend& backend, const ChatRequest& request) {
  GenerationFields fields = request.generation;
  const auto call_token = backend.model->tokenizer.token_id(kCallOpen);
  if (request.tool_use.tools != nullptr && request.tool_use.forbidden && call_token) {
    fields.constraint.bad_words.push_back({*call_token});
  }
  return fields;
}

// Marks are hints: whatever keeps them from being found is no error.
std::vector<std::int64_t> marked_positions(const Backend& backend, const ChatRequest& request,
                                           const std::string& prompt,
                                           const std::vector<TokenId>& token_ids) {
  if (request.marked_template_variables.empty()) {
    return {};
  }
  const Tokenizer& tokenizer = backend.model->tokenizer;
  const auto marked =
      backend.model->chat_template.render(request.marked_template_variables, tokenizer);
  if (!marked) {
    return {};
  }
  return token_positions(token_ids, prompt, marked_offsets(prompt, marked->text), tokenizer);
}

void add_stable_positions(const std::vector<std::int64_t>& positions, Request& request) {
  auto& stable = request.stable_positions;
  stable.insert(stable.end(), positions.begin(), positions.end());
  std::ranges::sort(stable);
  const auto doubles = std::ranges::unique(stable);
  stable.erase(doubles.begin(), doubles.end());
}

}  // namespace

ApiResult<EncodedChat> encode_chat(const Backend& backend, const HttpRequest& http,
                                   const ChatRequest& request, const std::string& param) {
  const Tokenizer& tokenizer = backend.model->tokenizer;
  auto prompt = make_chat_prompt(request, backend.model->chat_template, tokenizer);
  if (!prompt) {
    return std::unexpected(prompt_error(prompt.error(), param));
  }
  const std::string owner = cache_owner(backend, request.generation, http);
  std::vector<ReplayedCall> calls;
  calls.reserve(request.history_calls.size());
  for (const HistoryCall& call : request.history_calls) {
    calls.push_back(backend.calls->find(owner, call.id, call.name, call.arguments));
  }
  auto token_ids = encode_prompt(prompt->text, calls, tokenizer);
  if (!token_ids) {
    return std::unexpected(prompt_error(token_ids.error(), param));
  }
  auto marked = marked_positions(backend, request, prompt->text.text, *token_ids);
  return EncodedChat{.text = std::move(prompt->text.text),
                     .token_ids = std::move(*token_ids),
                     .reasoning_open = prompt->reasoning_open,
                     .marked_positions = std::move(marked)};
}

ApiResult<JsonAnswer> count_chat_tokens(const Backend& backend, const HttpRequest& http,
                                        ApiDialect dialect, const ChatRequest& request,
                                        const std::string& param) {
  if (const auto error = check_model(backend, request.generation)) {
    return std::unexpected(*error);
  }
  const auto encoded = encode_chat(backend, http, request, param);
  if (!encoded) {
    return std::unexpected(encoded.error());
  }
  JsonAnswer answer{.body = {}, .ignored = request.ignored};
  if (dialect == ApiDialect::openai) {
    answer.body["object"] = "response.input_tokens";
  }
  answer.body["input_tokens"] = encoded->token_ids.size();
  return answer;
}

ApiResult<GenerationPlan> plan_chat(const Backend& backend, const HttpRequest& http,
                                    ApiDialect dialect, const ChatRequest& request,
                                    const EncodedChat& encoded, const std::string& param) {
  const GenerationFields fields = generation_of(backend, request);
  if (const auto error = check_model(backend, fields)) {
    return std::unexpected(*error);
  }
  const auto tokens_max =
      answer_tokens_max(backend, dialect, fields, std::ssize(encoded.token_ids), param);
  if (!tokens_max) {
    return std::unexpected(tokens_max.error());
  }
  AnswerRules rules{.starts_inside_reasoning = encoded.reasoning_open,
                    .stop = fields.stop,
                    .stop_everywhere = fields.stop_everywhere,
                    .keep_stop_text = fields.keep_stop_text};
  allow_calls(backend, request.tool_use, rules);
  GenerationPlan plan = make_plan(fields, http);
  plan.sequences = plan_sequences(backend, fields, http, encoded.token_ids, *tokens_max, rules);
  if (const auto error = check_sequence_count(backend, plan, "n")) {
    return std::unexpected(*error);
  }
  for (PlannedSequence& sequence : plan.sequences) {
    sequence.opening = echo_of(request);
    add_stable_positions(encoded.marked_positions, sequence.request);
  }
  if (!plan.sequences.empty()) {
    plan.on_call = [memory = backend.calls, owner = plan.sequences.front().request.cache_salt](
                       const FinishedCall& call) { memory->remember(owner, call); };
  }
  plan.ignored = request.ignored;
  return plan;
}

}  // namespace sluice
