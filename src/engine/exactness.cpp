#include "engine/exactness.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "base/checked_math.h"
#include "base/clock.h"
#include "engine/engine_loop.h"

namespace sluice {
namespace {

constexpr std::int64_t kDifferencesMax = 10;
constexpr std::int64_t kAnswerTokensMax = 160;
constexpr std::int64_t kContextMax = 1024;
constexpr std::int64_t kFamilies = 4;  // of prompts that begin alike

struct Answer {
  std::vector<TokenEvent> tokens;
  FinishReason reason = FinishReason::length;
};

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

bool same(const TokenEvent& a, const TokenEvent& b) {
  const auto same_logprob = [](const TokenLogprob& x, const TokenLogprob& y) {
    return x.token_id == y.token_id && same_bits(x.logprob, y.logprob);
  };
  return a.token_id == b.token_id && same_bits(a.logprob.value_or(0), b.logprob.value_or(0)) &&
         std::ranges::equal(a.top_logprobs, b.top_logprobs, same_logprob);
}

// Token `position` of all prompts of a family.
TokenId token_at(std::uint64_t seed, std::int64_t family, std::int64_t position,
                 std::int64_t vocab_size) {
  std::uint64_t x = seed + 0x9e3779b97f4a7c15U * static_cast<std::uint64_t>(family + 1);
  x = (x ^ static_cast<std::uint64_t>(position)) * 0xbf58476d1ce4e5b9U;
  x ^= x >> 29;
  return static_cast<TokenId>(x % static_cast<std::uint64_t>(vocab_size));
}

bool same_answer(const Answer& a, const Answer& b) {
  return a.reason == b.reason && std::ranges::equal(a.tokens, b.tokens, same);
}

// One engine and what was asked of it.
class Program {
 public:
  static Result<std::unique_ptr<Program>> create(Qwen3_5& model, const EngineConfig& config) {
    auto program = std::make_unique<Program>();
    program->config_ = config;
    program->vocab_size_ = model.config().vocab_size;
    program->loop_ = SLUICE_TRY(EngineLoop::create(model, config, program->clock_));
    return program;
  }

  Result<void> submit(const Request& request) {
    auto sequence = SLUICE_TRY(make_sequence(request, {},
                                             {.context_max = config_.context_max,
                                              .vocab_size = vocab_size_,
                                              .sampled_vocab_size = vocab_size_},
                                             clock_.now()));
    streams_.push_back(std::make_unique<StreamHandle>(sequence->events));
    sequence->id = static_cast<SequenceId>(streams_.size());
    loop_->add(std::move(sequence));
    return {};
  }

  void cancel(std::int64_t index) { streams_[static_cast<std::size_t>(index)]->cancel(); }

  void step() {
    loop_->step();
    loop_->check_invariants();
    loop_->deliver();
    running_max_ = std::max(running_max_, loop_->status().running);
  }

  void run() {
    while (!loop_->is_idle()) {
      step();
    }
  }

  // Once, after the end.
  Answer answer(std::size_t index) {
    Answer answer;
    while (auto event = streams_[index]->try_next()) {
      if (auto* token = std::get_if<TokenEvent>(&*event)) {
        answer.tokens.push_back(std::move(*token));
      } else if (const auto* finished = std::get_if<GenerationFinished>(&*event)) {
        answer.reason = finished->reason;
      }
    }
    return answer;
  }

  EngineStatus status() const { return loop_->status(); }
  std::int64_t running_max() const { return running_max_; }

 private:
  SteadyClock clock_;
  EngineConfig config_;
  std::int64_t vocab_size_ = 0;
  std::unique_ptr<EngineLoop> loop_;
  std::vector<std::unique_ptr<StreamHandle>> streams_;
  std::int64_t running_max_ = 0;
};

// The answer of one request on an engine that was just made.
Result<Answer> alone(Qwen3_5& model, const Request& request, std::int64_t context_max) {
  auto solo =
      SLUICE_TRY(Program::create(model, {.context_max = context_max,
                                         .sequences_max = 1,
                                         .queue_max = 0,
                                         .prefill_step_max = model.options().step_tokens_max}));
  SLUICE_TRY(solo->submit(request));
  solo->run();
  return solo->answer(0);
}

class Check {
 public:
  Check(Qwen3_5& model, const ExactnessOptions& options,
        const std::function<void(std::int64_t)>& progress)
      : model_(model), options_(options), progress_(progress), random_(options.seed) {}

  Result<ExactnessReport> run() {
    for (std::int64_t round = 0; round < options_.rounds; ++round) {
      SLUICE_TRY(run_round(round));
    }
    return std::move(report_);
  }

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }

  // As many sequences as the memory allows; KV memory for all of them, or for little more than one.
  EngineConfig random_config(std::int64_t round) {
    const CacheLayout& layout = model_.cache_layout();
    const auto blocks = static_cast<std::size_t>(kContextMax / kKvBlockTokens);
    const std::size_t per_sequence = blocks * layout.kv_block_bytes + layout.state_slot_bytes;
    const auto affordable = static_cast<std::int64_t>(options_.memory_max / 2 / per_sequence);
    EngineConfig config{.context_max = kContextMax, .queue_max = options_.requests};
    config.sequences_max =
        1 + below(std::clamp(affordable, std::int64_t{1}, kExactnessSequencesMax));
    config.prefill_step_max = 1 + below(model_.options().step_tokens_max);
    config.prefill_beside_decode_max = below(2) == 0 ? 0 : 1 + below(config.prefill_step_max);
    config.kv_tokens_max = below(2) == 0 ? 0 : kContextMax + below(kContextMax / 4);
    const std::size_t state_bytes = layout.state_slot_bytes;
    // In turns, so that even two rounds go on from what is kept, and have to give some of it up.
    const std::array<std::size_t, 4> budgets{options_.memory_max / 2, 3 * state_bytes, 0,
                                             12 * state_bytes};
    config.reuse_bytes = budgets[static_cast<std::size_t>(round % std::ssize(budgets))];
    return config;
  }

  // The beginning of a family, cut near a block's end as often as not, and something of its own.
  std::vector<TokenId> random_prompt() {
    const std::int64_t family = below(kFamilies);
    const std::int64_t most = std::min(options_.prompt_tokens_max, kContextMax - 64);
    std::int64_t length = 1 + below(most);
    if (below(2) == 0) {
      length = std::clamp(length / 64 * 64 + below(3) - 1, std::int64_t{1}, most);
    }
    std::vector<TokenId> prompt;
    prompt.reserve(static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < length; ++i) {
      prompt.push_back(token_at(options_.seed, family, i, model_.config().vocab_size));
    }
    for (std::int64_t own = below(3) == 0 ? 0 : below(40); own > 0; --own) {
      prompt.push_back(static_cast<TokenId>(below(model_.config().vocab_size)));
    }
    return prompt;
  }

  Request random_request(std::int64_t index) {
    Request request;
    request.id = "request " + std::to_string(index);
    request.token_ids = random_prompt();
    request.stop.tokens_max = below(4) == 0 ? below(kAnswerTokensMax) : below(12);
    request.sampling.logprobs = 3;
    if (below(2) == 0) {
      request.sampling.temperature = 0.9F;
      request.sampling.top_p = 0.95F;
      request.sampling.presence_penalty = 0.5F;
      request.sampling.seed = random_();
    }
    request.priority = below(4) == 0 ? below(5) - 2 : 0;
    request.cache_salt = below(5) == 0 ? "tenant" : "";
    return request;
  }

  // Goes on after an earlier prompt and its whole answer, as a conversation does.
  void continue_earlier(Request& request, const std::vector<Request>& earlier,
                        const std::vector<Answer>& answers) {
    const auto index = static_cast<std::size_t>(below(std::ssize(earlier)));
    std::vector<TokenId> prompt = earlier[index].token_ids;
    for (const TokenEvent& token : answers[index].tokens) {
      prompt.push_back(token.token_id);
    }
    prompt.insert(
        prompt.end(), request.token_ids.begin(),
        request.token_ids.begin() + std::min<std::ptrdiff_t>(30, std::ssize(request.token_ids)));
    if (std::ssize(prompt) < kContextMax) {
      request.token_ids = std::move(prompt);
    }
  }

  Result<void> run_round(std::int64_t round) {
    const EngineConfig config = random_config(round);
    auto program = SLUICE_TRY(Program::create(model_, config));
    std::vector<Request> requests;
    std::vector<Answer> wanted;
    for (std::int64_t i = 0; i < options_.requests; ++i) {
      Request request = random_request(i);
      if (i > 0 && below(3) == 0) {
        continue_earlier(request, requests, wanted);
      }
      if (below(2) == 0) {
        request.stable_positions = {below(std::ssize(request.token_ids) + 1)};
      }
      wanted.push_back(SLUICE_TRY(alone(model_, request, kContextMax)));
      SLUICE_TRY(program->submit(request));
      requests.push_back(std::move(request));
      for (std::int64_t steps = below(3) == 0 ? below(12) : 0; steps > 0; --steps) {
        program->step();
      }
      if (below(8) == 0) {
        program->cancel(below(i + 1));
      }
    }
    program->run();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      compare(round, requests[i], wanted[i], program->answer(i));
    }
    const EngineStatus status = program->status();
    report_.prompt_tokens += status.metrics.wanted_tokens;
    report_.reused_tokens += status.metrics.reused_tokens;
    report_.preemptions += status.preemptions;
    report_.evictions += status.evicted_blocks + status.evicted_checkpoints;
    report_.running_max = std::max(report_.running_max, program->running_max());
    return {};
  }

  void compare(std::int64_t round, const Request& request, const Answer& wanted,
               const Answer& answer) {
    const bool cancelled = answer.reason == FinishReason::cancelled;
    report_.cancelled += cancelled ? 1 : 0;
    report_.tokens += std::ssize(answer.tokens);
    const auto [end, wanted_end] = std::ranges::mismatch(answer.tokens, wanted.tokens, same);
    const bool equal =
        end == answer.tokens.end() &&
        (cancelled || (wanted_end == wanted.tokens.end() && answer.reason == wanted.reason));
    if (!equal) {
      ++report_.difference_count;
      if (std::ssize(report_.differences) < kDifferencesMax) {
        report_.differences.push_back("round " + std::to_string(round) + ", " + request.id + " (" +
                                      std::to_string(request.token_ids.size()) +
                                      " prompt tokens): differs from answer token " +
                                      std::to_string(end - answer.tokens.begin()) + " on");
      }
    }
    ++report_.compared;
    if (progress_) {
      progress_(report_.compared);
    }
  }

  Qwen3_5& model_;
  const ExactnessOptions& options_;
  const std::function<void(std::int64_t)>& progress_;
  std::mt19937_64 random_;
  ExactnessReport report_;
};

}  // namespace

Result<std::vector<std::string>> check_state_reset(Qwen3_5& model, std::int64_t long_tokens,
                                                   std::uint64_t seed) {
  constexpr std::int64_t kShortTokens = 100;
  constexpr std::int64_t kAnswerTokens = 16;
  const auto request_of = [&](std::int64_t family, std::int64_t length) {
    Request request;
    request.token_ids.reserve(static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < length; ++i) {
      request.token_ids.push_back(token_at(seed, family, i, model.config().vocab_size));
    }
    request.stop.tokens_max = kAnswerTokens;
    request.sampling.logprobs = 3;
    return request;
  };
  const Request brief = request_of(0, kShortTokens);
  const Request lengthy = request_of(1, long_tokens);
  const std::int64_t context_max = long_tokens + kAnswerTokens;
  const Answer brief_alone = SLUICE_TRY(alone(model, brief, context_max));
  const Answer lengthy_alone = SLUICE_TRY(alone(model, lengthy, context_max));
  std::vector<std::string> differences;
  const CacheLayout& layout = model.cache_layout();
  const auto blocks = static_cast<std::size_t>(ceil_div(context_max, kKvBlockTokens));
  const std::size_t room = blocks * layout.kv_block_bytes + 8 * layout.state_slot_bytes;
  for (const std::size_t reuse_bytes : {std::size_t{0}, room}) {
    auto program =
        SLUICE_TRY(Program::create(model, {.context_max = context_max,
                                           .sequences_max = 1,
                                           .queue_max = 4,
                                           .prefill_step_max = model.options().step_tokens_max,
                                           .reuse_bytes = reuse_bytes}));
    for (std::size_t i = 0; i < 4; ++i) {
      const bool is_long = i % 2 == 0;
      SLUICE_TRY(program->submit(is_long ? lengthy : brief));
      program->run();
      if (!same_answer(program->answer(i), is_long ? lengthy_alone : brief_alone)) {
        differences.push_back(std::string(is_long ? "the long" : "the short") + " request, run " +
                              std::to_string(i + 1) + " of long, short, long, short" +
                              (reuse_bytes == 0 ? "" : ", with the cache"));
      }
    }
  }
  return differences;
}

Result<ExactnessReport> check_exactness(
    Qwen3_5& model, const ExactnessOptions& options,
    const std::function<void(std::int64_t compared)>& progress) {
  return Check(model, options, progress).run();
}

}  // namespace sluice
