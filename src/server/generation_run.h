// One request while it is generated: submits its sequences, turns their tokens into deltas, and
// sends them as a stream or as one reply.
//
//   engine thread --on_ready--> strand of the connection: pump() -> parser -> format -> exchange
//
// A client that does not read stops the pump, not the engine: events wait in the engine's queue,
// which holds at most the request's own tokens. A client that is gone cancels the request.
// Thread rule: the strand of the exchange; only the wake-up comes from the engine thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/answer_parser.h"
#include "api/reply_format.h"
#include "request/request.h"
#include "server/backend.h"

namespace sluice {

struct PlannedSequence {
  Request request;
  AnswerRules rules;
  std::vector<AnswerDelta> opening = {};  // said before the first token (echo)
  bool counts_prompt = true;              // false for all but the first answer to a prompt
};

struct GenerationPlan {
  std::vector<PlannedSequence> sequences;  // choice 0, 1, ...
  std::unique_ptr<ReplyFormat> format;
  bool stream = false;
  bool skip_special_tokens = true;
  bool keep_tokens = false;  // for logprobs
  bool return_token_ids = false;
  bool timings = false;
  std::vector<TokenId> reported_stop_ids = {};  // stop ids of the request: told as stop_reason
  std::optional<double> timeout_seconds;
  std::vector<std::string> ignored = {};  // for x-ignored-params
};

// Replies to the exchange in any case: at once with an error if the engine refuses.
void start_generation(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                      GenerationPlan plan);

// The value of x-ignored-params: the paths, joined by commas, at most 1 KiB of printable ASCII.
std::string ignored_header(const std::vector<std::string>& paths);

}  // namespace sluice
