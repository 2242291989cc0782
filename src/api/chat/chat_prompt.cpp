#include "api/chat/chat_prompt.h"

#include <utility>

#include "api/chat/cache_marks.h"
#include "api/fields/json_text.h"

namespace sluice {

Result<ChatPrompt> make_chat_prompt(const ChatRequest& request, const ChatTemplate& chat_template,
                                    const Tokenizer& tokenizer) {
  ChatPrompt prompt;
  prompt.text = SLUICE_TRY(chat_template.render(request.template_variables, tokenizer));
  if (request.continuation) {
    append_continuation(*request.continuation, prompt);
  } else {
    prompt.reasoning_open = ends_inside_reasoning(prompt.text);
  }
  return prompt;
}

void set_template_variables(boost::json::object variables, const std::vector<ChatTurn>& turns,
                            ChatRequest& request) {
  request.media = media_of(turns);
  variables["messages"] = template_messages(turns);
  request.template_variables = to_json(variables);
  if (has_cache_marks(turns)) {
    variables["messages"] = template_messages(with_mark_texts(turns));
    request.marked_template_variables = to_json(variables);
  }
}

void add_decisions(const PromptDecisions& decisions, boost::json::object& variables) {
  if (!decisions.tools.empty()) {
    variables["tools"] = decisions.tools;
  }
  variables["add_generation_prompt"] = decisions.generation_prompt;
  variables["enable_thinking"] = decisions.thinking.enabled;
  if (decisions.thinking.effort) {
    variables["reasoning_effort"] = *decisions.thinking.effort;
  }
  const bool preserve =
      decisions.preserve_thinking == PreserveThinking::always ||
      (decisions.preserve_thinking == PreserveThinking::with_tools && !decisions.tools.empty());
  if (preserve && !variables.contains("preserve_thinking")) {
    variables["preserve_thinking"] = true;
  }
}

bool ends_inside_reasoning(const PromptText& prompt) {
  constexpr std::string_view kOpen = "<think>";
  const std::size_t end = prompt.text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos ||
      !std::string_view(prompt.text).substr(0, end + 1).ends_with(kOpen)) {
    return false;
  }
  const std::size_t begin = end + 1 - kOpen.size();
  for (const auto& [range_begin, range_end] : prompt.literal_ranges) {
    if (range_begin <= end && begin < range_end) {
      return false;  // a user wrote it
    }
  }
  return true;
}

void append_text(PromptText& prompt, std::string_view text, bool literal) {
  if (text.empty()) {
    return;
  }
  const std::size_t begin = prompt.text.size();
  prompt.text += text;
  if (literal) {
    prompt.literal_ranges.emplace_back(begin, prompt.text.size());
  }
}

void append_continuation(const TurnContinuation& continuation, ChatPrompt& prompt) {
  const bool opened = ends_inside_reasoning(prompt.text);
  prompt.reasoning_open = opened && continuation.reasoning_open;
  if (opened && !continuation.reasoning_open) {
    append_text(prompt.text, continuation.reasoning, true);
    append_text(prompt.text, "\n</think>\n\n", false);
  }
  append_text(prompt.text, continuation.text, true);
}

}  // namespace sluice
