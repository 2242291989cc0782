#include "server/generation_run.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>
#include <variant>

#include "server/error_map.h"
#include "server/log_value.h"
#include "server/request_meter.h"
#include "server/reuse_header.h"
#include "server/sse.h"
#include "text/incremental_decoder.h"

namespace sluice {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr std::size_t kUnsentBytesMax = std::size_t{256} << 10;  // then the pump waits

// One sequence of the request and what became of it.
struct Choice {
  std::shared_ptr<GenerationStream> stream;
  IncrementalDecoder decoder;
  AnswerParser parser;
  bool counts_prompt = true;
  std::vector<TokenId> unsent_token_ids = {};  // for the next event of a stream
  ChoiceAnswer answer = {};                    // grows when the reply is whole
  std::int64_t call_count = 0;                 // opened so far
  std::optional<PromptReuse> reuse = std::nullopt;
  std::int64_t cached_tokens = 0;  // of its prompt, as far as is known
  bool ended = false;
};

void collect_call(const AnswerDelta& delta, ChoiceAnswer& answer) {
  if (delta.call) {
    answer.calls.push_back({.id = delta.call->id,
                            .name = delta.call->name,
                            .content_size_before = answer.content.size()});
  }
  answer.calls.back().arguments += delta.text;
}

class GenerationRun : public std::enable_shared_from_this<GenerationRun> {
 public:
  GenerationRun(const Backend& backend, std::shared_ptr<Exchange> exchange, GenerationPlan plan)
      : backend_(backend),
        exchange_(std::move(exchange)),
        plan_(std::move(plan)),
        ping_timer_(exchange_->executor()),
        deadline_timer_(exchange_->executor()) {}

  void start();

 private:
  bool submit_all();
  void begin();
  std::function<void()> make_wake_up();
  void pump();
  void pump_or_fail();
  void take(std::size_t index, GenerationEvent event);
  void take_cached_tokens(Choice& choice, std::int64_t cached_tokens);
  void take_token(std::size_t index, const TokenEvent& token);
  void take_end(std::size_t index, const GenerationFinished& finished);
  void report_calls(Choice& choice);
  void say(std::size_t index, std::vector<AnswerDelta> deltas);
  void send(const std::vector<SseEvent>& events);
  void flush();
  void finish();
  void fail(const ApiError& error);
  void stop_everything();
  void log_answer(std::string_view end) const;

  void arm_ping();
  void ping();
  void arm_deadline();
  HttpResponse whole_reply();
  void add_reuse(HttpResponse& response) const;

  Backend backend_;
  std::shared_ptr<Exchange> exchange_;
  GenerationPlan plan_;
  std::vector<Choice> choices_;
  AnswerUsage usage_;
  std::optional<RequestMeter> meter_;  // once the engine has taken the request
  std::size_t ended_count_ = 0;
  bool begun_ = false;
  bool done_ = false;
  std::string outgoing_;  // events of this pump
  steady_clock::time_point last_write_ = {};
  asio::steady_timer ping_timer_;
  asio::steady_timer deadline_timer_;
  std::shared_ptr<std::atomic<bool>> wake_up_posted_ = std::make_shared<std::atomic<bool>>(false);
};

void GenerationRun::start() {
  if (!submit_all()) {
    return;
  }
  meter_.emplace(*backend_.metrics, std::ssize(choices_),
                 plan_.sequences.front().request.stop.tokens_max);
  exchange_->on_gone([self = shared_from_this()] {
    if (!self->done_) {
      self->log_answer("gone");
    }
    self->stop_everything();
  });
  exchange_->on_sent([self = shared_from_this()] { self->pump(); });
  arm_deadline();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (plan_.sequences[i].counts_prompt) {
      usage_.prompt_tokens += std::ssize(plan_.sequences[i].request.token_ids);
    }
  }
  if (plan_.stream) {
    HttpResponse head = sse_head();
    add_ignored(plan_.ignored, head);
    exchange_->begin_stream(std::move(head));
    arm_ping();
  }
  if (!plan_.format->begins_when_admitted()) {
    begin();
  }
  flush();
  pump();
}

void GenerationRun::begin() {
  begun_ = true;
  if (plan_.stream) {
    send(plan_.format->begin(usage_));
  }
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    say(i, std::move(plan_.sequences[i].opening));
  }
}

// All or nothing: a request that the queue cannot hold whole is refused before anything is sent.
bool GenerationRun::submit_all() {
  choices_.reserve(plan_.sequences.size());
  for (PlannedSequence& sequence : plan_.sequences) {
    auto stream = backend_.engine->submit(sequence.request, make_wake_up());
    if (!stream) {
      done_ = true;
      choices_.clear();  // cancels those already submitted
      if (stream.error().code != ErrorCode::resource_exhausted) {
        spdlog::warn("{}: the engine refused the request: {}", exchange_->request().id,
                     stream.error().message);
      }
      exchange_->reply(error_response(plan_.format->dialect(), submit_error(stream.error()),
                                      exchange_->request().id));
      return false;
    }
    choices_.push_back(
        {.stream = std::move(*stream),
         .decoder = IncrementalDecoder(backend_.model->tokenizer, plan_.skip_special_tokens),
         .parser = AnswerParser(std::move(sequence.rules)),
         .counts_prompt = sequence.counts_prompt});
  }
  return true;
}

std::function<void()> GenerationRun::make_wake_up() {
  // Never holds the run itself: it must not end on the engine's thread.
  return [weak = weak_from_this(), posted = wake_up_posted_, executor = exchange_->executor()] {
    if (posted->exchange(true)) {
      return;
    }
    asio::post(executor, [weak, posted] {
      posted->store(false);
      if (const auto run = weak.lock()) {
        run->pump_or_fail();
      }
    });
  };
}

void GenerationRun::pump() {
  for (std::size_t i = 0; i < choices_.size() && !done_; ++i) {
    while (!done_ && !choices_[i].ended) {
      if (exchange_->unsent_bytes() + outgoing_.size() > kUnsentBytesMax) {
        flush();
        return;  // on_sent() calls again
      }
      auto event = choices_[i].stream->try_next();
      if (!event) {
        break;
      }
      take(i, std::move(*event));
    }
  }
  if (done_) {
    return;
  }
  if (ended_count_ == choices_.size()) {
    finish();
  } else {
    flush();
  }
}

// An exception (memory, most likely) ends this request with an error, not in silence.
void GenerationRun::pump_or_fail() {
  try {
    pump();
  } catch (const std::exception& error) {
    spdlog::error("{}: exception while answering: {}", exchange_->request().id, error.what());
    if (!done_) {
      fail({ApiErrorKind::internal, "internal error", ""});
    }
  }
}

void GenerationRun::take(std::size_t index, GenerationEvent event) {
  if (const auto* admitted = std::get_if<GenerationAdmitted>(&event)) {
    take_cached_tokens(choices_[index], admitted->cached_tokens);
    if (!begun_) {
      begin();
    }
  } else if (const auto* token = std::get_if<TokenEvent>(&event)) {
    take_token(index, *token);
  } else {
    take_end(index, std::get<GenerationFinished>(event));
  }
  if (!done_) {
    meter_->usage(usage_);
  }
}

void GenerationRun::take_cached_tokens(Choice& choice, std::int64_t cached_tokens) {
  if (choice.counts_prompt) {
    usage_.cached_tokens += cached_tokens - std::exchange(choice.cached_tokens, cached_tokens);
  }
}

void GenerationRun::take_token(std::size_t index, const TokenEvent& token) {
  Choice& choice = choices_[index];
  if (choice.parser.has_ended()) {
    return;  // generated before the engine heard that it should stop
  }
  const std::int64_t reasoning_before = choice.parser.reasoning_token_count();
  std::vector<AnswerDelta> deltas =
      choice.parser.append(token, choice.decoder.append(token.token_id));
  usage_.completion_tokens += 1;
  usage_.reasoning_tokens += choice.parser.reasoning_token_count() - reasoning_before;
  if (plan_.return_token_ids) {
    choice.unsent_token_ids.push_back(token.token_id);
    choice.answer.token_ids.push_back(token.token_id);
  }
  report_calls(choice);  // before the client can send it back
  say(index, std::move(deltas));
  if (choice.parser.has_ended()) {
    choice.stream->cancel();
  }
}

void GenerationRun::take_end(std::size_t index, const GenerationFinished& finished) {
  Choice& choice = choices_[index];
  const bool stopped_here = choice.parser.has_ended();
  const bool cut = finished.reason == FinishReason::length && !stopped_here;
  if (finished.reason == FinishReason::error) {
    spdlog::error("{}: generation failed: {}", exchange_->request().id,
                  finished.error ? finished.error->message : "no reason given");
    fail(generation_error(finished.error));
    return;
  }
  if (finished.reason == FinishReason::cancelled && !stopped_here) {
    fail({ApiErrorKind::not_ready, "the server is shutting down", ""});
    return;
  }
  if (!begun_) {
    begin();
  }
  std::vector<AnswerDelta> deltas = choice.parser.finish(choice.decoder.finish(), cut);
  report_calls(choice);
  say(index, std::move(deltas));
  if (!stopped_here) {
    // A stop token counts where the engine counts it, though it is no text and no event.
    usage_.completion_tokens +=
        std::max<std::int64_t>(finished.usage.completion_tokens - choice.parser.token_count(), 0);
  }
  take_cached_tokens(choice, finished.usage.cached_tokens);
  choice.reuse = finished.reuse;
  AnswerEnd end;
  const bool at_limit = cut && !choice.parser.has_ended();
  end.reason = at_limit ? FinishReason::length : FinishReason::stop;
  end.has_complete_call = choice.parser.complete_call_count() > 0;
  for (std::size_t i = 0; i < choice.answer.calls.size(); ++i) {
    choice.answer.calls[i].complete = i < choice.parser.complete_call_count();
  }
  end.stop_text = choice.parser.stop_text();
  const auto& reported = plan_.reported_stop_ids;
  if (!end.stop_text && finished.stop_token_id &&
      std::find(reported.begin(), reported.end(), *finished.stop_token_id) != reported.end()) {
    end.stop_token_id = finished.stop_token_id;
  }
  if (plan_.timings) {
    end.timings = finished.timings;
    end.reuse = choice.reuse;
  }
  if (plan_.stream) {
    send(plan_.format->end(index, end, std::exchange(choice.unsent_token_ids, {}), usage_));
  }
  const auto complete = static_cast<std::int64_t>(choice.parser.complete_call_count());
  meter_->ended(at_limit ? AnswerOutcome::length : AnswerOutcome::stop,
                {.complete = complete, .truncated = choice.call_count - complete});
  choice.answer.end = std::move(end);
  choice.ended = true;
  ++ended_count_;
}

void GenerationRun::report_calls(Choice& choice) {
  for (const FinishedCall& call : choice.parser.take_finished_calls()) {
    if (plan_.on_call) {
      plan_.on_call(call);
    }
  }
}

// New text goes out as events of the stream, or is collected for the whole reply.
void GenerationRun::say(std::size_t index, std::vector<AnswerDelta> deltas) {
  Choice& choice = choices_[index];
  for (AnswerDelta& delta : deltas) {
    choice.call_count += delta.call ? 1 : 0;
    if (!plan_.keep_tokens) {
      delta.tokens.clear();
    }
    if (plan_.stream) {
      send(plan_.format->delta(index, delta, std::exchange(choice.unsent_token_ids, {}), usage_));
      continue;
    }
    if (delta.part == AnswerPart::call) {
      collect_call(delta, choice.answer);
      continue;
    }
    const bool reasoning = delta.part == AnswerPart::reasoning;
    auto& tokens = reasoning ? choice.answer.reasoning_tokens : choice.answer.content_tokens;
    (reasoning ? choice.answer.reasoning : choice.answer.content) += delta.text;
    std::move(delta.tokens.begin(), delta.tokens.end(), std::back_inserter(tokens));
  }
}

void GenerationRun::send(const std::vector<SseEvent>& events) {
  outgoing_ += sse_text(events);
}

void GenerationRun::flush() {
  if (!outgoing_.empty()) {
    last_write_ = steady_clock::now();
    exchange_->write(std::exchange(outgoing_, {}));
  }
}

void GenerationRun::finish() {
  done_ = true;
  log_answer("complete");
  const auto self = shared_from_this();  // the exchange may let go of us
  if (plan_.stream) {
    send(plan_.format->finish(usage_));
    flush();
    exchange_->end_stream();
  } else {
    exchange_->reply(whole_reply());
  }
  stop_everything();
}

void GenerationRun::fail(const ApiError& error) {
  if (done_) {
    return;
  }
  done_ = true;
  meter_->rest_ended(error.kind == ApiErrorKind::internal ? AnswerOutcome::error
                                                          : AnswerOutcome::abort);
  log_answer("failed");
  const auto self = shared_from_this();
  if (plan_.stream) {
    send(plan_.format->fail(error_json(plan_.format->dialect(), error, exchange_->request().id)));
    flush();
    exchange_->end_stream();
  } else {
    exchange_->reply(error_response(plan_.format->dialect(), error, exchange_->request().id));
  }
  stop_everything();
}

// Numbers only: nothing of what was asked or said.
void GenerationRun::log_answer(std::string_view end) const {
  const auto& reuse = choices_.front().reuse;
  spdlog::info(
      "answer id={} choices={} prompt={} cached={} completion={} reasoning={} reuse={} end={}",
      log_value(exchange_->request().id), choices_.size(), usage_.prompt_tokens,
      usage_.cached_tokens, usage_.completion_tokens, usage_.reasoning_tokens,
      reuse ? to_string(reuse->limit) : "unknown", end);
}

// Also when the client is gone. Dropping the streams cancels what still runs.
void GenerationRun::stop_everything() {
  done_ = true;
  meter_->rest_ended(AnswerOutcome::abort);
  ping_timer_.cancel();
  deadline_timer_.cancel();
  for (Choice& choice : choices_) {
    choice.stream.reset();
    choice.ended = true;
  }
}

void GenerationRun::arm_ping() {
  const int seconds = backend_.config->ping_seconds;
  if (seconds <= 0) {
    return;
  }
  last_write_ = steady_clock::now();
  const auto wait = [self = shared_from_this(), seconds](const auto& again) -> void {
    self->ping_timer_.expires_at(self->last_write_ + std::chrono::seconds(seconds));
    self->ping_timer_.async_wait([self, seconds, again](const boost::system::error_code& error) {
      if (error || self->done_) {
        return;
      }
      const auto silent = steady_clock::now() - self->last_write_;
      if (silent >= std::chrono::seconds(seconds)) {
        self->last_write_ = steady_clock::now();
        if (self->exchange_->unsent_bytes() == 0) {
          self->ping();
        }
      }
      again(again);
    });
  };
  wait(wait);
}

void GenerationRun::ping() {
  const auto event = plan_.format->ping();
  exchange_->write(event ? sse_text({*event}) : kSsePing);
}

void GenerationRun::arm_deadline() {
  if (!plan_.timeout_seconds) {
    return;
  }
  const std::chrono::duration<double> wait(*plan_.timeout_seconds);
  deadline_timer_.expires_after(std::chrono::duration_cast<steady_clock::duration>(wait));
  deadline_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) {
      self->fail(
          {ApiErrorKind::deadline_exceeded, "the request did not finish within its timeout", ""});
    }
  });
}

HttpResponse GenerationRun::whole_reply() {
  std::vector<ChoiceAnswer> answers;
  answers.reserve(choices_.size());
  for (Choice& choice : choices_) {
    answers.push_back(std::move(choice.answer));
  }
  HttpResponse response{.body = plan_.format->whole(answers, usage_)};
  add_ignored(plan_.ignored, response);
  add_reuse(response);
  return response;
}

// Of each prompt; the further answers to it start from the same prompt.
void GenerationRun::add_reuse(HttpResponse& response) const {
  const auto turn_start = backend_.model->tokenizer.token_id("<|im_start|>");
  std::string header;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].counts_prompt && choices_[i].reuse) {
      append_reuse(header, *choices_[i].reuse, plan_.sequences[i].request.token_ids, turn_start);
    }
  }
  if (!header.empty()) {
    response.headers.emplace_back("x-sluice-reuse", std::move(header));
  }
}

}  // namespace

void start_generation(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                      GenerationPlan plan) {
  std::make_shared<GenerationRun>(backend, exchange, std::move(plan))->start();
}

std::string ignored_header(const std::vector<std::string>& paths) {
  constexpr std::size_t kHeaderBytesMax = 1024;
  std::string header;
  for (const std::string& path : paths) {
    std::string printable;
    for (const char c : path) {
      const bool plain = c > 0x20 && c < 0x7F && c != ',';
      printable += plain ? c : '?';
    }
    const std::size_t size = header.size() + printable.size() + (header.empty() ? 0 : 1);
    if (size > kHeaderBytesMax) {
      break;
    }
    header += (header.empty() ? "" : ",") + printable;
  }
  return header;
}

void add_ignored(const std::vector<std::string>& paths, HttpResponse& response) {
  if (!paths.empty()) {
    response.headers.emplace_back("x-ignored-params", ignored_header(paths));
  }
}

}  // namespace sluice
