#include "server/generation_run.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>
#include <variant>

#include "server/choice_run.h"
#include "server/error_map.h"
#include "server/json_answer.h"
#include "server/log_value.h"
#include "server/request_meter.h"
#include "server/reuse_header.h"
#include "server/sse.h"

namespace sluice {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr std::size_t kUnsentBytesMax = std::size_t{256} << 10;  // then the pump waits

AnswerOutcome outcome_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return AnswerOutcome::stop;
    case FinishReason::length:
      return AnswerOutcome::length;
    case FinishReason::cancelled:
      return AnswerOutcome::abort;
    case FinishReason::error:
      break;
  }
  return AnswerOutcome::error;
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
  void take_end(std::size_t index, const GenerationFinished& finished);
  void end_choice(std::size_t index, const GenerationFinished& finished);
  void say(std::size_t index, std::vector<AnswerDelta> deltas);
  void send(const std::vector<SseEvent>& events);
  void flush();
  void finish();
  void cancel();
  void fail(const ApiError& error);
  void announce();
  void end_rest(AnswerOutcome outcome);
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
  std::vector<ChoiceRun> choices_;
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
  exchange_->on_abort([self = shared_from_this()](const ApiError& error) { self->fail(error); });
  exchange_->on_sent([self = shared_from_this()] { self->pump(); });
  announce();
  arm_deadline();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (plan_.sequences[i].counts_prompt) {
      usage_.prompt_tokens += std::ssize(plan_.sequences[i].request.token_ids);
      for (const VisionSpan& span : plan_.sequences[i].request.vision) {
        usage_.image_tokens += span.input->token_count();
      }
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
    sequence.request.deadline = plan_.deadline;
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
    choices_.emplace_back(backend_.model->tokenizer, plan_, sequence, std::move(*stream));
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
    while (!done_ && !choices_[i].ended()) {
      if (exchange_->unsent_bytes() + outgoing_.size() > kUnsentBytesMax) {
        flush();
        return;  // on_sent() calls again
      }
      auto event = choices_[i].try_next();
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
  ChoiceRun& choice = choices_[index];
  if (const auto* admitted = std::get_if<GenerationAdmitted>(&event)) {
    choice.take_cached_tokens(admitted->cached_tokens, usage_);
    if (!begun_) {
      begin();
    }
  } else if (auto* scored = std::get_if<PromptScored>(&event)) {
    say(index, choice.take_scores(std::move(*scored)));
  } else if (const auto* token = std::get_if<TokenEvent>(&event)) {
    say(index, choice.take_token(*token, usage_));
  } else {
    take_end(index, std::get<GenerationFinished>(event));
  }
  if (!done_) {
    meter_->usage(usage_);
  }
}

void GenerationRun::take_end(std::size_t index, const GenerationFinished& finished) {
  ChoiceRun& choice = choices_[index];
  if (finished.reason == FinishReason::error) {
    const bool late = finished.error && finished.error->code == ErrorCode::deadline;
    if (!late) {
      spdlog::error("{}: generation failed: {}", exchange_->request().id,
                    finished.error ? finished.error->message : "no reason given");
    }
    fail(generation_error(finished.error));
    return;
  }
  if (finished.reason == FinishReason::cancelled && !choice.ended_by_parser()) {
    fail({ApiErrorKind::not_ready, "the server is shutting down", ""});
    return;
  }
  if (!begun_) {
    begin();
  }
  end_choice(index, finished);
}

void GenerationRun::end_choice(std::size_t index, const GenerationFinished& finished) {
  ChoiceRun& choice = choices_[index];
  say(index, choice.take_tail(finished, usage_));
  AnswerEnd end = choice.end_of(finished);
  if (plan_.stream) {
    send(plan_.format->end(index, end, choice.take_unsent_token_ids(), usage_));
  }
  meter_->ended(outcome_of(end.reason), choice.call_counts());
  choice.answer().end = std::move(end);
  choice.stop();
  ++ended_count_;
}

// New text goes out as events of the stream, or is collected for the whole reply.
void GenerationRun::say(std::size_t index, std::vector<AnswerDelta> deltas) {
  ChoiceRun& choice = choices_[index];
  for (AnswerDelta& delta : deltas) {
    if (!plan_.keep_tokens) {
      delta.tokens.clear();
    }
    if (plan_.stream) {
      send(plan_.format->delta(index, delta, choice.take_unsent_token_ids(), usage_));
    } else {
      choice.answer().add(std::move(delta));
    }
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

// Ends every answer where it is, as a limit would. For replies of one choice.
void GenerationRun::cancel() {
  if (done_) {
    return;
  }
  if (!begun_) {
    begin();
  }
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (!choices_[i].ended()) {
      end_choice(i, {.reason = FinishReason::cancelled, .usage = choices_[i].usage()});
    }
  }
  finish();
}

// Tells who may want to cancel.
void GenerationRun::announce() {
  if (!plan_.on_start) {
    return;
  }
  plan_.on_start([weak = weak_from_this(), executor = exchange_->executor()] {
    asio::post(executor, [weak] {
      if (const auto run = weak.lock()) {
        run->cancel();
      }
    });
  });
}

void GenerationRun::fail(const ApiError& error) {
  if (done_) {
    return;
  }
  done_ = true;
  end_rest(error.kind == ApiErrorKind::internal ? AnswerOutcome::error : AnswerOutcome::abort);
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
  const auto& reuse = choices_.front().reuse();
  spdlog::info(
      "answer id={} choices={} prompt={} cached={} completion={} reasoning={} reuse={} end={}",
      log_value(exchange_->request().id), choices_.size(), usage_.prompt_tokens,
      usage_.cached_tokens, usage_.completion_tokens, usage_.reasoning_tokens,
      reuse ? to_string(reuse->limit) : "unknown", end);
}

// What has not ended until now did not end well. Cancels it.
void GenerationRun::end_rest(AnswerOutcome outcome) {
  for (ChoiceRun& choice : choices_) {
    if (!choice.ended()) {
      meter_->ended(outcome, choice.call_counts());
      choice.stop();
    }
  }
}

// Also when the client is gone.
void GenerationRun::stop_everything() {
  done_ = true;
  end_rest(AnswerOutcome::abort);
  ping_timer_.cancel();
  deadline_timer_.cancel();
  if (const auto on_end = std::exchange(plan_.on_end, {})) {
    on_end();
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

// The engine ends late requests itself. This tells the client in time even when a step takes long.
void GenerationRun::arm_deadline() {
  if (!plan_.deadline) {
    return;
  }
  deadline_timer_.expires_at(*plan_.deadline);
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
  for (ChoiceRun& choice : choices_) {
    answers.push_back(std::move(choice.answer()));
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
    if (choices_[i].counts_prompt() && choices_[i].reuse()) {
      append_reuse(header, *choices_[i].reuse(), plan_.sequences[i].request.token_ids, turn_start);
    }
  }
  if (!header.empty()) {
    response.headers.emplace_back("x-sluice-reuse", std::move(header));
  }
}

}  // namespace

void start_generation(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                      ApiResult<GenerationPlan> plan, ApiDialect dialect) {
  if (!plan) {
    exchange->reply(error_response(dialect, plan.error(), exchange->request().id));
    return;
  }
  if (plan->request_id) {
    exchange->set_request_id(*plan->request_id);
  }
  std::make_shared<GenerationRun>(backend, exchange, std::move(*plan))->start();
}

}  // namespace sluice
