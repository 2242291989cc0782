#include "model/vision_embedding.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "weights/tensor_registry.h"

namespace sluice {
namespace {

constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kPatchFrames = 2;

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

}  // namespace

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
  vision_product(context, patches, piece.rows, proj_.weight, piece.x);
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

}  // namespace sluice
