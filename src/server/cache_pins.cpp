#include "server/cache_pins.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "server/access.h"
#include "server/chat_plan.h"
#include "server/engine_answer.h"
#include "server/error_map.h"
#include "server/generation_plan.h"
#include "server/json_answer.h"
#include "server/plan_exchange.h"

namespace sluice {
namespace {

constexpr std::string_view kPinIdPrefix = "pin_";

// Of a moment of the engine's clock.
std::int64_t unix_seconds(Clock::TimePoint moment) {
  using std::chrono::system_clock;
  const auto ahead =
      std::chrono::duration_cast<system_clock::duration>(moment - std::chrono::steady_clock::now());
  return std::chrono::round<std::chrono::seconds>(system_clock::now() + ahead)
      .time_since_epoch()
      .count();
}

PinReport report_pin(const PinnedPrefix& pin) {
  return {.id = pin.id,
          .name = pin.name,
          .tokens = pin.tokens,
          .bytes = pin.bytes,
          .hits = pin.hits,
          .last_used = pin.last_hit_at.transform(unix_seconds),
          .expires_at = pin.ends_at.transform(unix_seconds)};
}

// One request to pin, from its submission to the reply. Thread rule: the strand of the exchange.
class PinRun : public std::enable_shared_from_this<PinRun> {
 public:
  PinRun(std::shared_ptr<Exchange> exchange, std::vector<std::string> ignored)
      : exchange_(std::move(exchange)), ignored_(std::move(ignored)) {}

  void start(Engine& engine, Request request);

 private:
  void take_events();
  HttpResponse response_to(const GenerationFinished& finished) const;

  std::shared_ptr<Exchange> exchange_;
  std::vector<std::string> ignored_;
  std::shared_ptr<GenerationStream> stream_;
};

void PinRun::start(Engine& engine, Request request) {
  // Never holds the run itself: it must not end on the engine's thread.
  auto wake_up = [weak = weak_from_this(), executor = exchange_->executor()] {
    boost::asio::post(executor, [weak] {
      if (const auto run = weak.lock()) {
        run->take_events();
      }
    });
  };
  auto stream = engine.submit(std::move(request), std::move(wake_up));
  if (!stream) {
    exchange_->reply(openai_error_response(submit_error(stream.error())));
    return;
  }
  stream_ = std::move(*stream);
  exchange_->on_gone([self = shared_from_this()] { self->stream_.reset(); });
  take_events();  // what came before stream_ was set
}

void PinRun::take_events() {
  while (const auto event = stream_ ? stream_->try_next() : std::nullopt) {
    if (const auto* finished = std::get_if<GenerationFinished>(&*event)) {
      const auto self = shared_from_this();  // the exchange may let go of us
      exchange_->reply(response_to(*finished));
      stream_.reset();
    }
  }
}

HttpResponse PinRun::response_to(const GenerationFinished& finished) const {
  if (finished.pinned) {
    HttpResponse response{.status = finished.pinned->is_new ? 201 : 200,
                          .body = pin_json(report_pin(finished.pinned->prefix))};
    add_ignored(ignored_, response);
    return response;
  }
  if (finished.error && finished.error->code == ErrorCode::resource_exhausted) {
    return openai_error_response({ApiErrorKind::pin_budget_exceeded, finished.error->message, ""});
  }
  if (finished.reason == FinishReason::cancelled) {
    return openai_error_response({ApiErrorKind::not_ready, "the server is shutting down", ""});
  }
  return openai_error_response(generation_error(finished.error));
}

// Prefixes are shared within one API key only, so a pin is for one.
ApiResult<std::string> owner_of(const Backend& backend, const HttpRequest& http,
                                const CachePinRequest& request) {
  const auto& keys = backend.config->api_keys;
  const std::string_view key = presented_key(keys, http);
  if (key.empty() && !keys.empty()) {
    return api_fail(ApiErrorKind::invalid_value,
                    "requests share prefixes within one API key: send the key this pin is for, "
                    "beside the admin key (Authorization: Bearer, x-api-key or api-key)",
                    "x-api-key");
  }
  return cache_namespace(key, request.cache_salt);
}

// What the conversations have in common. They differ in a last message of text, so that pictures
// are those of the first.
ApiResult<EncodedChat> common_prompt(const Backend& backend, const HttpRequest& http,
                                     std::span<const ChatRequest> chats,
                                     const std::string& source) {
  auto common = encode_chat(backend, http, chats.front(), source);
  for (const ChatRequest& chat : chats.subspan(1)) {
    if (!common) {
      break;
    }
    const auto other = encode_chat(backend, http, chat, source);
    if (!other) {
      return std::unexpected(other.error());
    }
    std::vector<TokenId>& ids = common->token_ids;
    ids.erase(std::ranges::mismatch(ids, other->token_ids).in1, ids.end());
  }
  return common;
}

ApiResult<EncodedChat> encode_prefix(const Backend& backend, const HttpRequest& http,
                                     const CachePinRequest& request) {
  if (const auto* chats = std::get_if<std::vector<ChatRequest>>(&request.prefix)) {
    return common_prompt(backend, http, *chats, request.source);
  }
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&request.prefix)) {
    return EncodedChat{.text = {}, .token_ids = *ids};
  }
  auto ids = backend.model->tokenizer.encode(
      std::get<std::string>(request.prefix),
      request.parse_special ? ControlTokens::parse : ControlTokens::literal);
  if (!ids) {
    return std::unexpected(prompt_error(ids.error(), request.source));
  }
  return EncodedChat{.text = {}, .token_ids = std::move(*ids)};
}

// Only whole blocks are kept: the up to 63 tokens after the last one are left out.
ApiResult<std::vector<TokenId>> whole_blocks(const Backend& backend, std::vector<TokenId> tokens,
                                             const std::string& source) {
  const std::size_t whole = tokens.size() / kKvBlockTokens * kKvBlockTokens;
  if (whole == 0) {
    return api_fail(ApiErrorKind::invalid_value,
                    fmt::format("the prefix has {} tokens, want at least {}: prefixes are kept in "
                                "blocks of that many",
                                tokens.size(), kKvBlockTokens),
                    source);
  }
  const std::int64_t context = backend.engine->config().context_max;
  if (static_cast<std::int64_t>(whole) >= context) {
    return std::unexpected(context_overflow_error(
        ApiDialect::openai,
        {.context_tokens_max = context, .prompt_tokens = static_cast<std::int64_t>(tokens.size())},
        source));
  }
  tokens.resize(whole);
  return tokens;
}

ApiResult<Request> plan_pin(const Backend& backend, const HttpRequest& http,
                            const CachePinRequest& pin) {
  auto owner = owner_of(backend, http, pin);
  if (!owner) {
    return std::unexpected(owner.error());
  }
  auto prefix = encode_prefix(backend, http, pin);
  if (!prefix) {
    return std::unexpected(prefix.error());
  }
  auto tokens = whole_blocks(backend, std::move(prefix->token_ids), pin.source);
  if (!tokens) {
    return std::unexpected(tokens.error());
  }
  auto pictures = decode_pictures(backend, http, *prefix);
  if (!pictures) {
    return std::unexpected(pictures.error());
  }
  std::erase_if(*pictures, [end = std::ssize(*tokens)](const VisionSpan& picture) {
    return picture.position >= end;
  });
  Request request;
  request.vision = std::move(*pictures);
  request.id = http.id;
  request.token_ids = std::move(*tokens);
  request.cache_salt = std::move(*owner);
  request.pin = PinLabel{.id = random_id(kPinIdPrefix), .name = pin.name, .seconds = pin.seconds};
  return request;
}

std::string pin_id(std::string_view path) {
  constexpr std::string_view kFolder = "/cache/pins/";
  return std::string(path.substr(path.find(kFolder) + kFolder.size()));
}

HttpResponse no_such_pin(const std::string& id) {
  constexpr std::size_t kShownMax = 64;
  return openai_error_response({ApiErrorKind::not_found,
                                fmt::format("there is no pin '{}'", id.substr(0, kShownMax)),
                                "id"});
}

}  // namespace

std::vector<PinReport> report_pins(std::span<const PinnedPrefix> pins) {
  std::vector<PinReport> reports;
  reports.reserve(pins.size());
  std::ranges::transform(pins, std::back_inserter(reports), report_pin);
  return reports;
}

void answer_with_pins(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                      std::function<HttpResponse(const std::vector<PinnedPrefix>&)> answer) {
  auto reply = [answer = std::move(answer)](Exchange& asker,
                                            const std::vector<PinnedPrefix>& pins) {
    asker.reply(answer(pins));
  };
  const auto taken = backend.engine->list_pins(
      answer_exchange<std::vector<PinnedPrefix>>(exchange, std::move(reply)));
  if (!taken) {
    exchange->reply(openai_error_response(submit_error(taken.error())));
  }
}

void handle_make_pin(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  if (const auto error = check_admission(backend)) {
    exchange->reply(openai_error_response(*error));
    return;
  }
  plan_exchange(
      backend, exchange, ApiDialect::openai,
      [backend](const HttpRequest& http, std::string body) -> AnswerExchange {
        auto pin =
            parse_cache_pin_request(std::move(body), backend.config->chat, request_limits(backend));
        auto request = pin ? plan_pin(backend, http, *pin) : std::unexpected(pin.error());
        if (!request) {
          return [error = request.error()](const std::shared_ptr<Exchange>& asker) {
            asker->reply(openai_error_response(error));
          };
        }
        return [backend, ignored = std::move(pin->ignored),
                request = std::move(*request)](const std::shared_ptr<Exchange>& asker) mutable {
          std::make_shared<PinRun>(asker, std::move(ignored))
              ->start(*backend.engine, std::move(request));
        };
      });
}

void handle_pins(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  answer_with_pins(backend, exchange, [](const std::vector<PinnedPrefix>& pins) {
    return HttpResponse{.body = pin_list_json(report_pins(pins))};
  });
}

void handle_pin(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  answer_with_pins(backend, exchange,
                   [id = pin_id(exchange->request().path)](const std::vector<PinnedPrefix>& pins) {
                     const auto found = std::ranges::find(pins, id, &PinnedPrefix::id);
                     return found == pins.end()
                                ? no_such_pin(id)
                                : HttpResponse{.body = pin_json(report_pin(*found))};
                   });
}

void handle_delete_pin(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const std::string id = pin_id(exchange->request().path);
  const auto reply = [id](Exchange& asker, const bool& found) {
    asker.reply(found ? HttpResponse{.body = deleted_pin_json(id)} : no_such_pin(id));
  };
  const auto taken = backend.engine->unpin(id, answer_exchange<bool>(exchange, reply));
  if (!taken) {
    exchange->reply(openai_error_response(submit_error(taken.error())));
  }
}

}  // namespace sluice
