#include "apps/bench_run.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/checked_math.h"
#include "platform/aligned_buffer.h"
#include "request/request.h"
#include "sampling/sampler.h"
#include "weights/random_weights.h"

namespace sluice::apps {
namespace {

constexpr std::int64_t kWarmTokens = 32;  // last tokens of a context that are computed
constexpr std::int64_t kWarmSteps = 2;    // decode steps before the clock starts
constexpr std::int64_t kStepsMin = 5;     // of a decode, whatever they take

std::size_t cache_bytes(const CacheLayout& layout, std::int64_t sequences, std::int64_t tokens) {
  const std::int64_t blocks = ceil_div(tokens, kKvBlockTokens);
  return static_cast<std::size_t>(sequences) *
         (static_cast<std::size_t>(blocks) * layout.kv_block_bytes + layout.state_slot_bytes);
}

// Sequences of equal length, each with blocks and a state slot of its own.
class Sequences {
 public:
  static Result<Sequences> create(const Qwen3_5& model, std::int64_t count,
                                  std::int64_t tokens_max) {
    Sequences made;
    const CacheLayout& layout = model.cache_layout();
    made.blocks_ = ceil_div(tokens_max, kKvBlockTokens);
    made.kv_ = SLUICE_TRY(AlignedBuffer::allocate(static_cast<std::size_t>(count * made.blocks_) *
                                                  layout.kv_block_bytes));
    made.states_ = SLUICE_TRY(
        AlignedBuffer::allocate(static_cast<std::size_t>(count) * layout.state_slot_bytes));
    made.logits_ = SLUICE_TRY(AlignedBuffer::allocate(
        static_cast<std::size_t>(count * model.config().vocab_size) * sizeof(float)));
    made.block_table_.resize(static_cast<std::size_t>(count * made.blocks_));
    std::iota(made.block_table_.begin(), made.block_table_.end(), 0);
    return made;
  }

  // As after no token at all. Keys and values of before are beyond what any row sees.
  void forget() { std::fill_n(states_.data(), states_.size(), std::byte{0}); }

  // Fills all keys and values with normal numbers.
  void fill_keys(ThreadPool& pool) {
    constexpr std::int64_t kPatternBytes = std::int64_t{1} << 20;
    const std::vector<bf16_t> pattern =
        random_bf16(static_cast<std::size_t>(kPatternBytes) / sizeof(bf16_t), 1.0F, 2);
    const auto* source = reinterpret_cast<const std::byte*>(pattern.data());
    const auto size = static_cast<std::int64_t>(kv_.size());
    pool.for_ranges(size, kPatternBytes, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; at += kPatternBytes) {
        std::copy_n(source, std::min(kPatternBytes, end - at), kv_.data() + at);
      }
    });
  }

  // Adds token_ids, equally many to each of the sequences [first, first + count), at `position`.
  // Leaves the logits of each one's last token, if wanted.
  struct Step {
    std::int64_t first = 0;
    std::int64_t count = 1;
    std::int64_t position = 0;
    bool wants_logits = true;
  };
  void forward(Qwen3_5& model, const Step& step, std::span<const TokenId> token_ids) {
    const std::int64_t tokens = static_cast<std::int64_t>(token_ids.size()) / step.count;
    slices_.clear();
    logit_rows_.clear();
    rope_positions_.resize(3 * token_ids.size());
    for (std::int64_t i = 0; i < step.count; ++i) {
      slices_.push_back(
          {.position = step.position,
           .token_begin = i * tokens,
           .token_count = tokens,
           .block_table = std::span(block_table_)
                              .subspan(static_cast<std::size_t>((step.first + i) * blocks_),
                                       static_cast<std::size_t>(blocks_)),
           .state_slot = static_cast<std::int32_t>(step.first + i)});
      if (step.wants_logits) {
        logit_rows_.push_back(static_cast<std::int32_t>((i + 1) * tokens - 1));
      }
    }
    for (std::size_t i = 0; i < rope_positions_.size(); ++i) {  // [3][rows], text: all alike
      const auto row = static_cast<std::int64_t>(i % token_ids.size());
      rope_positions_[i] = static_cast<std::int32_t>(step.position + row % tokens);
    }
    const ForwardBatch batch{.token_ids = token_ids,
                             .rope_positions = rope_positions_,
                             .sequences = slices_,
                             .logit_rows = logit_rows_};
    model.forward(batch, {.kv_blocks = kv_.data(), .state_slots = states_.data()},
                  std::span(logits_.as<float>(), logits_.size() / sizeof(float)));
  }

  std::span<const float> logits(std::int64_t sequence, std::int64_t vocab_size) const {
    return {logits_.as<float>() + sequence * vocab_size, static_cast<std::size_t>(vocab_size)};
  }

 private:
  std::int64_t blocks_ = 0;  // of one sequence
  AlignedBuffer kv_;
  AlignedBuffer states_;
  AlignedBuffer logits_;
  std::vector<std::int32_t> block_table_;  // [sequence][blocks_]
  std::vector<SequenceSlice> slices_;
  std::vector<std::int32_t> logit_rows_;
  std::vector<std::int32_t> rope_positions_;
};

std::vector<TokenId> random_tokens(std::int64_t count, std::int64_t vocab_size) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::uint64_t random = 1;
  for (TokenId& token : tokens) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    token = static_cast<TokenId>((random >> 33) % static_cast<std::uint64_t>(vocab_size));
  }
  return tokens;
}

// The whole prompt in the steps the model allows. stepped() hears of every step's tokens.
template <typename Stepped>
void run_prompt(Qwen3_5& model, Sequences& sequence, std::span<const TokenId> prompt,
                const Stepped& stepped) {
  const auto step = static_cast<std::size_t>(model.options().step_tokens_max);
  for (std::size_t begin = 0; begin < prompt.size(); begin += step) {
    const std::size_t count = std::min(step, prompt.size() - begin);
    sequence.forward(model,
                     {.position = static_cast<std::int64_t>(begin),
                      .wants_logits = begin + count == prompt.size()},
                     prompt.subspan(begin, count));
    stepped(static_cast<std::int64_t>(count));
  }
}

// The greedy choice for each sequence.
Result<void> choose(Sampler& sampler, const Sequences& sequences, std::int64_t vocab_size,
                    std::span<TokenId> chosen) {
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const SampleInput input{.logits = sequences.logits(static_cast<std::int64_t>(i), vocab_size),
                            .prompt = {},
                            .generated = {},
                            .allowed = {}};
    chosen[i] = SLUICE_TRY(sampler.sample(input, SamplingParams{})).token_id;
  }
  return {};
}

}  // namespace

BenchRunner::BenchRunner(Qwen3_5& model, ops::CeilingProbe& probe, ThreadPool& pool,
                         const Clock& clock, const Options& options)
    : model_(model), probe_(probe), pool_(pool), clock_(clock), options_(options) {}

std::int64_t BenchRunner::steps_of(const Options& options) {
  return kWarmSteps + options.steps_max;
}

std::size_t BenchRunner::prefill_bytes(std::int64_t tokens) const {
  return cache_bytes(model_.cache_layout(), 1, tokens) +
         static_cast<std::size_t>(model_.config().vocab_size) * sizeof(float);
}

std::size_t BenchRunner::decode_bytes(const DecodeShape& shape) const {
  const std::int64_t tokens = shape.context + steps_of(options_);
  return cache_bytes(model_.cache_layout(), shape.batch, tokens) +
         static_cast<std::size_t>(shape.batch * model_.config().vocab_size) * sizeof(float);
}

Result<BenchRuns> BenchRunner::prefill(std::int64_t tokens, const BenchProgress& progress) {
  const std::int64_t vocab_size = model_.config().vocab_size;
  Sequences sequence = SLUICE_TRY(Sequences::create(model_, 1, tokens));
  Sampler sampler(vocab_size);
  const std::vector<TokenId> prompt = random_tokens(tokens, vocab_size);
  const std::int64_t first_step = std::min(tokens, model_.options().step_tokens_max);
  run_prompt(model_, sequence, std::span(prompt).first(static_cast<std::size_t>(first_step)),
             [](std::int64_t) {});

  BenchRuns runs;
  const ops::Ceiling before = probe_.sample();
  double total = 0.0;
  const auto wants_more = [&] {
    const auto count = static_cast<std::int64_t>(runs.seconds.size());
    // Another run only if it is likely to fit.
    return count == 0 || (count < options_.runs_max &&
                          total + total / static_cast<double>(count) <= options_.seconds);
  };
  while (wants_more()) {
    sequence.forget();
    std::int64_t done = 0;
    const Clock::TimePoint begin = clock_.now();
    run_prompt(model_, sequence, prompt, [&](std::int64_t count) {
      done += count;
      progress(done, tokens);
    });
    TokenId chosen = 0;
    SLUICE_TRY(choose(sampler, sequence, vocab_size, std::span(&chosen, 1)));
    runs.seconds.push_back(seconds_between(begin, clock_.now()));
    total += runs.seconds.back();
  }
  runs.ceiling = ops::Ceiling::better_of(before, probe_.sample());
  return runs;
}

Result<BenchRuns> BenchRunner::decode(const DecodeShape& shape, const BenchProgress& progress) {
  const std::int64_t vocab_size = model_.config().vocab_size;
  Sequences sequences =
      SLUICE_TRY(Sequences::create(model_, shape.batch, shape.context + steps_of(options_)));
  Sampler sampler(vocab_size);
  std::vector<TokenId> chosen = random_tokens(shape.batch, vocab_size);
  if (shape.context > 0) {
    sequences.fill_keys(pool_);
    const std::int64_t warm =
        std::min({shape.context, kWarmTokens, model_.options().step_tokens_max});
    const std::vector<TokenId> tokens = random_tokens(warm, vocab_size);
    for (std::int64_t i = 0; i < shape.batch; ++i) {
      sequences.forward(
          model_, {.first = i, .position = shape.context - warm, .wants_logits = false}, tokens);
    }
  }
  std::int64_t position = shape.context;
  const auto step = [&]() -> Result<void> {
    sequences.forward(model_, {.count = shape.batch, .position = position++}, chosen);
    return choose(sampler, sequences, vocab_size, chosen);
  };
  for (std::int64_t i = 0; i < kWarmSteps; ++i) {
    SLUICE_TRY(step());
  }

  BenchRuns runs;
  const ops::Ceiling before = probe_.sample();
  double total = 0.0;
  for (std::int64_t i = 0; i < options_.steps_max && (i < kStepsMin || total < options_.seconds);
       ++i) {
    const Clock::TimePoint begin = clock_.now();
    SLUICE_TRY(step());
    runs.seconds.push_back(seconds_between(begin, clock_.now()));
    total += runs.seconds.back();
    progress(i + 1, options_.steps_max);
  }
  runs.ceiling = ops::Ceiling::better_of(before, probe_.sample());
  return runs;
}

}  // namespace sluice::apps
