#include "weights/tensor_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "kernels/weight_format.h"
#include "weights/packed_model.h"
#include "weights/strict_json.h"

namespace sluice {
namespace {

constexpr std::string_view kNestedTextPrefix = "model.language_model.";
constexpr std::string_view kFlatTextPrefix = "model.";
constexpr std::string_view kNestedMtpPrefix = "model.mtp.";
constexpr std::string_view kHeadName = "lm_head.weight";
constexpr std::string_view kScaleSuffix = "_scale_inv";  // X.weight -> X.weight_scale_inv
constexpr std::size_t kNamesPrintedMax = 3;

// Collects the specs of one group under one prefix.
class SpecList {
 public:
  explicit SpecList(const ModelConfig& config) : config_(config) {}

  void set_group(TensorGroup group) { group_ = group; }
  void add(TensorRole role, std::string name, Shape shape) {
    specs_.push_back({std::move(name), std::move(shape), role, group_});
  }
  void matrix(const std::string& module, std::int64_t out, std::int64_t in) {
    add(TensorRole::matrix, module + ".weight", {out, in});
  }
  void vector(std::string name, std::int64_t size) {
    add(TensorRole::vector, std::move(name), {size});
  }
  void biased_matrix(const std::string& module, std::int64_t out, std::int64_t in) {
    matrix(module, out, in);
    vector(module + ".bias", out);
  }
  void layer_norm(const std::string& module, std::int64_t size) {
    vector(module + ".weight", size);
    vector(module + ".bias", size);
  }

  void text(std::string_view prefix);
  void mtp(std::string_view prefix);
  void vision(std::string_view prefix, const VisionConfig& vision);
  std::vector<TensorSpec> release() { return std::move(specs_); }

 private:
  void layer(const std::string& prefix, LayerType type);
  void linear_attention(const std::string& prefix);
  void full_attention(const std::string& prefix);

  const ModelConfig& config_;
  TensorGroup group_ = TensorGroup::text;
  std::vector<TensorSpec> specs_;
};

void SpecList::text(std::string_view text_prefix) {
  const std::string prefix(text_prefix);
  const std::int64_t hidden = config_.hidden_size;
  set_group(TensorGroup::text);
  add(TensorRole::embedding, prefix + "embed_tokens.weight", {config_.vocab_size, hidden});
  for (std::size_t i = 0; i < config_.layer_types.size(); ++i) {
    layer(prefix + "layers." + std::to_string(i) + ".", config_.layer_types[i]);
  }
  vector(prefix + "norm.weight", hidden);
  if (!config_.tie_word_embeddings) {
    add(TensorRole::matrix, std::string(kHeadName), {config_.vocab_size, hidden});
  }
}

void SpecList::layer(const std::string& prefix, LayerType type) {
  const std::int64_t hidden = config_.hidden_size;
  const std::int64_t intermediate = config_.intermediate_size;
  vector(prefix + "input_layernorm.weight", hidden);
  if (type == LayerType::linear_attention) {
    linear_attention(prefix + "linear_attn.");
  } else {
    full_attention(prefix + "self_attn.");
  }
  vector(prefix + "post_attention_layernorm.weight", hidden);
  matrix(prefix + "mlp.gate_proj", intermediate, hidden);
  matrix(prefix + "mlp.up_proj", intermediate, hidden);
  matrix(prefix + "mlp.down_proj", hidden, intermediate);
}

void SpecList::linear_attention(const std::string& prefix) {
  const std::int64_t hidden = config_.hidden_size;
  const std::int64_t value_heads = config_.linear_num_value_heads;
  const std::int64_t value_size = config_.linear_value_size();
  const std::int64_t channels = config_.linear_conv_channels();
  matrix(prefix + "in_proj_qkv", channels, hidden);
  matrix(prefix + "in_proj_z", value_size, hidden);
  matrix(prefix + "in_proj_b", value_heads, hidden);
  matrix(prefix + "in_proj_a", value_heads, hidden);
  add(TensorRole::vector, prefix + "conv1d.weight", {channels, 1, config_.linear_conv_kernel_dim});
  vector(prefix + "A_log", value_heads);
  vector(prefix + "dt_bias", value_heads);
  vector(prefix + "norm.weight", config_.linear_value_head_dim);
  matrix(prefix + "out_proj", hidden, value_size);
}

// q_proj holds [query | gate] per head, hence twice the rows.
void SpecList::full_attention(const std::string& prefix) {
  const std::int64_t hidden = config_.hidden_size;
  const std::int64_t query_size = config_.num_attention_heads * config_.head_dim;
  const std::int64_t key_size = config_.num_key_value_heads * config_.head_dim;
  matrix(prefix + "q_proj", 2 * query_size, hidden);
  matrix(prefix + "k_proj", key_size, hidden);
  matrix(prefix + "v_proj", key_size, hidden);
  matrix(prefix + "o_proj", hidden, query_size);
  vector(prefix + "q_norm.weight", config_.head_dim);
  vector(prefix + "k_norm.weight", config_.head_dim);
}

void SpecList::mtp(std::string_view mtp_prefix) {
  const std::string prefix(mtp_prefix);
  const std::int64_t hidden = config_.hidden_size;
  set_group(TensorGroup::mtp);
  vector(prefix + "pre_fc_norm_embedding.weight", hidden);
  vector(prefix + "pre_fc_norm_hidden.weight", hidden);
  matrix(prefix + "fc", hidden, 2 * hidden);
  for (std::int64_t i = 0; i < config_.mtp_num_hidden_layers; ++i) {
    layer(prefix + "layers." + std::to_string(i) + ".", LayerType::full_attention);
  }
  vector(prefix + "norm.weight", hidden);
}

void SpecList::vision(std::string_view vision_prefix, const VisionConfig& vision) {
  const std::string prefix(vision_prefix);
  const std::int64_t hidden = vision.hidden_size;
  const std::int64_t merged = hidden * vision.spatial_merge_size * vision.spatial_merge_size;
  set_group(TensorGroup::vision);
  add(TensorRole::matrix, prefix + "patch_embed.proj.weight",
      {hidden, vision.in_channels, vision.temporal_patch_size, vision.patch_size,
       vision.patch_size});
  vector(prefix + "patch_embed.proj.bias", hidden);
  add(TensorRole::embedding, prefix + "pos_embed.weight", {vision.num_position_embeddings, hidden});
  for (std::int64_t i = 0; i < vision.depth; ++i) {
    const std::string block = prefix + "blocks." + std::to_string(i) + ".";
    layer_norm(block + "norm1", hidden);
    biased_matrix(block + "attn.qkv", 3 * hidden, hidden);
    biased_matrix(block + "attn.proj", hidden, hidden);
    layer_norm(block + "norm2", hidden);
    biased_matrix(block + "mlp.linear_fc1", vision.intermediate_size, hidden);
    biased_matrix(block + "mlp.linear_fc2", hidden, vision.intermediate_size);
  }
  layer_norm(prefix + "merger.norm", hidden);
  biased_matrix(prefix + "merger.linear_fc1", merged, merged);
  biased_matrix(prefix + "merger.linear_fc2", vision.out_hidden_size, merged);
}

std::string_view group_name(TensorGroup group) {
  constexpr std::array<std::string_view, 3> kNames{"text", "MTP", "vision"};
  return kNames[static_cast<std::size_t>(group)];
}

// One comparison of a checkpoint with its list. Every failure names the directory.
class Comparison {
 public:
  Comparison(const ModelConfig& config, const Checkpoint& checkpoint, std::vector<TensorSpec> specs)
      : config_(config), checkpoint_(checkpoint), specs_(std::move(specs)) {
    for (const TensorSpec& spec : specs_) {
      by_name_.emplace(spec.name, &spec);
    }
  }

  Result<void> check_present() const;
  Result<void> check_each() const;
  Result<void> check_no_extra() const;

 private:
  std::unexpected<Error> reject(std::string_view reason) const {
    return fail(ErrorCode::corrupt_data,
                fmt::format("{}: {}", checkpoint_.directory().string(), reason),
                checkpoint_.directory().string());
  }
  std::unexpected<Error> reject(std::string_view name, std::string_view reason) const {
    return reject(fmt::format("tensor {}: {}", printable(name), reason));
  }
  const PackedTensor* packed(std::string_view name) const {
    return checkpoint_.packed() == nullptr ? nullptr : checkpoint_.packed()->find(name);
  }
  Result<void> check_packed(const TensorSpec& spec, const PackedTensor& tensor) const;
  Result<void> check_dtype(const TensorSpec& spec, const TensorView& view) const;
  Result<void> check_scale(const TensorSpec& spec) const;
  Result<void> check_tied_head(const TensorView& head) const;

  const ModelConfig& config_;
  const Checkpoint& checkpoint_;
  std::vector<TensorSpec> specs_;
  std::map<std::string_view, const TensorSpec*> by_name_;
};

// Text tensors must all be there; the other groups all or not at all.
Result<void> Comparison::check_present() const {
  for (const TensorGroup group : {TensorGroup::text, TensorGroup::mtp, TensorGroup::vision}) {
    std::vector<const TensorSpec*> missing;
    std::size_t group_size = 0;
    for (const TensorSpec& spec : specs_) {
      if (spec.group == group) {
        ++group_size;
        if (checkpoint_.find(spec.name) == nullptr && packed(spec.name) == nullptr) {
          missing.push_back(&spec);
        }
      }
    }
    if (missing.empty() || (group != TensorGroup::text && missing.size() == group_size)) {
      continue;
    }
    std::string names;
    for (std::size_t i = 0; i < std::min(missing.size(), kNamesPrintedMax); ++i) {
      names += fmt::format("{}{} {}", i == 0 ? "" : ", ", missing[i]->name,
                           to_string(missing[i]->shape));
    }
    return reject(fmt::format("{} of {} {} tensors are missing: {}{}", missing.size(), group_size,
                              group_name(group), names,
                              missing.size() > kNamesPrintedMax ? ", ..." : ""));
  }
  return {};
}

Result<void> Comparison::check_each() const {
  for (const TensorSpec& spec : specs_) {
    if (const PackedTensor* tensor = packed(spec.name); tensor != nullptr) {
      SLUICE_TRY(check_packed(spec, *tensor));
    }
    const TensorView* view = checkpoint_.find(spec.name);
    if (view == nullptr) {
      continue;  // packed, or of a group that is absent as a whole
    }
    if (view->shape != spec.shape) {
      return reject(spec.name, fmt::format("shape {}, want {}", to_string(view->shape),
                                           to_string(spec.shape)));
    }
    SLUICE_TRY(check_dtype(spec, *view));
  }
  return {};
}

Result<void> Comparison::check_packed(const TensorSpec& spec, const PackedTensor& tensor) const {
  const kernels::WeightFormat want = weight_format(checkpoint_.packed()->preset(), spec.name);
  if (tensor.shape != spec.shape || tensor.format != want) {
    return reject(spec.name, fmt::format("packed {} {}, want {} {}",
                                         kernels::to_string(tensor.format), to_string(tensor.shape),
                                         kernels::to_string(want), to_string(spec.shape)));
  }
  return {};
}

Result<void> Comparison::check_dtype(const TensorSpec& spec, const TensorView& view) const {
  if (view.dtype == DType::bf16 || view.dtype == DType::f16 || view.dtype == DType::f32) {
    return {};
  }
  if (spec.role == TensorRole::matrix && view.dtype == DType::f8_e4m3) {
    if (!config_.fp8_weights) {
      return reject(spec.name, "dtype F8_E4M3, but config.json has no fp8 quantization_config");
    }
    return check_scale(spec);
  }
  return reject(spec.name, fmt::format("dtype {}, want BF16, F16{} F32{}", dtype_name(view.dtype),
                                       spec.role == TensorRole::matrix ? "," : " or",
                                       spec.role == TensorRole::matrix ? " or F8_E4M3" : ""));
}

Result<void> Comparison::check_scale(const TensorSpec& spec) const {
  const std::string name = spec.name + std::string(kScaleSuffix);
  const TensorView* scale = checkpoint_.find(name);
  if (scale == nullptr) {
    return reject(spec.name, fmt::format("dtype F8_E4M3, but {} is missing", name));
  }
  if (spec.shape.size() != 2) {
    return reject(spec.name, "dtype F8_E4M3 for a tensor that is not [out, in]");
  }
  const Shape want{kernels::fp8_blocks(spec.shape[0]), kernels::fp8_blocks(spec.shape[1])};
  if (scale->shape != want) {
    return reject(name, fmt::format("shape {}, want {}", to_string(scale->shape), to_string(want)));
  }
  if (scale->dtype != DType::bf16 && scale->dtype != DType::f32) {
    return reject(name, fmt::format("dtype {}, want BF16 or F32", dtype_name(scale->dtype)));
  }
  return {};
}

Result<void> Comparison::check_no_extra() const {
  if (checkpoint_.packed() != nullptr) {
    for (const auto& [name, tensor] : checkpoint_.packed()->tensors()) {
      if (!by_name_.contains(name)) {
        return reject(name, "packed, but config.json does not account for it");
      }
    }
  }
  std::size_t extra_count = 0;
  std::string names;
  for (const auto& [name, view] : checkpoint_.tensors()) {
    if (by_name_.contains(name)) {
      continue;
    }
    if (name == kHeadName && config_.tie_word_embeddings) {
      SLUICE_TRY(check_tied_head(view));
      continue;
    }
    if (name.ends_with(kScaleSuffix)) {
      const auto owner = by_name_.find(name.substr(0, name.size() - kScaleSuffix.size()));
      const TensorView* weight = owner == by_name_.end() ? nullptr : checkpoint_.find(owner->first);
      if (weight != nullptr && weight->dtype == DType::f8_e4m3) {
        continue;  // check_scale has seen it
      }
    }
    if (extra_count++ < kNamesPrintedMax) {
      names +=
          fmt::format("{}{} {}", names.empty() ? "" : ", ", printable(name), to_string(view.shape));
    }
  }
  if (extra_count == 0) {
    return {};
  }
  return reject(fmt::format("{} tensors that config.json does not account for: {}{}", extra_count,
                            names, extra_count > kNamesPrintedMax ? ", ..." : ""));
}

Result<void> Comparison::check_tied_head(const TensorView& head) const {
  const auto embedding = std::find_if(specs_.begin(), specs_.end(), [](const TensorSpec& spec) {
    return spec.role == TensorRole::embedding;
  });
  const TensorView* table = checkpoint_.find(embedding->name);
  if (table == nullptr || table->dtype != head.dtype || table->shape != head.shape ||
      std::memcmp(table->bytes.data(), head.bytes.data(), head.bytes.size()) != 0) {
    return reject(kHeadName, fmt::format("tie_word_embeddings is true, but it differs from {}",
                                         embedding->name));
  }
  return {};
}

bool any_with_prefix(const Checkpoint& checkpoint, std::string_view prefix) {
  const auto first = checkpoint.tensors().lower_bound(prefix);
  return first != checkpoint.tensors().end() && first->first.starts_with(prefix);
}

}  // namespace

Result<std::string> text_prefix(const Checkpoint& checkpoint) {
  constexpr std::string_view kEmbedding = "embed_tokens.weight";
  const std::string where = checkpoint.directory().string();
  std::vector<std::string> found;
  for (const std::string_view prefix : {kNestedTextPrefix, kFlatTextPrefix}) {
    if (checkpoint.find(fmt::format("{}{}", prefix, kEmbedding)) != nullptr) {
      found.emplace_back(prefix);
    }
  }
  if (found.size() == 1) {
    return found.front();
  }
  return fail(ErrorCode::corrupt_data,
              fmt::format("{}: want one of the tensors {}{} and {}{}, {} are there", where,
                          kNestedTextPrefix, kEmbedding, kFlatTextPrefix, kEmbedding, found.size()),
              where);
}

Result<std::string> mtp_prefix(const Checkpoint& checkpoint) {
  const bool plain = any_with_prefix(checkpoint, kMtpPrefix);
  const bool nested = any_with_prefix(checkpoint, kNestedMtpPrefix);
  if (plain && nested) {
    const std::string where = checkpoint.directory().string();
    return fail(
        ErrorCode::corrupt_data,
        fmt::format("{}: MTP tensors under both {} and {}", where, kMtpPrefix, kNestedMtpPrefix),
        where);
  }
  return std::string(nested ? kNestedMtpPrefix : kMtpPrefix);
}

bool has_group(const ModelConfig& config, const Checkpoint& checkpoint, TensorGroup group) {
  switch (group) {
    case TensorGroup::text:
      return true;
    case TensorGroup::mtp:
      return config.mtp_num_hidden_layers > 0 && (any_with_prefix(checkpoint, kMtpPrefix) ||
                                                  any_with_prefix(checkpoint, kNestedMtpPrefix));
    case TensorGroup::vision:
      return config.vision.has_value() && any_with_prefix(checkpoint, kVisionPrefix);
  }
  return false;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& config, std::string_view text_prefix,
                                     std::string_view mtp_prefix) {
  SpecList list(config);
  list.text(text_prefix);
  if (config.mtp_num_hidden_layers > 0) {
    list.mtp(mtp_prefix);
  }
  if (config.vision) {
    list.vision(kVisionPrefix, *config.vision);
  }
  return list.release();
}

Result<void> check_tensors(const ModelConfig& config, const Checkpoint& checkpoint) {
  const std::string text = SLUICE_TRY(text_prefix(checkpoint));
  const std::string mtp = SLUICE_TRY(mtp_prefix(checkpoint));
  const Comparison comparison(config, checkpoint, list_tensors(config, text, mtp));
  SLUICE_TRY(comparison.check_present());
  SLUICE_TRY(comparison.check_each());
  return comparison.check_no_extra();
}

}  // namespace sluice
