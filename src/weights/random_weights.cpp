#include "weights/random_weights.h"

#include <algorithm>
#include <random>
#include <span>
#include <utility>

#include "weights/tensor_registry.h"

namespace sluice {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
constexpr float kDeviation = 0.02F;
// Values from the window of one tensor to that of the next: odd, so windows never coincide.
constexpr std::size_t kWindowStep = 1'048'573;

}  // namespace

Result<Checkpoint> make_random_checkpoint(const ModelConfig& config) {
  const std::vector<TensorSpec> specs = list_tensors(config, "model.");
  std::size_t largest = 0;
  for (const TensorSpec& spec : specs) {
    largest = std::max(largest, static_cast<std::size_t>(element_count(spec.shape)));
  }
  constexpr std::size_t kPieceValues = kPieceBytes / sizeof(bf16_t);
  const std::vector<bf16_t> piece = random_bf16(kPieceValues, kDeviation, 1);
  RepeatedMapping memory = SLUICE_TRY(RepeatedMapping::make(
      std::as_bytes(std::span(piece)), (largest + kPieceValues) * sizeof(bf16_t)));
  TensorMap tensors;
  std::size_t window = 0;
  for (const TensorSpec& spec : specs) {
    const auto bytes = static_cast<std::size_t>(element_count(spec.shape)) * sizeof(bf16_t);
    tensors[spec.name] = {.dtype = DType::bf16,
                          .shape = spec.shape,
                          .bytes = memory.bytes().subspan(window * sizeof(bf16_t), bytes)};
    window = (window + kWindowStep) % kPieceValues;
  }
  return Checkpoint::in_memory(std::move(tensors), std::move(memory));
}

std::vector<bf16_t> random_bf16(std::size_t count, float deviation, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal(0.0F, deviation);
  std::vector<bf16_t> values(count);
  std::ranges::generate(values, [&] { return float_to_bf16(normal(engine)); });
  return values;
}

}  // namespace sluice
