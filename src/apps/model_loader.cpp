#include "apps/model_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "apps/console.h"
#include "apps/progress_bar.h"
#include "apps/version.h"
#include "base/clock.h"
#include "kernels/kernel_table.h"
#include "kernels/select.h"
#include "model/vision_encoder.h"
#include "weights/packed_model.h"
#include "weights/random_weights.h"

namespace sluice::apps {
namespace {

// "qwen3_5, 24 layers, hidden 1024, vocabulary 248320"
std::string describe_model(const std::string& name, const ModelConfig& config) {
  const auto linear = std::ranges::count(config.layer_types, LayerType::linear_attention);
  return fmt::format("model: {} ({}, {} layers of which {} linear, hidden {}, vocabulary {})", name,
                     config.model_type, config.num_hidden_layers, linear, config.hidden_size,
                     config.vocab_size);
}

}  // namespace

Result<TextSide> load_text_side(const std::filesystem::path& directory, const ModelConfig& config) {
  TextSide text;
  std::error_code ignored;
  if (std::filesystem::exists(directory / "tokenizer.json", ignored)) {
    text.tokenizer = SLUICE_TRY(Tokenizer::load(directory));
    if (text.tokenizer->vocab_size() > config.vocab_size) {
      return fail(ErrorCode::corrupt_data,
                  fmt::format("{}: {} ids, but the model has {} rows: not its tokenizer",
                              (directory / "tokenizer.json").string(), text.tokenizer->vocab_size(),
                              config.vocab_size));
    }
    Result<ChatTemplate> chat_template = ChatTemplate::load(directory);
    if (chat_template) {
      text.chat_template = std::move(*chat_template);
    } else if (chat_template.error().code != ErrorCode::not_found) {
      return std::unexpected(std::move(chat_template).error());
    }
  }
  text.generation =
      SLUICE_TRY(load_generation_config(directory, text.tokenizer ? &*text.tokenizer : nullptr));
  for (const std::int32_t id : text.generation.eos_token_ids) {
    if (id >= config.vocab_size) {
      return fail(ErrorCode::corrupt_data,
                  fmt::format("{}: eos_token_id {}, but the model has {} rows", directory.string(),
                              id, config.vocab_size));
    }
  }
  return text;
}

Result<const kernels::KernelTable*> choose_kernels(const CpuFeatures& cpu) {
  const char* forced = std::getenv("SLUICE_FORCE_ISA");
  Result<const kernels::KernelTable*> table =
      kernels::select_kernels(cpu, forced == nullptr ? "" : forced);
  if (!table && forced != nullptr) {
    table.error().message = fmt::format("SLUICE_FORCE_ISA: {}", table.error().message);
  }
  return table;
}

std::string describe_machine(const CpuFeatures& cpu, const kernels::KernelTable& table) {
  std::string supported;
  for (const kernels::KernelTable* other : kernels::supported_tables(cpu)) {
    supported += fmt::format(" {}", other->name);
  }
  return fmt::format("cpu: {}; kernels: {} (supported:{})", cpu.vendor_model, table.name,
                     supported);
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::load(const std::filesystem::path& directory,
                                                       const ModelConfig& config,
                                                       const RuntimeOptions& options,
                                                       const ModelOptions& model_options) {
  auto loaded = SLUICE_TRY(open(directory, config, options));
  SLUICE_TRY(loaded->load_weights(model_options));
  return loaded;
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::load_random(const std::string& name,
                                                              const ModelConfig& config,
                                                              const RuntimeOptions& options,
                                                              const ModelOptions& model_options) {
  auto loaded = SLUICE_TRY(open_from(
      name + ", random weights", [&] { return make_random_checkpoint(config); }, config, options));
  SLUICE_TRY(loaded->load_weights(model_options));
  return loaded;
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::open(const std::filesystem::path& directory,
                                                       const ModelConfig& config,
                                                       const RuntimeOptions& options) {
  return open_from(
      directory.string(), [&] { return Checkpoint::open(directory); }, config, options);
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::open_from(const std::string& name,
                                                            const OpenWeights& open_weights,
                                                            const ModelConfig& config,
                                                            const RuntimeOptions& options) {
  const CpuFeatures cpu = detect_cpu_features();
  const kernels::KernelTable* table = SLUICE_TRY(choose_kernels(cpu));
  const int threads = options.threads == 0 ? available_cpus() : static_cast<int>(options.threads);
  if (!options.quiet) {
    print_note("sluice {}: {}; threads: {}\n{}\n", version(), describe_machine(cpu, *table),
               threads, describe_model(name, config));
  }
  Checkpoint checkpoint = SLUICE_TRY(open_weights());
  const WeightPreset preset = SLUICE_TRY(resolve_preset(options.preset, checkpoint));
  return std::unique_ptr<LoadedModel>(
      new LoadedModel(std::move(checkpoint), {config, table, preset, options.quiet}, threads));
}

Result<void> LoadedModel::load_weights(const ModelOptions& model_options,
                                       const LoadProgress& on_progress) {
  const SteadyClock clock;
  const Clock::TimePoint begin = clock.now();
  ProgressBar bar("loading", "bytes", !facts_.quiet);
  ModelOptions with_preset = model_options;
  with_preset.preset = facts_.preset;
  model_ = SLUICE_TRY(Qwen3_5::load(facts_.config, checkpoint_, *facts_.table, pool_, with_preset,
                                    [&](std::size_t done, std::size_t total) {
                                      bar.update(done, total);
                                      if (on_progress) {
                                        on_progress(done, total);
                                      }
                                    }));
  load_seconds_ = seconds_between(begin, clock.now());
  return {};
}

std::int64_t sampled_vocab_size(const TextSide& text, const ModelConfig& config) {
  return text.tokenizer ? text.tokenizer->vocab_size() : config.vocab_size;
}

Result<void> check_context(std::int64_t context_max, const ModelConfig& config) {
  if (context_max > config.max_position_embeddings) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("a context of {} tokens: the model was made for at most {} "
                            "(max_position_embeddings)",
                            context_max, config.max_position_embeddings));
  }
  return {};
}

Result<std::int64_t> choose_context(std::int64_t given, std::int64_t usual,
                                    const ModelConfig& config) {
  if (given == 0) {
    return std::min(usual, config.max_position_embeddings);
  }
  SLUICE_TRY(check_context(given, config));
  return given;
}

std::string describe_memory(Qwen3_5& model, const EngineMemory& memory) {
  std::string vision;
  if (const VisionEncoder* encoder = model.vision(); encoder != nullptr) {
    constexpr std::int64_t kPatchPixels = kVisionPatchSize * kVisionPatchSize;
    vision =
        fmt::format("; vision encoder: weights {}, workspace {} (pictures of {} pixels), rows {}",
                    format_bytes(encoder->weight_bytes()), format_bytes(encoder->workspace_bytes()),
                    encoder->patches_max() * kPatchPixels, format_bytes(memory.picture_bytes));
  }
  return fmt::format(
      "memory: weights {}, KV cache {} ({} tokens), states {}, {} more for kept prefixes, "
      "logits {}, workspace {}{}",
      format_bytes(model.weight_bytes()), format_bytes(memory.kv_bytes),
      memory.kv_block_count * kKvBlockTokens, format_bytes(memory.state_bytes),
      format_bytes(memory.reuse_bytes), format_bytes(memory.logits_bytes),
      format_bytes(model.workspace_bytes()), vision);
}

Result<std::unique_ptr<Engine>> start_engine(Qwen3_5& model, const EngineConfig& config,
                                             bool quiet) {
  const EngineMemory memory = SLUICE_TRY(
      plan_memory(config, model.cache_layout(), model.options(), model.config().vocab_size));
  if (!quiet) {
    print_note("{}\n", describe_memory(model, memory));
  }
  return Engine::start(model, config);
}

}  // namespace sluice::apps
