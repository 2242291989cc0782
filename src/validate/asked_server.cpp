#include "validate/asked_server.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <random>
#include <utility>

#include "client/model_list.h"

namespace sluice::validate {
namespace {

namespace json = boost::json;

constexpr std::int64_t kTopLogprobs = 3;
constexpr int kStatusOk = 200;

std::optional<json::object> object_of(const std::string& text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  return !error && value.is_object() ? std::optional(std::move(value.get_object())) : std::nullopt;
}

std::string string_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

AskedServer::AskedServer(ServerUrl url, std::string api_key, const Clock& clock)
    : url_(std::move(url)),
      api_key_(std::move(api_key)),
      clock_(clock),
      client_(url_, {.api_key = api_key_}) {
  std::random_device random;
  salt_base_ = fmt::format("validate-{:08x}{:08x}", random(), random());
}

Result<AskedServer> AskedServer::connect(const std::string& url, const std::string& api_key,
                                         const Clock& clock) {
  AskedServer server(SLUICE_TRY(parse_server_url(url)), api_key, clock);
  const json::object model = SLUICE_TRY(first_model(server.client_));
  server.model_ = string_of(model, "id");
  server.facts_.push_back({"served model", server.model_});
  for (const std::string_view name : {"max_model_len", "context_length"}) {
    const json::value* length = model.if_contains(name);
    if (server.context_ == 0 && length != nullptr && length->is_int64()) {
      server.context_ = length->get_int64();
    }
  }
  if (server.context_ > 0) {
    server.facts_.push_back({"served context", fmt::format("{} tokens", server.context_)});
  }
  const std::optional<json::object> version = object_of(server.get("/version"));
  // Others have a version, too; what its weights and arithmetic are only Sluice says.
  server.is_sluice_ = version && version->contains("fingerprint") && version->contains("quant");
  server.facts_.push_back(
      {"server", server.is_sluice_ ? "sluice " + string_of(*version, "version") : "not Sluice"});
  if (server.is_sluice_) {
    server.facts_.push_back({"served weights", string_of(*version, "quant")});
    server.facts_.push_back({"fingerprint", string_of(*version, "fingerprint")});
  }
  return server;
}

std::string AskedServer::fresh_salt() {
  return fmt::format("{}-{}", salt_base_, ++salts_);
}

Result<ChatAnswer> AskedServer::ask(HttpClient& client, const Question& question) const {
  json::object body{{"model", model_},
                    {"messages", question.messages},
                    {"max_tokens", question.tokens_max},
                    {"temperature", 0},
                    {"logprobs", true},
                    {"top_logprobs", kTopLogprobs},
                    {"cache_salt", question.salt},
                    {"chat_template_kwargs", {{"enable_thinking", false}}}};
  if (!question.tools.empty()) {
    body["tools"] = question.tools;
  }
  if (question.to_the_end && is_sluice_) {
    body["min_tokens"] = question.tokens_max;
  }
  ChatAnswer reply = SLUICE_TRY(ask_chat(client, std::move(body), clock_));
  if (reply.status != kStatusOk) {
    return fail(ErrorCode::io, fmt::format("the server refused: {} {}", reply.status, reply.error));
  }
  return reply;
}

std::string AskedServer::get(const std::string& path) {
  const Result<HttpClient::Reply> reply = client_.get(path);
  return reply && reply->status == kStatusOk ? reply->body : std::string();
}

std::string essence(const ChatAnswer& reply) {
  json::array calls = reply.tool_calls;
  for (json::value& call : calls) {
    if (call.is_object()) {
      call.get_object().erase("id");  // a new one each time
    }
  }
  return json::serialize(
      json::array{reply.text, reply.reasoning, reply.finish_reason, calls, reply.logprobs});
}

double first_seconds(const ChatAnswer& reply) {
  return reply.first_token_seconds > 0 ? reply.first_token_seconds : reply.seconds;
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.0f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

json::object message(std::string_view role, std::string_view text) {
  return {{"role", role}, {"content", text}};
}

}  // namespace sluice::validate
