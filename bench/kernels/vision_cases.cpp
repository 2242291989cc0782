#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "base/check.h"
#include "bench/kernels/kernel_case.h"
#include "model/vision_encoder.h"
#include "weights/random_weights.h"
#include "weights/released_shapes.h"

namespace sluice::bench {
namespace {

// Of the 27 blocks of the tower: the rest of them would take the same time again.
constexpr std::int64_t kBlocks = 3;

constexpr std::int64_t kSideMax = 2048;
constexpr std::int64_t kPatchesMax = kSideMax * kSideMax / (kVisionPatchSize * kVisionPatchSize);

// The tower of the 9B and the 27B model, without its other blocks and with little of a text model.
ModelConfig tower_config() {
  ModelConfig config = released_config("qwen3.6-27b", 1).value();
  config.vision = VisionConfig{.depth = kBlocks,
                               .hidden_size = 1152,
                               .intermediate_size = 4304,
                               .num_heads = 16,
                               .out_hidden_size = config.hidden_size};
  return config;
}

class Tower {
 public:
  explicit Tower(Machine& machine) {
    const ModelConfig config = tower_config();
    const Result<Checkpoint> checkpoint = make_random_checkpoint(config);
    SLUICE_CHECK(checkpoint.has_value());
    Result<std::unique_ptr<VisionEncoder>> encoder = VisionEncoder::load(
        config, *checkpoint, machine.table(), machine.pool(), {.patches_max = kPatchesMax}, {});
    SLUICE_CHECK(encoder.has_value());
    encoder_ = std::move(*encoder);
  }

  void encode(const std::shared_ptr<const VisionInput>& input) {
    const std::unique_ptr<VisionEncoding> encoding = encoder_->start(input).value();
    encoding->advance(std::numeric_limits<double>::infinity());
  }

 private:
  std::unique_ptr<VisionEncoder> encoder_;
};

std::shared_ptr<const VisionInput> picture_of(std::int64_t side) {
  auto input = std::make_shared<VisionInput>();
  input->grid_rows = side / kVisionPatchSize;
  input->grid_columns = side / kVisionPatchSize;
  input->pixels.resize(static_cast<std::size_t>(side * side * 3));
  std::uint32_t random = 12345;
  for (std::uint8_t& pixel : input->pixels) {
    random = random * 1664525U + 1013904223U;
    pixel = static_cast<std::uint8_t>(random >> 24);
  }
  return input;
}

// As VisionEncoder::flops().
double flops_of(std::int64_t side) {
  const VisionConfig tower = *tower_config().vision;
  const auto patches = static_cast<double>(side * side / (kVisionPatchSize * kVisionPatchSize));
  const auto hidden = static_cast<double>(tower.hidden_size);
  const auto intermediate = static_cast<double>(tower.intermediate_size);
  const double block = 8.0 * hidden * hidden + 4.0 * hidden * intermediate + 4.0 * hidden * patches;
  const double embedding = 2.0 * hidden * 1536.0;
  const double merger = 2.0 * hidden * (4.0 * hidden + static_cast<double>(tower.out_hidden_size));
  return patches * (embedding + merger + static_cast<double>(kBlocks) * block);
}

}  // namespace

std::vector<KernelCase> vision_cases() {
  std::vector<KernelCase> cases;
  for (const std::int64_t side : std::initializer_list<std::int64_t>{512, 1024, kSideMax}) {
    cases.push_back({.name = fmt::format("vision_encoder/27b/{}of27/{}x{}", kBlocks, side, side),
                     .flops = flops_of(side),
                     .bytes = 0.0,
                     .prepare = [=](Machine& machine) -> Body {
                       const auto tower = std::make_shared<Tower>(machine);
                       const std::shared_ptr<const VisionInput> input = picture_of(side);
                       return [=] { tower->encode(input); };
                     }});
  }
  return cases;
}

}  // namespace sluice::bench
