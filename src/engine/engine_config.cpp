// plan_memory(): the ranges of EngineConfig and the bytes they cost.
#include <algorithm>
#include <array>
#include <string>

#include "base/checked_math.h"
#include "cache/zeroed_slab.h"
#include "engine/engine.h"

namespace sluice {
namespace {

constexpr std::int64_t kContextMax = std::int64_t{1} << 24;
constexpr std::int64_t kSequencesMax = 1024;
constexpr std::int64_t kQueueMax = 65536;
constexpr std::int64_t kStepTokensMax = std::int64_t{1} << 20;

struct Range {
  const char* field;
  std::int64_t value;
  std::int64_t lowest;
  std::int64_t highest;
};

Result<void> check_ranges(const EngineConfig& config, const ModelOptions& options,
                          std::int64_t vocab_size) {
  const std::array ranges{
      Range{"context_max", config.context_max, 2, kContextMax},
      Range{"sequences_max", config.sequences_max, 1, kSequencesMax},
      Range{"queue_max", config.queue_max, 0, kQueueMax},
      Range{"prefill_step_max", config.prefill_step_max, 1, kStepTokensMax},
      Range{"prefill_beside_decode_max", config.prefill_beside_decode_max, 0, kStepTokensMax},
      Range{"score_step_max", config.score_step_max, 0,
            std::max<std::int64_t>(options.step_logit_rows_max - config.sequences_max, 0)},
      Range{"sampled_vocab_size", config.sampled_vocab_size, 0, vocab_size},
      Range{"kv_tokens_max", config.kv_tokens_max, 0, kContextMax * kSequencesMax},
      Range{"step_tokens_max", options.step_tokens_max, 1, kStepTokensMax},
      Range{"step_logit_rows_max", options.step_logit_rows_max, 1, kStepTokensMax},
  };
  for (const Range& range : ranges) {
    if (range.value < range.lowest || range.value > range.highest) {
      return fail(ErrorCode::invalid_argument,
                  std::string(range.field) + ": " + std::to_string(range.value) + ", want " +
                      std::to_string(range.lowest) + " to " + std::to_string(range.highest),
                  range.field);
    }
  }
  if (config.kv_tokens_max != 0 && config.kv_tokens_max < config.context_max) {
    return fail(ErrorCode::invalid_argument,
                "kv_tokens_max: " + std::to_string(config.kv_tokens_max) +
                    ", want at least context_max (" + std::to_string(config.context_max) +
                    "), so that one sequence always fits",
                "kv_tokens_max");
  }
  return {};
}

// Kept prefixes are counted in blocks and slots: so many that their bookkeeping stays small.
Result<void> check_reuse(const EngineConfig& config, const CacheLayout& layout) {
  for (const std::size_t item_bytes : {layout.kv_block_bytes, layout.state_slot_bytes}) {
    const auto items_max = static_cast<std::size_t>(ZeroedSlab::kItemsMax) / 2;
    if (item_bytes != 0 && config.reuse_bytes / item_bytes > items_max) {
      return fail(ErrorCode::invalid_argument,
                  "reuse_bytes: " + std::to_string(config.reuse_bytes) + ", want at most " +
                      std::to_string(items_max * item_bytes) + " for this model",
                  "reuse_bytes");
    }
  }
  return {};
}

Result<std::size_t> bytes_of(const std::string& what, std::int64_t count, std::size_t item_bytes) {
  const auto bytes = checked_mul(static_cast<std::size_t>(count), item_bytes);
  if (!bytes) {
    return fail(ErrorCode::resource_exhausted, what + ": " + std::to_string(count) + " times " +
                                                   std::to_string(item_bytes) +
                                                   " bytes overflow the address space");
  }
  return *bytes;
}

}  // namespace

Result<EngineMemory> plan_memory(const EngineConfig& config, const CacheLayout& layout,
                                 const ModelOptions& options, std::int64_t vocab_size) {
  SLUICE_TRY(check_ranges(config, options, vocab_size));
  EngineMemory memory;
  memory.kv_block_count = config.kv_tokens_max != 0
                              ? ceil_div(config.kv_tokens_max, kKvBlockTokens)
                              : config.sequences_max * ceil_div(config.context_max, kKvBlockTokens);
  memory.kv_bytes = SLUICE_TRY(bytes_of("KV blocks", memory.kv_block_count, layout.kv_block_bytes));
  SLUICE_TRY(check_reuse(config, layout));
  memory.reuse_bytes = config.reuse_bytes;
  memory.state_bytes =
      SLUICE_TRY(bytes_of("state slots", config.sequences_max, layout.state_slot_bytes));
  const std::int64_t logit_rows =
      std::min(options.step_logit_rows_max, config.sequences_max) + config.score_step_max;
  memory.logits_bytes = SLUICE_TRY(
      bytes_of("logit rows", logit_rows, static_cast<std::size_t>(vocab_size) * sizeof(float)));
  if (options.vision_patches_max > 0 && layout.picture_row_bytes > 0) {
    memory.picture_bytes = std::max(
        config.picture_bytes,
        SLUICE_TRY(bytes_of("rows of pictures", config.context_max, layout.picture_row_bytes)));
  }
  return memory;
}

}  // namespace sluice
