#include "model/qwen3_5.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/attention_layer.h"
#include "model/embedding.h"
#include "model/gdn_layer.h"
#include "model/mlp.h"
#include "model/rope.h"
#include "model/vision_encoder.h"
#include "ops/rows.h"
#include "weights/packed_model.h"
#include "weights/tensor_registry.h"

namespace sluice {
namespace {

struct DecoderLayer {
  std::vector<float> input_layernorm;           // 1 + w
  std::vector<float> post_attention_layernorm;  // 1 + w
  std::optional<GdnLayer> gdn;                  // exactly one of the two mixers
  std::optional<AttentionLayer> attention;
  Mlp mlp;
};

struct Weights {
  Embedding embed_tokens;
  std::vector<DecoderLayer> layers;
  std::vector<float> norm;  // 1 + w
  ops::PackedLinear lm_head;
  std::size_t packed_bytes = 0;
};

Result<DecoderLayer> load_layer(const ModelConfig& config, std::size_t index,
                                const std::string& prefix, std::size_t cache_offset,
                                WeightLoader& loader) {
  DecoderLayer layer;
  layer.input_layernorm = SLUICE_TRY(loader.norm_weight(prefix + "input_layernorm.weight"));
  layer.post_attention_layernorm =
      SLUICE_TRY(loader.norm_weight(prefix + "post_attention_layernorm.weight"));
  if (config.layer_types[index] == LayerType::full_attention) {
    layer.attention =
        SLUICE_TRY(AttentionLayer::load(config, prefix + "self_attn.", cache_offset, loader));
  } else {
    layer.gdn = SLUICE_TRY(GdnLayer::load(config, prefix + "linear_attn.", cache_offset, loader));
  }
  layer.mlp = SLUICE_TRY(Mlp::load(prefix + "mlp.", loader));
  return layer;
}

// Bytes of the packed form of every text matrix that will be read.
std::size_t packed_bytes_expected(const ModelConfig& config, const std::string& prefix,
                                  WeightPreset preset) {
  std::int64_t bytes = 0;
  for (const TensorSpec& spec : list_tensors(config, prefix)) {
    const bool is_head = spec.role == TensorRole::embedding && config.tie_word_embeddings;
    if (spec.group == TensorGroup::text && (spec.role == TensorRole::matrix || is_head)) {
      bytes +=
          kernels::packed_bytes(weight_format(preset, spec.name), spec.shape[0], spec.shape[1]);
    }
  }
  return static_cast<std::size_t>(bytes);
}

Result<Weights> load_weights(const ModelConfig& config, const CacheLayout& layout,
                             const Checkpoint& checkpoint, WeightPreset preset, ThreadPool& pool,
                             const LoadProgress& progress) {
  SLUICE_TRY(check_tensors(config, checkpoint));
  if (checkpoint.packed() != nullptr) {
    SLUICE_TRY(checkpoint.packed()->verify(pool));
  }
  const std::string prefix = SLUICE_TRY(text_prefix(checkpoint));
  WeightLoader loader(checkpoint, preset, pool, progress,
                      packed_bytes_expected(config, prefix, preset));
  const std::string embedding_name = prefix + "embed_tokens.weight";
  Weights weights;
  weights.embed_tokens = SLUICE_TRY(Embedding::load(checkpoint, embedding_name));
  for (std::size_t i = 0; i < config.layer_types.size(); ++i) {
    weights.layers.push_back(SLUICE_TRY(load_layer(
        config, i, prefix + "layers." + std::to_string(i) + ".", layout.layer_offset[i], loader)));
  }
  weights.norm = SLUICE_TRY(loader.norm_weight(prefix + "norm.weight"));
  weights.lm_head = SLUICE_TRY(
      loader.linear(config.tie_word_embeddings ? embedding_name : std::string("lm_head.weight")));
  weights.packed_bytes = loader.packed_bytes();
  return weights;
}

// Activations of one step, for the largest step the options allow.
struct Activations {
  Activations(const ModelConfig& config, const ModelOptions& options, std::int64_t rope_half,
              RegionPlan& plan)
      : x(plan.take<float>(options.step_tokens_max * config.hidden_size)),
        h(plan.take<bf16_t>(options.step_tokens_max * kernels::pad32(config.hidden_size))),
        mixed(plan.take<float>(options.step_tokens_max * config.hidden_size)),
        cos(plan.take<float>(options.step_tokens_max * rope_half)),
        sin(plan.take<float>(options.step_tokens_max * rope_half)),
        head_rows(
            plan.take<bf16_t>(options.step_logit_rows_max * kernels::pad32(config.hidden_size))),
        gdn(config, options.step_tokens_max, plan),
        attention(config, options.step_tokens_max, plan),
        mlp(config, options.step_tokens_max, plan) {
    const std::int64_t rows = std::max(options.step_tokens_max, options.step_logit_rows_max);
    tiles.tiles = plan.take<bf16_t>(kernels::row_tiles_elements(rows, widest_input(config)));
    if (has_integer_weights(*options.preset)) {
      tiles.quantised = plan.take<std::int8_t>(kernels::int_rows_bytes(rows, widest_input(config)));
      tiles.scales = plan.take<float>(rows);
    }
  }

  // Of all products.
  static std::int64_t widest_input(const ModelConfig& config) {
    return std::max({config.hidden_size, config.intermediate_size,
                     config.linear_num_value_heads * config.linear_value_head_dim,
                     config.num_attention_heads * config.head_dim});
  }

  float* x;      // residual stream
  bf16_t* h;     // normed input of a mixer, an MLP or the head
  float* mixed;  // output of a mixer or an MLP
  float* cos;
  float* sin;
  bf16_t* head_rows;  // rows of h whose logits are wanted
  GdnLayer::Scratch gdn;
  AttentionLayer::Scratch attention;
  Mlp::Scratch mlp;
  ops::RowTiles tiles;  // of the input of a product
};

class Model final : public Qwen3_5 {
 public:
  Model(ModelConfig config, CacheLayout layout, ModelOptions options, Weights weights,
        std::unique_ptr<VisionEncoder> vision, const kernels::KernelTable& table, ThreadPool& pool,
        AlignedBuffer memory, RegionPlan plan)
      : config_(std::move(config)),
        layout_(std::move(layout)),
        options_(options),
        weights_(std::move(weights)),
        vision_(std::move(vision)),
        rope_(config_.rope),
        memory_(std::move(memory)),
        activations_(config_, options_, rope_.half(), plan),
        context_{.table = table, .pool = pool, .tiles = activations_.tiles} {
    context_.attention_sequences.reserve(static_cast<std::size_t>(options_.step_tokens_max));
    context_.delta_sequences.reserve(static_cast<std::size_t>(options_.step_tokens_max));
    delta_checkpoints_.reserve(static_cast<std::size_t>(options_.step_tokens_max));
  }

  VisionEncoder* vision() override { return vision_.get(); }
  const ModelConfig& config() const override { return config_; }
  const CacheLayout& cache_layout() const override { return layout_; }
  const ModelOptions& options() const override { return options_; }
  std::size_t weight_bytes() const override { return weights_.packed_bytes; }
  std::size_t workspace_bytes() const override { return memory_.size(); }

  void forward(const ForwardBatch& batch, const CacheMemory& cache,
               std::span<float> logits) override {
    check_batch(batch, logits);
    prepare(batch, cache);
    Activations& act = activations_;
    const ops::PackedLinear& head = weights_.lm_head;
    weights_.embed_tokens.lookup(context_.table, context_.pool, batch.token_ids, act.x);
    for (const EmbeddingRows& picture : batch.embeddings) {
      std::copy_n(picture.rows, picture.row_count * config_.hidden_size,
                  act.x + picture.token_begin * config_.hidden_size);
    }
    for (const DecoderLayer& layer : weights_.layers) {
      norm(layer.input_layernorm);
      if (layer.gdn) {
        layer.gdn->forward(context_, act.h, act.gdn, act.mixed);
      } else {
        layer.attention->forward(context_, act.h, act.attention, act.mixed);
      }
      add_to_residual();
      norm(layer.post_attention_layernorm);
      layer.mlp.forward(context_, act.h, act.mlp, act.mixed);
      add_to_residual();
    }
    if (batch.logit_rows.empty()) {
      return;
    }
    norm(weights_.norm);
    const std::int64_t width = kernels::pad32(config_.hidden_size);
    for (std::size_t i = 0; i < batch.logit_rows.size(); ++i) {
      std::copy_n(act.h + batch.logit_rows[i] * width, width,
                  act.head_rows + static_cast<std::int64_t>(i) * width);
    }
    ops::LinearInput input(act.head_rows, static_cast<std::int64_t>(batch.logit_rows.size()),
                           config_.hidden_size, act.tiles);
    ops::linear(context_.table, context_.pool, input, head, ops::Reduction::whole, logits.data());
  }

 private:
  void check_batch(const ForwardBatch& batch, std::span<float> logits) const {
    const auto rows = static_cast<std::int64_t>(batch.token_ids.size());
    SLUICE_CHECK(rows >= 1);
    SLUICE_CHECK(rows <= options_.step_tokens_max);
    SLUICE_CHECK(batch.rope_positions.size() == 3 * batch.token_ids.size());
    SLUICE_CHECK(static_cast<std::int64_t>(batch.logit_rows.size()) <=
                 options_.step_logit_rows_max);
    SLUICE_CHECK(static_cast<std::int64_t>(logits.size()) >=
                 static_cast<std::int64_t>(batch.logit_rows.size()) * config_.vocab_size);
    for (const std::int32_t id : batch.token_ids) {
      SLUICE_CHECK(id >= 0);
      SLUICE_CHECK(id < config_.vocab_size);
    }
    for (const std::int32_t row : batch.logit_rows) {
      SLUICE_CHECK(row >= 0);
      SLUICE_CHECK(row < rows);
    }
    std::int64_t covered = 0;
    for (const SequenceSlice& slice : batch.sequences) {
      SLUICE_CHECK(slice.token_begin == covered);
      SLUICE_CHECK(slice.token_count >= 1);
      covered += slice.token_count;
      SLUICE_CHECK(static_cast<std::int64_t>(slice.block_table.size()) * kKvBlockTokens >=
                   slice.position + slice.token_count);
      std::int64_t last = slice.position;
      for (const StateCheckpoint& checkpoint : slice.checkpoints) {
        SLUICE_CHECK(checkpoint.position > last);
        SLUICE_CHECK(checkpoint.position % kKvBlockTokens == 0);
        last = checkpoint.position;
      }
      SLUICE_CHECK(last <= slice.position + slice.token_count);
    }
    SLUICE_CHECK(covered == rows);
    std::int64_t replaced = 0;
    for (const EmbeddingRows& picture : batch.embeddings) {
      SLUICE_CHECK(picture.token_begin >= replaced);
      SLUICE_CHECK(picture.row_count >= 1);
      SLUICE_CHECK(picture.row_count <= rows - picture.token_begin);
      SLUICE_CHECK(picture.rows != nullptr);
      replaced = picture.token_begin + picture.row_count;
    }
  }

  void prepare(const ForwardBatch& batch, const CacheMemory& cache) {
    context_.rows = static_cast<std::int64_t>(batch.token_ids.size());
    rope_.tables(batch.rope_positions, context_.rows, activations_.cos, activations_.sin);
    context_.rope_cos = activations_.cos;
    context_.rope_sin = activations_.sin;
    context_.kv_blocks = cache.kv_blocks;
    context_.kv_block_stride = static_cast<std::int64_t>(layout_.kv_block_bytes);
    context_.attention_sequences.clear();
    context_.delta_sequences.clear();
    delta_checkpoints_.clear();
    const auto slot = [&](std::int32_t id) {
      return cache.state_slots + static_cast<std::size_t>(id) * layout_.state_slot_bytes;
    };
    for (const SequenceSlice& slice : batch.sequences) {
      context_.attention_sequences.push_back({.position = slice.position,
                                              .token_begin = slice.token_begin,
                                              .token_count = slice.token_count,
                                              .block_table = slice.block_table});
      for (const StateCheckpoint& checkpoint : slice.checkpoints) {
        delta_checkpoints_.push_back(
            {.rows = checkpoint.position - slice.position, .state = slot(checkpoint.state_slot)});
      }
      context_.delta_sequences.push_back(
          {.position = slice.position,
           .token_begin = slice.token_begin,
           .token_count = slice.token_count,
           .state = slot(slice.state_slot),
           .checkpoints = std::span(delta_checkpoints_).last(slice.checkpoints.size())});
    }
  }

  void norm(const std::vector<float>& weight) {
    ops::rms_norm(context_.table, context_.pool, activations_.x, context_.rows, config_.hidden_size,
                  weight.data(), config_.rms_norm_eps, activations_.h);
  }

  void add_to_residual() {
    ops::add(context_.table, context_.pool, activations_.x, activations_.mixed, context_.rows,
             config_.hidden_size);
  }

  ModelConfig config_;
  CacheLayout layout_;
  ModelOptions options_;
  Weights weights_;
  std::unique_ptr<VisionEncoder> vision_;
  Rope rope_;
  AlignedBuffer memory_;
  Activations activations_;
  LayerContext context_;
  std::vector<ops::GatedDeltaCheckpoint> delta_checkpoints_;  // of all sequences of the step
};

}  // namespace

Result<std::unique_ptr<Qwen3_5>> Qwen3_5::load(const ModelConfig& config,
                                               const Checkpoint& checkpoint,
                                               const kernels::KernelTable& table, ThreadPool& pool,
                                               const ModelOptions& given,
                                               const LoadProgress& progress) {
  ModelOptions options = given;
  options.preset = SLUICE_TRY(resolve_preset(given.preset, checkpoint));
  CacheLayout layout = CacheLayout::of(config);
  Weights weights =
      SLUICE_TRY(load_weights(config, layout, checkpoint, *options.preset, pool, progress));
  std::unique_ptr<VisionEncoder> vision;
  if (options.vision_patches_max > 0 && config.vision) {
    vision = SLUICE_TRY(VisionEncoder::load(config, checkpoint, table, pool,
                                            {.patches_max = options.vision_patches_max},
                                            [](std::size_t, std::size_t) {}));
  }
  RegionPlan sizing;
  const Activations measured(config, options, config.rope.rotary_dim / 2, sizing);
  AlignedBuffer memory = SLUICE_TRY(AlignedBuffer::allocate(sizing.used()));
  const RegionPlan plan(memory.data());
  return std::make_unique<Model>(config, std::move(layout), options, std::move(weights),
                                 std::move(vision), table, pool, std::move(memory), plan);
}

}  // namespace sluice
