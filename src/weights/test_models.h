// Shared by the tests of weights/: configs of the releases and small checkpoints made from the
// registry. Not part of the library.
#pragma once

#include <array>
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "weights/model_config.h"
#include "weights/released_shapes.h"
#include "weights/safetensors.h"
#include "weights/tensor_registry.h"
#include "weights/test_files.h"

namespace sluice::test {

// The releases with their vision towers, and their published totals.
struct Release {
  std::string_view name;
  ReleasedShape shape;
  std::int64_t vision_depth, vision_hidden, vision_heads, vision_intermediate;
  std::size_t tensor_count;
  std::int64_t tensor_bytes;
  double text_millions, mtp_millions, vision_millions;
};

inline const std::array kReleases{
    Release{"0.8B", released_shapes()[0], 12, 768, 12, 3072, 488, 1'746'882'752, 752.4, 20.5,
            100.6},
    Release{"2B", released_shapes()[1], 24, 1024, 16, 4096, 632, 4'548'144'832, 1881.8, 60.8,
            331.4},
    Release{"4B", released_shapes()[2], 24, 1024, 16, 4096, 738, 9'319'737'856, 4205.8, 120.6,
            333.5},
    Release{"9B", released_shapes()[3], 27, 1152, 16, 4304, 775, 19'306'216'416, 8953.8, 243.3,
            456.0},
    Release{"27B", released_shapes()[4], 27, 1152, 16, 4304, 1199, 55'562'855'904, 26896.0, 424.7,
            460.7},
};

inline boost::json::object release_json(const Release& release) {
  return {{"architectures", boost::json::array{"Qwen3_5ForConditionalGeneration"}},
          {"model_type", "qwen3_5"},
          {"image_token_id", 248056},
          {"tie_word_embeddings", release.shape.tie_word_embeddings},
          {"text_config",
           {{"model_type", "qwen3_5_text"},
            {"vocab_size", 248320},
            {"hidden_size", release.shape.hidden_size},
            {"intermediate_size", release.shape.intermediate_size},
            {"num_hidden_layers", release.shape.num_hidden_layers},
            {"num_attention_heads", release.shape.num_attention_heads},
            {"num_key_value_heads", release.shape.num_key_value_heads},
            {"head_dim", 256},
            {"linear_num_key_heads", 16},
            {"linear_num_value_heads", release.shape.linear_num_value_heads},
            {"linear_key_head_dim", 128},
            {"linear_value_head_dim", 128},
            {"full_attention_interval", 4},
            {"mamba_ssm_dtype", "float32"},
            {"attn_output_gate", true},
            {"eos_token_id", 248044},
            {"max_position_embeddings", 262144},
            {"mtp_num_hidden_layers", 1},
            {"tie_word_embeddings", release.shape.tie_word_embeddings},
            {"partial_rotary_factor", 0.25},
            {"rope_parameters",
             {{"rope_theta", 10000000},
              {"partial_rotary_factor", 0.25},
              {"mrope_section", {11, 11, 10}},
              {"mrope_interleaved", true},
              {"rope_type", "default"}}}}},
          {"vision_config",
           {{"model_type", "qwen3_5"},
            {"depth", release.vision_depth},
            {"hidden_size", release.vision_hidden},
            {"num_heads", release.vision_heads},
            {"intermediate_size", release.vision_intermediate},
            {"out_hidden_size", release.shape.hidden_size},
            {"deepstack_visual_indexes", boost::json::array{}}}}};
}

// The config of a document that is known to be good.
inline ModelConfig config_of(const boost::json::object& json) {
  Result<ModelConfig> config = parse_model_config(boost::json::serialize(json), "config.json");
  SLUICE_CHECK(config.has_value());
  return *std::move(config);
}

inline ModelConfig release_config(const Release& release) {
  return config_of(release_json(release));
}

// A model of a few kilobytes with all three groups of tensors.
inline boost::json::object tiny_json() {
  const Release tiny{.name = "tiny",
                     .shape = {.name = "tiny",
                               .hidden_size = 32,
                               .intermediate_size = 48,
                               .num_hidden_layers = 2,
                               .num_attention_heads = 2,
                               .num_key_value_heads = 1,
                               .linear_num_value_heads = 4,
                               .tie_word_embeddings = false},
                     .vision_depth = 1,
                     .vision_hidden = 16,
                     .vision_heads = 2,
                     .vision_intermediate = 24,
                     .tensor_count = 0,
                     .tensor_bytes = 0,
                     .text_millions = 0,
                     .mtp_millions = 0,
                     .vision_millions = 0};
  boost::json::object json = release_json(tiny);
  boost::json::object& text = json["text_config"].as_object();
  text["vocab_size"] = 40;
  text["head_dim"] = 32;
  text["linear_num_key_heads"] = 2;
  text["linear_key_head_dim"] = 16;
  text["linear_value_head_dim"] = 16;
  text["layer_types"] = {"linear_attention", "full_attention"};
  text["rope_parameters"].as_object()["mrope_section"] = {2, 1, 1};
  boost::json::object& vision = json["vision_config"].as_object();
  vision["patch_size"] = 4;
  vision["num_position_embeddings"] = 16;
  return json;
}

// The tensors of a config with bytes that repeat 0x3c: finite in every dtype.
class CheckpointFiles {
 public:
  explicit CheckpointFiles(const boost::json::object& config_json,
                           std::string_view text_prefix = "model.language_model.",
                           std::string_view mtp_prefix = "mtp.") {
    config = config_of(config_json);
    for (const TensorSpec& spec : list_tensors(config, text_prefix, mtp_prefix)) {
      set(spec.name, DType::bf16, spec.shape);
    }
  }

  void set(const std::string& name, DType dtype, const Shape& shape) {
    std::vector<std::byte>& bytes = storage_[name];
    bytes.assign(static_cast<std::size_t>(element_count(shape)) * dtype_bytes(dtype),
                 std::byte{0x3c});
    tensors[name] = {.dtype = dtype, .shape = shape, .bytes = bytes};
  }
  std::span<std::byte> bytes(const std::string& name) { return storage_.at(name); }
  void remove_prefix(std::string_view prefix) {
    std::erase_if(tensors, [&](const auto& item) { return item.first.starts_with(prefix); });
  }

  // Writes the tensors as one file and opens them again.
  Result<Checkpoint> open() const {
    SLUICE_TRY(write_safetensors(directory / "model.safetensors", tensors));
    return Checkpoint::open(directory.path());
  }
  Result<void> check() const {
    const Checkpoint checkpoint = SLUICE_TRY(open());
    return check_tensors(config, checkpoint);
  }

  TemporaryDirectory directory;
  ModelConfig config;
  TensorMap tensors;

 private:
  std::map<std::string, std::vector<std::byte>> storage_;
};

}  // namespace sluice::test
