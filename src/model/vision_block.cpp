#include "model/vision_block.h"

#include <cstdint>

#include "ops/rows.h"

namespace sluice {
namespace {

void turn_rows(const VisionContext& context, const VisionGrid& grid, const VisionPiece& piece,
               std::int64_t half) {
  for (std::int64_t row = 0; row < piece.rows; ++row) {
    grid.turn(piece.begin + row, context.scratch.cos + row * half,
              context.scratch.sin + row * half);
  }
}

}  // namespace

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
  vision_norm(context, norm1_, piece);
  vision_product(context, scratch.h, piece.rows, kv_, scratch.product);
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
  vision_norm(context, norm1_, piece);
  vision_product(context, scratch.h, piece.rows, q_, scratch.product);
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
  add_vision_product(context, scratch.attended, proj_, piece);
}

void VisionBlock::mlp(VisionContext& context, const VisionPiece& piece) const {
  const VisionScratch& scratch = context.scratch;
  vision_norm(context, norm2_, piece);
  vision_product(context, scratch.h, piece.rows, fc1_.weight, scratch.product);
  ops::bias_gelu(context.table, context.pool, ops::Gelu::tanh, scratch.product, fc1_.bias.data(),
                 piece.rows, fc1_.weight.out_features(), scratch.activated);
  add_vision_product(context, scratch.activated, fc2_, piece);
}

}  // namespace sluice
