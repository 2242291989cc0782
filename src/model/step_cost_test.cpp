#include "model/step_cost.h"

#include <gtest/gtest.h>

#include "weights/released_shapes.h"

namespace sluice {
namespace {

// One layer of each kind; sizes small enough to count by hand.
ModelConfig small_config(bool tied) {
  ModelConfig config;
  config.model_type = "qwen3_5";
  config.vocab_size = 100;
  config.hidden_size = 32;
  config.intermediate_size = 64;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 16;
  config.linear_num_key_heads = 2;
  config.linear_num_value_heads = 4;
  config.linear_key_head_dim = 16;
  config.linear_value_head_dim = 32;
  config.layer_types = {LayerType::linear_attention, LayerType::full_attention};
  config.tie_word_embeddings = tied;
  return config;
}

// Matrix elements of small_config without the head: two MLPs; qkv (2 x 32 + 128), z 128, a and b 4,
// out 128; q and its gate 128, k and v 32, o 64.
constexpr double kMatrixElements =
    2.0 * 3 * 64 * 32 + 32.0 * (192 + 128 + 8 + 128) + 32.0 * (128 + 32 + 32 + 64);
constexpr double kDeltaFlops = 6.0 * 4 * 16 * 32;
constexpr double kHeadFlops = 2.0 * 100 * 32;
constexpr double kHeadBytes = 2.0 * 128 * 32;                      // packed: 100 rows become 128
constexpr double kKvBytes = 2.0 * 2 * 16 * 2;                      // K and V, 2 heads of 16, bf16
constexpr double kStateBytes = 4.0 * 16 * 32 * 4 + 3.0 * 192 * 2;  // fp32 state, conv rows

TEST(StepCost, DecodeByHand) {
  for (const bool tied : {true, false}) {
    const StepCost cost =
        decode_cost(small_config(tied), {.bytes = 50'000}, {.context = 9, .batch = 3});
    EXPECT_DOUBLE_EQ(cost.flops,
                     3 * (2 * kMatrixElements + kDeltaFlops + kHeadFlops + 4.0 * 4 * 16 * 10));
    EXPECT_DOUBLE_EQ(cost.bytes, 50'000 + 3 * (9 * kKvBytes + kStateBytes));
  }
}

TEST(StepCost, PrefillByHand) {
  // Steps of 4, 4 and 2 rows, with 0, 4 and 8 tokens before them.
  const StepCost cost =
      prefill_cost(small_config(false), {.bytes = 50'000}, {.tokens = 10, .step_tokens = 4});
  EXPECT_DOUBLE_EQ(cost.flops,
                   10 * (2 * kMatrixElements + kDeltaFlops) + kHeadFlops + 4.0 * 4 * 16 * 55);
  EXPECT_DOUBLE_EQ(cost.bytes,
                   3 * (50'000 - kHeadBytes) + kHeadBytes + 12 * kKvBytes + 3 * kStateBytes);
}

TEST(StepCost, OneTokenCostsTheSameInBothPhases) {
  const ModelConfig config = released_config("qwen3.5-0.8b", 0).value();
  const StepCost prefill =
      prefill_cost(config, {.bytes = 1'500'000'000}, {.tokens = 1, .step_tokens = 512});
  const StepCost decode = decode_cost(config, {.bytes = 1'500'000'000}, {.context = 0, .batch = 1});
  EXPECT_DOUBLE_EQ(prefill.flops, decode.flops);
  EXPECT_DOUBLE_EQ(prefill.bytes, decode.bytes);
}

TEST(StepCost, TheSlowerOfTheTwoDecides) {
  const StepCost cost{.flops = 100.0, .int8_ops = 60.0, .bytes = 30.0};
  MachineRates rates{.flop_per_s = 10.0, .int8_op_per_s = 20.0, .byte_per_s = 10.0};
  EXPECT_DOUBLE_EQ(roofline_seconds(cost, rates), 13.0);
  EXPECT_TRUE(is_compute_bound(cost, rates));
  rates.byte_per_s = 1.0;
  EXPECT_DOUBLE_EQ(roofline_seconds(cost, rates), 30.0);
  EXPECT_FALSE(is_compute_bound(cost, rates));
}

TEST(StepCost, PresetsMoveProductsToIntegers) {
  const ModelConfig config = released_config("qwen3.5-0.8b", 0).value();
  const StepCost plain = decode_cost(config, {.bytes = 1}, {.context = 0, .batch = 1});
  const StepCost narrow =
      decode_cost(config, {.bytes = 1, .preset = WeightPreset::int8}, {.context = 0, .batch = 1});
  EXPECT_EQ(plain.int8_ops, 0.0);
  EXPECT_DOUBLE_EQ(narrow.int8_ops + narrow.flops, plain.flops);
  EXPECT_GT(narrow.int8_ops, 30.0 * narrow.flops);  // gates, delta rule and attention are left
}

}  // namespace
}  // namespace sluice
