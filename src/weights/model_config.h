// config.json of the qwen3_5 family as one frozen struct, with Hugging Face names.
//
// Accepts the nested form (text_config, vision_config) and the flat text-only form. A value that
// would change the math and is not known is an Error, never a default; an absent field takes the
// default of the reference implementation (its writer leaves defaults out). Lives in weights/
// because the tensor registry derives every shape from it; model/ reads it too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

// Upper limits: far above every release, low enough that products of sizes cannot overflow.
inline constexpr std::size_t kConfigBytesMax = std::size_t{4} << 20;
inline constexpr std::int64_t kVocabSizeMax = std::int64_t{1} << 22;
inline constexpr std::int64_t kHiddenSizeMax = std::int64_t{1} << 16;
inline constexpr std::int64_t kIntermediateSizeMax = std::int64_t{1} << 18;
inline constexpr std::int64_t kLayersMax = 1024;
inline constexpr std::int64_t kHeadsMax = 1024;
inline constexpr std::int64_t kPositionsMax = std::int64_t{1} << 24;
// Head sizes are multiples of 16 up to 256: what the attention and delta-rule kernels hold.
inline constexpr std::int64_t kHeadDimMax = 256;
inline constexpr std::int64_t kHeadDimMultiple = 16;

enum class LayerType { linear_attention, full_attention };

struct RopeParameters {
  double rope_theta = 1e7;
  std::int64_t rotary_dim = 64;  // head_dim * partial_rotary_factor, even
  std::array<std::int64_t, 3> mrope_section{11, 11, 10};
};

struct VisionConfig {
  std::int64_t depth = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_heads = 0;
  std::int64_t in_channels = 3;
  std::int64_t patch_size = 16;
  std::int64_t temporal_patch_size = 2;
  std::int64_t spatial_merge_size = 2;
  std::int64_t out_hidden_size = 0;
  std::int64_t num_position_embeddings = 2304;
  double rope_theta = 10000.0;
};

struct ModelConfig {
  std::string model_type;  // "qwen3_5" or "qwen3_5_text"
  std::int64_t vocab_size = 248320;
  std::int64_t hidden_size = 4096;
  std::int64_t intermediate_size = 12288;
  std::int64_t num_hidden_layers = 32;
  std::int64_t num_attention_heads = 16;
  std::int64_t num_key_value_heads = 4;
  std::int64_t head_dim = 256;
  std::int64_t linear_num_key_heads = 16;
  std::int64_t linear_num_value_heads = 32;
  std::int64_t linear_key_head_dim = 128;
  std::int64_t linear_value_head_dim = 128;
  std::int64_t linear_conv_kernel_dim = 4;
  std::vector<LayerType> layer_types;
  float rms_norm_eps = 1e-6F;
  RopeParameters rope;
  std::int64_t max_position_embeddings = 32768;  // 262144 in every release
  bool tie_word_embeddings = false;
  std::int64_t mtp_num_hidden_layers = 0;
  std::int32_t image_token_id = 248056;
  std::int32_t video_token_id = 248057;
  std::int32_t vision_start_token_id = 248053;
  std::int32_t vision_end_token_id = 248054;
  std::optional<VisionConfig> vision;
  bool fp8_weights = false;  // quantization_config of the official FP8 releases

  std::int64_t linear_key_size() const { return linear_num_key_heads * linear_key_head_dim; }
  std::int64_t linear_value_size() const { return linear_num_value_heads * linear_value_head_dim; }
  // Channels of the convolution: q, k and v of all heads.
  std::int64_t linear_conv_channels() const { return 2 * linear_key_size() + linear_value_size(); }
};

// `where` names the source in error messages (a path). Errors: corrupt_data (not JSON, wrong type),
// unsupported (a known field with a value outside the family), each with field, value, expectation.
Result<ModelConfig> parse_model_config(std::string_view json_text, std::string_view where);
Result<ModelConfig> load_model_config(const std::filesystem::path& model_directory);

}  // namespace sluice
