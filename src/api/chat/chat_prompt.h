// From a chat request to the prompt: renders the template, and appends a turn to be continued.
#pragma once

#include "api/openai/chat_request.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice {

struct ChatPrompt {
  PromptText text;
  bool reasoning_open = false;  // the answer starts inside the reasoning
};

// Error invalid_argument when the template refuses the conversation.
Result<ChatPrompt> make_chat_prompt(const ChatRequest& request, const ChatTemplate& chat_template,
                                    const Tokenizer& tokenizer);

// Gives the request its variables: these, and the turns as "messages", with their marks; and the
// pictures and videos of the turns.
void set_template_variables(boost::json::object variables, const std::vector<ChatTurn>& turns,
                            ChatRequest& request);

// What the server decides about a prompt.
struct PromptDecisions {
  bool generation_prompt = true;
  const ThinkingFields& thinking;
  const boost::json::array& tools;  // as shown to the model
  PreserveThinking preserve_thinking = PreserveThinking::as_template;
};

// Adds the variables of the template that say so. preserve_thinking stays as it is if it is there.
void add_decisions(const PromptDecisions& decisions, boost::json::object& variables);

// Whether `text` ends with an opened reasoning block that the template itself wrote.
bool ends_inside_reasoning(const PromptText& prompt);

// Appends `text`; when literal, control-token spellings in it are ordinary characters.
void append_text(PromptText& prompt, std::string_view text, bool literal);

// The prompt of a turn to be continued, given the prompt of a new answer.
void append_continuation(const TurnContinuation& continuation, ChatPrompt& prompt);

}  // namespace sluice
