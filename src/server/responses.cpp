// The same order as in chat_completions.cpp: every error is found before the reply begins.
#include "server/responses.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <charconv>
#include <chrono>
#include <utility>

#include "api/responses/response_ids.h"
#include "api/responses/responses_reply.h"
#include "api/responses/responses_request.h"
#include "server/access.h"
#include "server/chat_plan.h"
#include "server/plan_exchange.h"
#include "server/response_store.h"
#include "server/running_responses.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr const char* kParam = "input";

// The store as one client sees it. Remembers the turns the request goes on from: they may have left
// the store when the answer is there.
class ClientArchive final : public ResponseArchive {
 public:
  ClientArchive(const Backend& backend, const HttpRequest& http)
      : store_(backend.responses), owner_(presented_key(backend.config->api_keys, http)) {}

  std::optional<json::array> conversation(std::string_view response_id) const override {
    auto turns = store_->turns(owner_, response_id);
    if (!turns) {
      return std::nullopt;
    }
    turns_ = std::move(*turns);
    return ResponseStore::items_of(turns_);
  }

  std::optional<json::object> item(std::string_view item_id) const override {
    const auto response_id = response_of_item(item_id);
    const auto turns = response_id ? store_->turns(owner_, *response_id) : std::nullopt;
    if (!turns) {
      return std::nullopt;
    }
    for (json::value& item : ResponseStore::items_of({turns->back()})) {
      const json::value* id = item.is_object() ? item.get_object().if_contains("id") : nullptr;
      if (id != nullptr && id->is_string() && std::string_view(id->get_string()) == item_id) {
        return std::move(item.get_object());
      }
    }
    return std::nullopt;
  }

  const std::string& owner() const { return owner_; }
  const ResponseStore::Turns& turns() const { return turns_; }

 private:
  ResponseStore* store_;
  std::string owner_;
  mutable ResponseStore::Turns turns_;
};

// The float as a person would write it: 0.7, not 0.699999988.
double shortest(float value) {
  const std::string text = fmt::format("{}", value);
  double result = value;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

std::int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// The final response goes to whoever asked for its end, and into the store if it shall be kept.
std::function<void(const json::object&)> when_final(
    const Backend& backend, const std::string& response_id,
    std::optional<ResponseStore::NewResponse> stored) {
  return [backend, response_id, stored = std::move(stored)](const json::object& response) {
    if (stored) {
      backend.responses->put(*stored, response);
    }
    backend.running_responses->end(response_id, &response);
  };
}

// `shown`: to those who ask for it while it runs.
void let_others_cancel(const Backend& backend, const std::string& owner,
                       const std::string& response_id, std::optional<std::string> shown,
                       GenerationPlan& plan) {
  RunningResponses* running = backend.running_responses;
  plan.on_start = [running, owner, response_id,
                   shown = std::move(shown)](std::function<void()> cancel) {
    running->add(response_id, owner, shown, std::move(cancel));
  };
  plan.on_end = [running, response_id] { running->end(response_id, nullptr); };
}

ApiResult<GenerationPlan> plan_response(const Backend& backend, const HttpRequest& http,
                                        std::string body) {
  if (const auto error = check_admission(backend)) {
    return std::unexpected(*error);
  }
  const ClientArchive archive(backend, http);
  auto parsed = parse_responses_request(std::move(body), backend.config->chat,
                                        request_limits(backend), archive);
  if (!parsed) {
    return std::unexpected(std::move(parsed).error());
  }
  ResponsesRequest& request = *parsed;
  const auto encoded = encode_chat(backend, http, request.chat, kParam);
  if (!encoded) {
    return std::unexpected(encoded.error());
  }
  auto plan = plan_chat(backend, http, ApiDialect::openai, request.chat, *encoded, kParam);
  if (!plan) {
    return plan;
  }
  const GenerationFields& fields = request.chat.generation;
  const SamplingParams& sampling = plan->sequences.front().request.sampling;
  const bool store = request.store && backend.config->responses_store;
  request.echo["store"] = store;
  ReplyHead head = make_reply_head(backend, fields, kResponseIdPrefix);
  ResponseReplyOptions options{.echo = std::move(request.echo),
                               .temperature = shortest(sampling.temperature),
                               .top_p = shortest(sampling.top_p),
                               .tool_targets = std::move(request.tool_targets),
                               .include_reasoning = request.chat.include_reasoning,
                               .summarise_reasoning = request.summarise_reasoning,
                               .seal_reasoning = request.seal_reasoning,
                               .logprobs = fields.logprobs >= 0,
                               .now = unix_seconds};
  std::optional<ResponseStore::NewResponse> stored;
  if (store) {
    name_input_items(head.id, request.input_items);
    stored = {archive.owner(), archive.turns(), std::move(request.input_items)};
  }
  options.on_final = when_final(backend, head.id, std::move(stored));
  const std::string id = head.id;
  auto reply =
      std::make_unique<ResponseReply>(std::move(head), std::move(options), token_bytes_of(backend));
  let_others_cancel(backend, archive.owner(), id,
                    store ? std::optional(reply->in_progress_json()) : std::nullopt, *plan);
  plan->format = std::move(reply);
  return plan;
}

ApiResult<JsonAnswer> count_input_tokens(const Backend& backend, const HttpRequest& http,
                                         std::string body) {
  const ClientArchive archive(backend, http);
  const auto request = parse_responses_request(std::move(body), backend.config->chat,
                                               request_limits(backend), archive);
  if (!request) {
    return std::unexpected(request.error());
  }
  return count_chat_tokens(backend, http, ApiDialect::openai, request->chat, kParam);
}

}  // namespace

void handle_responses(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  generate_from(backend, exchange, ApiDialect::openai, plan_response);
}

void handle_response_input_tokens(const Backend& backend,
                                  const std::shared_ptr<Exchange>& exchange) {
  reply_json_from(backend, exchange, ApiDialect::openai, count_input_tokens);
}

}  // namespace sluice
