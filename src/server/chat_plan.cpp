#include "server/chat_plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "api/chat/cache_marks.h"
#include "api/chat/chat_prompt.h"
#include "api/tools/call_memory.h"
#include "api/tools/call_replay.h"
#include "server/error_map.h"

namespace sluice {
namespace {

constexpr const char* kTemplateField = "chat_template";

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

// The prompt as it is encoded, and as the template wrote it where pictures changed that.
struct ShownPrompt {
  PromptText text;
  std::optional<VisionText> vision = std::nullopt;

  const PromptText& encoded() const { return vision ? vision->prompt() : text; }
};

std::vector<PromptMedia> prompts_of(const std::vector<OpenedMedia>& media) {
  std::vector<PromptMedia> prompts;
  std::ranges::transform(media, std::back_inserter(prompts), &OpenedMedia::prompt);
  return prompts;
}

ApiResult<ChatTemplate> compile_brought(const std::string& source) {
  auto compiled = ChatTemplate::compile(source, kTemplateField);
  if (!compiled) {
    return api_fail(ApiErrorKind::invalid_value, compiled.error().message, kTemplateField);
  }
  return std::move(*compiled);
}

// Marks are hints: whatever keeps them from being found is no error.
std::vector<std::int64_t> marked_positions(const Backend& backend, const ChatRequest& request,
                                           const ChatTemplate& chat_template,
                                           const ShownPrompt& prompt,
                                           const std::vector<TokenId>& token_ids) {
  if (request.marked_template_variables.empty()) {
    return {};
  }
  const Tokenizer& tokenizer = backend.model->tokenizer;
  const auto marked = chat_template.render(request.marked_template_variables, tokenizer);
  if (!marked) {
    return {};
  }
  std::vector<std::size_t> offsets = marked_offsets(prompt.text.text, marked->text);
  for (std::size_t& offset : offsets) {
    offset = prompt.vision ? prompt.vision->moved(offset) : offset;
  }
  return token_positions(token_ids, prompt.encoded().text, offsets, tokenizer);
}

// Repeats the placeholders of a prompt that has one for each picture.
Result<void> place_pictures(const Backend& backend, EncodedChat& chat) {
  VisionTokens tokens = SLUICE_TRY(repeat_placeholders(chat.token_ids, prompts_of(chat.media),
                                                       backend.model->vision->placeholders));
  for (std::int64_t& position : chat.marked_positions) {
    position = tokens.moved(position);
  }
  chat.token_ids = std::move(tokens.token_ids);
  chat.pictures = std::move(tokens.pictures);
  return {};
}

// What remembered calls became. One that contains a placeholder (models write strange things) is
// left to the template, which writes it as characters.
std::vector<ReplayedCall> replayed_calls(const Backend& backend, const HttpRequest& http,
                                         const ChatRequest& request) {
  const std::string owner = cache_owner(backend, request.generation, http);
  std::vector<ReplayedCall> calls;
  calls.reserve(request.history_calls.size());
  for (const HistoryCall& call : request.history_calls) {
    ReplayedCall known = backend.calls->find(owner, call.id, call.name, call.arguments);
    const bool confuses =
        known && !request.media.empty() && std::ranges::any_of(*known, [&](TokenId id) {
          return backend.model->vision->placeholders.contains(id);
        });
    calls.push_back(confuses ? std::nullopt : std::move(known));
  }
  return calls;
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
  auto media = backend.media->open(request.media, http.gone.get());
  if (!media) {
    return std::unexpected(std::move(media).error());
  }
  std::optional<ChatTemplate> brought;
  if (request.chat_template) {
    auto compiled = compile_brought(*request.chat_template);
    if (!compiled) {
      return std::unexpected(std::move(compiled).error());
    }
    brought = std::move(*compiled);
  }
  const ChatTemplate& chat_template = brought ? *brought : backend.model->chat_template;
  auto prompt = make_chat_prompt(request, chat_template, tokenizer);
  if (!prompt) {
    return std::unexpected(prompt_error(prompt.error(), param));
  }
  ShownPrompt shown{.text = std::move(prompt->text)};
  shown.text.owner = cache_owner(backend, request.generation, http);
  if (!media->empty()) {
    auto vision = VisionText::make(shown.text, prompts_of(*media));
    if (!vision) {
      return std::unexpected(prompt_error(vision.error(), param));
    }
    shown.vision = std::move(*vision);
  }
  auto token_ids =
      encode_prompt(shown.encoded(), replayed_calls(backend, http, request), tokenizer);
  if (!token_ids) {
    return std::unexpected(prompt_error(token_ids.error(), param));
  }
  EncodedChat chat{.text = shown.encoded().text,
                   .token_ids = std::move(*token_ids),
                   .reasoning_open = prompt->reasoning_open,
                   .media = std::move(*media)};
  chat.marked_positions = marked_positions(backend, request, chat_template, shown, chat.token_ids);
  if (!chat.media.empty()) {
    if (const auto placed = place_pictures(backend, chat); !placed) {
      return std::unexpected(prompt_error(placed.error(), param));
    }
  }
  return chat;
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

ApiResult<std::vector<VisionSpan>> decode_pictures(const Backend& backend, const HttpRequest& http,
                                                   const EncodedChat& encoded) {
  auto inputs = backend.media->decode(encoded.media, http.gone.get());
  if (!inputs) {
    return std::unexpected(std::move(inputs).error());
  }
  const auto fits = [](const auto& input, const PlacedPicture& place) {
    return input->token_count() == place.token_count;
  };
  if (!std::ranges::equal(*inputs, encoded.pictures, fits)) {
    return api_fail(ApiErrorKind::invalid_image, "a picture has another size than its header says");
  }
  std::vector<VisionSpan> spans;
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    const PlacedPicture& place = encoded.pictures[i];
    spans.push_back({.position = place.position, .input = std::move((*inputs)[i])});
  }
  return spans;
}

ApiResult<GenerationPlan> plan_chat(const Backend& backend, const HttpRequest& http,
                                    ApiDialect dialect, const ChatRequest& request,
                                    const EncodedChat& encoded, const std::string& param) {
  const GenerationFields fields = generation_of(backend, request);
  if (const auto error = check_model(backend, fields)) {
    return std::unexpected(*error);
  }
  const auto tokens_max =
      answer_tokens_max(backend, http, dialect, fields, std::ssize(encoded.token_ids), param);
  if (!tokens_max) {
    return std::unexpected(tokens_max.error());
  }
  AnswerRules rules{.starts_inside_reasoning = encoded.reasoning_open,
                    .stop = fields.stop,
                    .stop_everywhere = fields.stop_everywhere,
                    .keep_stop_text = fields.keep_stop_text,
                    .all_tokens = fields.logprobs >= 0};
  allow_calls(backend, request.tool_use, rules);
  GenerationPlan plan = make_plan(fields, http);
  plan.sequences = plan_sequences(backend, fields, http, encoded.token_ids, *tokens_max, rules);
  if (const auto error = check_sequence_count(backend, plan, "n")) {
    return std::unexpected(*error);
  }
  const auto pictures = decode_pictures(backend, http, encoded);
  if (!pictures) {
    return std::unexpected(pictures.error());
  }
  for (PlannedSequence& sequence : plan.sequences) {
    sequence.opening = echo_of(request);
    sequence.request.vision = *pictures;
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
