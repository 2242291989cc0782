// Shared by the tests of weights/: temporary directories, configs of the releases, small
// checkpoints made from the registry. Not part of the library.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weights/model_config.h"
#include "weights/safetensors.h"
#include "weights/tensor_registry.h"

namespace sluice::test {

// A directory that vanishes with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    static std::atomic<int> counter{0};
    path_ = std::filesystem::temp_directory_path() /
            ("sluice-weights-" + std::to_string(getpid()) + "-" + std::to_string(counter++));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_),
                                                  std::filesystem::directory_iterator{}));
  }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  ASSERT_TRUE(file.good()) << path;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A safetensors image: size field, header text, data_bytes bytes of data.
inline std::string safetensors_image(std::string_view header, std::size_t data_bytes) {
  const std::uint64_t size = header.size();
  std::string image(sizeof(size), '\0');
  std::memcpy(image.data(), &size, sizeof(size));
  image += header;
  image.append(data_bytes, '\1');
  return image;
}

template <typename T>
void expect_error(const Result<T>& result, ErrorCode code,
                  std::initializer_list<std::string_view> parts) {
  ASSERT_FALSE(result.has_value()) << "no error; expected one about " << *parts.begin();
  EXPECT_EQ(to_string(result.error().code), to_string(code)) << result.error().message;
  for (const std::string_view part : parts) {
    EXPECT_NE(result.error().message.find(part), std::string::npos)
        << "\"" << part << "\" is not in: " << result.error().message;
  }
}

// The sizes by which the releases differ, and their published totals.
struct Release {
  std::string_view name;
  std::int64_t hidden, intermediate, layers, heads, kv_heads, value_heads;
  bool tied;
  std::int64_t vision_depth, vision_hidden, vision_heads, vision_intermediate;
  std::size_t tensor_count;
  std::int64_t tensor_bytes;
  double text_millions, mtp_millions, vision_millions;
};

inline constexpr Release kReleases[]{
    {"0.8B", 1024, 3584, 24, 8, 2, 16, true, 12, 768, 12, 3072, 488, 1'746'882'752, 752.4, 20.5,
     100.6},
    {"2B", 2048, 6144, 24, 8, 2, 16, true, 24, 1024, 16, 4096, 632, 4'548'144'832, 1881.8, 60.8,
     331.4},
    {"4B", 2560, 9216, 32, 16, 4, 32, true, 24, 1024, 16, 4096, 738, 9'319'737'856, 4205.8, 120.6,
     333.5},
    {"9B", 4096, 12288, 32, 16, 4, 32, false, 27, 1152, 16, 4304, 775, 19'306'216'416, 8953.8,
     243.3, 456.0},
    {"27B", 5120, 17408, 64, 24, 4, 48, false, 27, 1152, 16, 4304, 1199, 55'562'855'904, 26896.0,
     424.7, 460.7},
};

inline boost::json::object release_json(const Release& release) {
  return {{"architectures", {"Qwen3_5ForConditionalGeneration"}},
          {"model_type", "qwen3_5"},
          {"image_token_id", 248056},
          {"tie_word_embeddings", release.tied},
          {"text_config",
           {{"model_type", "qwen3_5_text"},
            {"vocab_size", 248320},
            {"hidden_size", release.hidden},
            {"intermediate_size", release.intermediate},
            {"num_hidden_layers", release.layers},
            {"num_attention_heads", release.heads},
            {"num_key_value_heads", release.kv_heads},
            {"head_dim", 256},
            {"linear_num_key_heads", 16},
            {"linear_num_value_heads", release.value_heads},
            {"linear_key_head_dim", 128},
            {"linear_value_head_dim", 128},
            {"full_attention_interval", 4},
            {"mamba_ssm_dtype", "float32"},
            {"attn_output_gate", true},
            {"eos_token_id", 248044},
            {"max_position_embeddings", 262144},
            {"mtp_num_hidden_layers", 1},
            {"tie_word_embeddings", release.tied},
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
            {"out_hidden_size", release.hidden},
            {"deepstack_visual_indexes", boost::json::array{}}}}};
}

inline ModelConfig release_config(const Release& release) {
  Result<ModelConfig> config =
      parse_model_config(boost::json::serialize(release_json(release)), "config.json");
  EXPECT_TRUE(config.has_value()) << config.error().message;
  return config.value_or(ModelConfig{});
}

// A model of a few kilobytes with all three groups of tensors.
inline boost::json::object tiny_json() {
  const Release tiny{.name = "tiny",
                     .hidden = 32,
                     .intermediate = 48,
                     .layers = 2,
                     .heads = 2,
                     .kv_heads = 1,
                     .value_heads = 4,
                     .tied = false,
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
    Result<ModelConfig> parsed = parse_model_config(boost::json::serialize(config_json), "config");
    EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
    config = *parsed;
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
    Result<void> written = write_safetensors(directory / "model.safetensors", tensors);
    EXPECT_TRUE(written.has_value()) << written.error().message;
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
