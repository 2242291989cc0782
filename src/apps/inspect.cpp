#include "apps/inspect.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/embedded_model.h"
#include "apps/model_loader.h"
#include "apps/progress_bar.h"
#include "weights/memory_estimate.h"
#include "weights/model_config.h"
#include "weights/packed_model.h"
#include "weights/safetensors.h"
#include "weights/tensor_registry.h"

namespace sluice::apps {
namespace {

namespace fs = std::filesystem;

struct InspectOptions {
  std::string model;  // empty: the embedded one
  std::int64_t sequences = 1;
};

constexpr std::array<std::int64_t, 4> kContexts{4096, 32768, 131072, 262144};

void print_row(const char* name, const std::string& value) {
  fmt::print("  {:<22}{}\n", name, value);
}

std::string format_millions(std::int64_t count) {
  return fmt::format("{:.1f} M", static_cast<double>(count) / 1e6);
}

std::string format_bytes_of(std::int64_t bytes) {
  return format_bytes(static_cast<std::size_t>(bytes));
}

void print_config(const ModelConfig& config) {
  const auto linear = std::ranges::count(config.layer_types, LayerType::linear_attention);
  fmt::print("Architecture\n");
  print_row("model_type", config.model_type);
  print_row("layers",
            fmt::format("{} ({} linear attention, {} full attention)", config.num_hidden_layers,
                        linear, config.num_hidden_layers - linear));
  print_row("hidden, intermediate",
            fmt::format("{}, {}", config.hidden_size, config.intermediate_size));
  print_row("full attention", fmt::format("{} heads on {} KV heads, head size {}, rotary {}",
                                          config.num_attention_heads, config.num_key_value_heads,
                                          config.head_dim, config.rope.rotary_dim));
  print_row(
      "linear attention",
      fmt::format("{} key heads of {}, {} value heads of {}, conv {}", config.linear_num_key_heads,
                  config.linear_key_head_dim, config.linear_num_value_heads,
                  config.linear_value_head_dim, config.linear_conv_kernel_dim));
  print_row("vocabulary", fmt::format("{}, {} head", config.vocab_size,
                                      config.tie_word_embeddings ? "tied" : "own"));
  print_row("context", fmt::format("{} tokens", config.max_position_embeddings));
  print_row("MTP layers", fmt::format("{}", config.mtp_num_hidden_layers));
  print_row("vision tower",
            config.vision ? fmt::format("{} blocks", config.vision->depth) : "none");
  print_row("weights on disk", config.fp8_weights ? "FP8 blocks" : "plain floats");
}

void print_parameters(const ModelConfig& config) {
  const GroupSizes parameters = count_parameters(config);
  fmt::print("\nParameters\n");
  print_row("text", format_millions(parameters.text));
  print_row("MTP", format_millions(parameters.mtp));
  print_row("vision", format_millions(parameters.vision));
}

void print_text(const TextSide& text) {
  fmt::print("\nText\n");
  print_row("tokenizer", text.tokenizer ? fmt::format("{} ids", text.tokenizer->vocab_size())
                                        : "none: token ids only");
  print_row("chat template", text.chat_template ? "present" : "none");
  std::string stops;
  for (const std::int32_t id : text.generation.eos_token_ids) {
    stops += fmt::format("{}{}", stops.empty() ? "" : ", ", id);
  }
  print_row("stop ids", stops.empty() ? "none" : stops);
}

// Opens the weights and compares them with the list; a directory with only a config is fine.
Result<void> print_checkpoint(const fs::path& directory, const ModelConfig& config) {
  std::error_code ignored;
  fmt::print("\nCheckpoint\n");
  if (!PackedModel::is_there(directory) && !fs::exists(directory / "model.safetensors", ignored) &&
      !fs::exists(directory / "model.safetensors.index.json", ignored)) {
    print_row("tensors", "no safetensors files here");
    return {};
  }
  const Checkpoint checkpoint = SLUICE_TRY(Checkpoint::open(directory));
  SLUICE_TRY(check_tensors(config, checkpoint));
  const PackedModel* packed = checkpoint.packed();
  print_row("packed", packed == nullptr ? "no" : fmt::format("as {}", to_string(packed->preset())));
  const std::size_t count =
      packed == nullptr ? checkpoint.tensors().size() : packed->manifest().tensors.size();
  print_row("tensors", fmt::format("{}, names and shapes as the config says", count));
  print_row("file bytes", format_bytes(checkpoint.file_bytes()));
  return {};
}

Result<void> print_memory(const ModelConfig& config, std::int64_t sequences) {
  const bool with_vision = config.vision.has_value();
  fmt::print("\nMemory for {} sequence{} of the given context (weights{} + KV + state)\n",
             sequences, sequences == 1 ? "" : "s", with_vision ? " with vision tower" : "");
  fmt::print("  {:<10}{:>12}", "preset", "weights");
  std::vector<std::int64_t> contexts;
  for (const std::int64_t context : kContexts) {
    if (context <= config.max_position_embeddings) {
      contexts.push_back(context);
      fmt::print("{:>12}", context);
    }
  }
  fmt::print("\n");
  for (const WeightPreset preset : kWeightPresets) {
    const GroupSizes weights = weight_bytes(config, preset);
    fmt::print("  {:<10}{:>12}", to_string(preset), format_bytes_of(weights.text + weights.vision));
    for (const std::int64_t context : contexts) {
      const MemoryEstimate estimate =
          SLUICE_TRY(estimate_memory(config, {.preset = preset,
                                              .context_tokens = context,
                                              .sequences = sequences,
                                              .with_vision = with_vision}));
      fmt::print("{:>12}", format_bytes_of(estimate.total_bytes()));
    }
    fmt::print("\n");
  }
  fmt::print("  KV {} per token; state {} per sequence.\n",
             format_bytes_of(kv_bytes_per_token(config)),
             format_bytes_of(recurrent_state_bytes(config) + conv_state_bytes(config)));
  return {};
}

Result<int> run_inspect(const InspectOptions& options) {
  const fs::path directory =
      options.model.empty() ? SLUICE_TRY(find_embedded_model()) : fs::path(options.model);
  const ModelConfig config = SLUICE_TRY(load_model_config(directory));
  const TextSide text = SLUICE_TRY(load_text_side(directory, config));
  fmt::print("{}\n\n", directory.string());
  print_config(config);
  print_parameters(config);
  print_text(text);
  SLUICE_TRY(print_checkpoint(directory, config));
  SLUICE_TRY(print_memory(config, options.sequences));
  return kExitSuccess;
}

}  // namespace

void add_inspect_command(CLI::App& program, Action& action) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command =
      program.add_subcommand("inspect", "What a model holds and how much memory it takes");
  command
      ->add_option("MODEL", options->model, "Directory of the model; without it the embedded one")
      ->type_name("");
  check_integer(*command
                     ->add_option("--sequences", options->sequences,
                                  "Sequences at once, for the memory table")
                     ->type_name("N")
                     ->capture_default_str(),
                {1, kSequencesMax});
  command->callback([options, &action] { action = [options] { return run_inspect(*options); }; });
}

}  // namespace sluice::apps
