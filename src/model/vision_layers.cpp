#include "model/vision_layers.h"

#include <algorithm>
#include <array>

#include "ops/rows.h"
#include "weights/tensor_registry.h"

namespace sluice {
namespace {

using kernels::pad32;

constexpr float kNormEps = 1e-6F;
constexpr std::int64_t kMergedPatches = kVisionMergeSize * kVisionMergeSize;
constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kPatchFrames = 2;
constexpr std::int64_t kPatchElements =
    kChannels * kPatchFrames * kVisionPatchSize * kVisionPatchSize;

// A pixel p stands for (p / 255 - 0.5) / 0.5 = (2p - 255) / 255. The numerator is exact in bf16, so
// the product is taken of it and divided afterwards: the pixels lose nothing.
constexpr float kPixelScale = 1.0F / 255.0F;

std::array<bf16_t, 256> make_pixel_values() {
  std::array<bf16_t, 256> values{};
  for (int p = 0; p < 256; ++p) {
    values[static_cast<std::size_t>(p)] = float_to_bf16(static_cast<float>(2 * p - 255));
  }
  return values;
}

// The values of one patch in the order of the weight: channel, frame, row, column. A picture is its
// one frame twice.
void read_patch(const VisionInput& input, const VisionGrid::Place& at, bf16_t* patch) {
  static const std::array<bf16_t, 256> kValues = make_pixel_values();
  const std::int64_t line = input.grid_columns * kVisionPatchSize * kChannels;
  const std::int64_t frame_bytes = input.grid_rows * kVisionPatchSize * line;
  const std::int64_t corner =
      at.row * kVisionPatchSize * line + at.column * kVisionPatchSize * kChannels;
  for (std::int64_t channel = 0; channel < kChannels; ++channel) {
    for (std::int64_t frame = 0; frame < kPatchFrames; ++frame) {
      const std::int64_t shown = std::min(frame, input.frame_count - 1);
      const std::uint8_t* pixels = input.pixels.data() + shown * frame_bytes + corner + channel;
      for (std::int64_t row = 0; row < kVisionPatchSize; ++row) {
        for (std::int64_t column = 0; column < kVisionPatchSize; ++column) {
          *patch++ = kValues[pixels[row * line + column * kChannels]];
        }
      }
    }
  }
}

void turn_rows(const VisionContext& context, const VisionGrid& grid, const VisionPiece& piece,
               std::int64_t half) {
  for (std::int64_t row = 0; row < piece.rows; ++row) {
    grid.turn(piece.begin + row, context.scratch.cos + row * half,
              context.scratch.sin + row * half);
  }
}

void product(VisionContext& context, const bf16_t* x, std::int64_t rows,
             const ops::PackedLinear& weight, float* out) {
  ops::linear(context.table, context.pool, x, rows, weight, ops::Reduction::whole, out);
}

void norm(VisionContext& context, const VisionNorm& norm, const VisionPiece& piece) {
  ops::layer_norm(context.table, context.pool, piece.x, piece.rows, std::ssize(norm.weight),
                  norm.weight.data(), norm.bias.data(), kNormEps, context.scratch.h);
}

// x += product of `activated` and its bias.
void add_product(VisionContext& context, const bf16_t* activated, const VisionLinear& linear,
                 const VisionPiece& piece) {
  product(context, activated, piece.rows, linear.weight, context.scratch.product);
  ops::add_with_bias(context.table, context.pool, piece.x, context.scratch.product,
                     linear.bias.data(), piece.rows, linear.weight.out_features());
}

}  // namespace

VisionScratch::VisionScratch(const VisionConfig& config, std::int64_t rows_max, RegionPlan& plan) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t intermediate = config.intermediate_size;
  const std::int64_t head_dim = hidden / config.num_heads;
  const std::int64_t widest = std::max({pad32(hidden), pad32(intermediate), kPatchElements});
  h = plan.take<bf16_t>(rows_max * pad32(hidden));
  product = plan.take<float>(rows_max * std::max(2 * hidden, intermediate));
  activated = plan.take<bf16_t>(rows_max * widest);
  q_rotated = plan.take<bf16_t>(rows_max * config.num_heads * pad32(head_dim));
  attended = plan.take<bf16_t>(rows_max * pad32(hidden));
  cos = plan.take<float>(rows_max * head_dim / 2);
  sin = plan.take<float>(rows_max * head_dim / 2);
}

Result<VisionNorm> VisionNorm::load(const std::string& name, WeightLoader& loader) {
  VisionNorm norm;
  norm.weight = SLUICE_TRY(loader.vector(name + ".weight"));
  norm.bias = SLUICE_TRY(loader.vector(name + ".bias"));
  return norm;
}

Result<VisionLinear> VisionLinear::load(const std::string& name, WeightLoader& loader) {
  VisionLinear linear;
  linear.weight = SLUICE_TRY(loader.linear(name + ".weight"));
  linear.bias = SLUICE_TRY(loader.vector(name + ".bias"));
  return linear;
}

Result<VisionEmbedding> VisionEmbedding::load(const VisionConfig& config, const std::string& prefix,
                                              const Checkpoint& checkpoint, WeightLoader& loader) {
  VisionEmbedding embedding;
  embedding.proj_ = SLUICE_TRY(VisionLinear::load(prefix + "patch_embed.proj", loader));
  embedding.positions_.resize(
      static_cast<std::size_t>(config.num_position_embeddings * config.hidden_size));
  SLUICE_TRY(read_matrix_rows_bf16(checkpoint, prefix + "pos_embed.weight", 0,
                                   config.num_position_embeddings, embedding.positions_));
  return embedding;
}

void VisionEmbedding::forward(VisionContext& context, const VisionInput& input,
                              const VisionGrid& grid, const VisionPiece& piece) const {
  bf16_t* patches = context.scratch.activated;
  context.pool.for_ranges(piece.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      read_patch(input, grid.place(piece.begin + row), patches + row * kPatchElements);
    }
  });
  product(context, patches, piece.rows, proj_.weight, piece.x);
  const std::int64_t hidden = proj_.weight.out_features();
  context.pool.for_ranges(piece.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const VisionGrid::Taps taps = grid.taps(piece.begin + row);
      kernels::EmbedPatchArgs args{.x = piece.x + row * hidden,
                                   .bias = proj_.bias.data(),
                                   .taps = {},
                                   .weights = {},
                                   .size = hidden,
                                   .scale = kPixelScale};
      for (std::size_t tap = 0; tap < taps.rows.size(); ++tap) {
        args.taps[tap] = positions_.data() + taps.rows[tap] * hidden;
        args.weights[tap] = taps.weights[tap];
      }
      context.table.embed_patch(args);
    }
  });
}

Result<VisionBlock> VisionBlock::load(const VisionConfig& config, const std::string& prefix,
                                      WeightLoader& loader) {
  const std::int64_t hidden = config.hidden_size;
  VisionBlock block;
  block.norm1_ = SLUICE_TRY(VisionNorm::load(prefix + "norm1", loader));
  block.norm2_ = SLUICE_TRY(VisionNorm::load(prefix + "norm2", loader));
  block.q_ = SLUICE_TRY(loader.linear_rows(prefix + "attn.qkv.weight", 0, hidden));
  block.kv_ = SLUICE_TRY(loader.linear_rows(prefix + "attn.qkv.weight", hidden, 2 * hidden));
  block.qkv_bias_ = SLUICE_TRY(loader.vector(prefix + "attn.qkv.bias"));
  block.proj_ = SLUICE_TRY(VisionLinear::load(prefix + "attn.proj", loader));
  block.fc1_ = SLUICE_TRY(VisionLinear::load(prefix + "mlp.linear_fc1", loader));
  block.fc2_ = SLUICE_TRY(VisionLinear::load(prefix + "mlp.linear_fc2", loader));
  return block;
}

void VisionBlock::store_keys(VisionContext& context, const ops::FullAttentionShape& shape,
                             const VisionGrid& grid, const VisionPiece& piece, bf16_t* kv) const {
  const VisionScratch& scratch = context.scratch;
  turn_rows(context, grid, piece, shape.head_dim / 2);
  norm(context, norm1_, piece);
  product(context, scratch.h, piece.rows, kv_, scratch.product);
  ops::store_keys(context.table, context.pool,
                  {.shape = shape,
                   .first = piece.begin,
                   .rows = piece.rows,
                   .kv_product = scratch.product,
                   .k_bias = qkv_bias_.data() + shape.size(),
                   .v_bias = qkv_bias_.data() + 2 * shape.size(),
                   .cos = scratch.cos,
                   .sin = scratch.sin,
                   .kv = kv});
}

void VisionBlock::attend(VisionContext& context, const ops::FullAttentionShape& shape,
                         const VisionGrid& grid, const VisionPiece& piece, const bf16_t* kv) const {
  const VisionScratch& scratch = context.scratch;
  turn_rows(context, grid, piece, shape.head_dim / 2);
  norm(context, norm1_, piece);
  product(context, scratch.h, piece.rows, q_, scratch.product);
  ops::attend(context.table, context.pool,
              {.shape = shape,
               .rows = piece.rows,
               .q_product = scratch.product,
               .q_bias = qkv_bias_.data(),
               .cos = scratch.cos,
               .sin = scratch.sin,
               .q_rotated = scratch.q_rotated,
               .kv = kv,
               .out = scratch.attended});
  add_product(context, scratch.attended, proj_, piece);
}

void VisionBlock::mlp(VisionContext& context, const VisionPiece& piece) const {
  const VisionScratch& scratch = context.scratch;
  norm(context, norm2_, piece);
  product(context, scratch.h, piece.rows, fc1_.weight, scratch.product);
  ops::bias_gelu(context.table, context.pool, ops::Gelu::tanh, scratch.product, fc1_.bias.data(),
                 piece.rows, fc1_.weight.out_features(), scratch.activated);
  add_product(context, scratch.activated, fc2_, piece);
}

Result<VisionMerger> VisionMerger::load(const std::string& prefix, WeightLoader& loader) {
  VisionMerger merger;
  merger.norm_ = SLUICE_TRY(VisionNorm::load(prefix + "norm", loader));
  merger.fc1_ = SLUICE_TRY(VisionLinear::load(prefix + "linear_fc1", loader));
  merger.fc2_ = SLUICE_TRY(VisionLinear::load(prefix + "linear_fc2", loader));
  return merger;
}

void VisionMerger::forward(VisionContext& context, const VisionPiece& piece, float* out) const {
  const VisionScratch& scratch = context.scratch;
  const std::int64_t rows = piece.rows / kMergedPatches;
  const std::int64_t hidden = std::ssize(norm_.weight);
  const std::int64_t merged = kMergedPatches * hidden;
  context.pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t part = 0; part < kMergedPatches; ++part) {
        const std::int64_t padding = part + 1 == kMergedPatches ? pad32(merged) - merged : 0;
        context.table.layer_norm({.x = piece.x + (row * kMergedPatches + part) * hidden,
                                  .weight = norm_.weight.data(),
                                  .bias = norm_.bias.data(),
                                  .y = scratch.h + row * pad32(merged) + part * hidden,
                                  .size = hidden,
                                  .y_size = hidden + padding,
                                  .eps = kNormEps});
      }
    }
  });
  product(context, scratch.h, rows, fc1_.weight, scratch.product);
  ops::bias_gelu(context.table, context.pool, ops::Gelu::exact, scratch.product, fc1_.bias.data(),
                 rows, merged, scratch.activated);
  product(context, scratch.activated, rows, fc2_.weight, out);
  const std::int64_t out_size = fc2_.weight.out_features();
  context.pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      context.table.add(out + row * out_size, fc2_.bias.data(), out_size);
    }
  });
}

}  // namespace sluice
