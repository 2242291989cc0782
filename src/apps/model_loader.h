// A model directory turned into everything a command needs: configuration, text side, packed
// weights, kernels and threads. Reads the environment variable SLUICE_FORCE_ISA; prints the
// start-up lines and the loading progress on stderr.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/options.h"
#include "base/result.h"
#include "engine/engine.h"
#include "model/qwen3_5.h"
#include "platform/cpu_features.h"
#include "platform/thread_pool.h"
#include "text/chat_template.h"
#include "text/generation_config.h"
#include "text/tokenizer.h"
#include "weights/model_config.h"
#include "weights/safetensors.h"

namespace sluice::apps {

// The text side of a checkpoint. A directory without tokenizer.json has neither tokenizer nor
// template and can only be driven by token ids.
struct TextSide {
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  GenerationConfig generation;
};

// Reads the small files; quick. Errors name the file. A tokenizer with more ids than the model has
// rows is corrupt_data: it belongs to another model.
Result<TextSide> load_text_side(const std::filesystem::path& directory, const ModelConfig& config);

// The kernels for this machine, SLUICE_FORCE_ISA respected.
Result<const kernels::KernelTable*> choose_kernels(const CpuFeatures& cpu);

// One line: version, CPU, the chosen kernels out of those that would run here.
std::string describe_machine(const CpuFeatures& cpu, const kernels::KernelTable& table);

class LoadedModel {
 public:
  // open() and load_weights(): everything is ready to compute.
  static Result<std::unique_ptr<LoadedModel>> load(const std::filesystem::path& directory,
                                                   const ModelConfig& config,
                                                   const RuntimeOptions& options,
                                                   const ModelOptions& model_options);

  // The same with random weights (weights/random_weights.h); `name` is for the start-up lines.
  static Result<std::unique_ptr<LoadedModel>> load_random(const std::string& name,
                                                          const ModelConfig& config,
                                                          const RuntimeOptions& options,
                                                          const ModelOptions& model_options);

  // Quick: what the files say of themselves. `directory` holds config.json; config is what
  // load_model_config() made of it. Errors name file, tensor or option.
  static Result<std::unique_ptr<LoadedModel>> open(const std::filesystem::path& directory,
                                                   const ModelConfig& config,
                                                   const RuntimeOptions& options);
  // Once. on_progress (may be empty) gets the bytes done and their total.
  Result<void> load_weights(const ModelOptions& model_options,
                            const LoadProgress& on_progress = {});

  // After load_weights().
  Qwen3_5& model() { return *model_; }
  const kernels::KernelTable& table() const { return *facts_.table; }
  ThreadPool& pool() { return pool_; }  // the model's: for its owner, between steps
  const Checkpoint& checkpoint() const { return checkpoint_; }
  WeightPreset preset() const { return facts_.preset; }
  double load_seconds() const { return load_seconds_; }

 private:
  using OpenWeights = std::function<Result<Checkpoint>()>;
  struct Facts {
    ModelConfig config;
    const kernels::KernelTable* table = nullptr;
    WeightPreset preset = WeightPreset::bf16;
    bool quiet = false;
  };

  LoadedModel(Checkpoint checkpoint, Facts facts, int threads)
      : checkpoint_(std::move(checkpoint)), facts_(std::move(facts)), pool_(threads) {}

  // open_weights is called once the start-up lines are out.
  static Result<std::unique_ptr<LoadedModel>> open_from(const std::string& name,
                                                        const OpenWeights& open_weights,
                                                        const ModelConfig& config,
                                                        const RuntimeOptions& options);

  // In this order: the model reads from the mapping and runs on the pool until it is gone.
  Checkpoint checkpoint_;
  Facts facts_;
  ThreadPool pool_;
  std::unique_ptr<Qwen3_5> model_;
  double load_seconds_ = 0.0;
};

// Ids the sampler may choose: those of the tokenizer (rows beyond are padding), or all.
std::int64_t sampled_vocab_size(const TextSide& text, const ModelConfig& config);

// The tokens of one sequence that this model was made for. Error invalid_argument when
// `context_max` is larger, with both.
Result<void> check_context(std::int64_t context_max, const ModelConfig& config);

// The context to reserve: `given` tokens, checked as above; for 0 `usual` or, if that is less, all
// the model was made for.
Result<std::int64_t> choose_context(std::int64_t given, std::int64_t usual,
                                    const ModelConfig& config);

// "memory: weights 1.41 GiB, KV cache ...": what is reserved from now on.
std::string describe_memory(Qwen3_5& model, const EngineMemory& memory);

// Prints the line above (unless quiet) and starts the engine. The model must outlive it.
Result<std::unique_ptr<Engine>> start_engine(Qwen3_5& model, const EngineConfig& config,
                                             bool quiet);

}  // namespace sluice::apps
