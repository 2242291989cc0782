#include "weights/weight_preset.h"

namespace sluice {
namespace {

using kernels::WeightFormat;

constexpr std::array<std::string_view, kWeightPresets.size()> kPresetNames{"bf16", "mlp-fp8", "fp8",
                                                                           "int8", "int4"};

bool is_head(std::string_view name) {
  return name == "lm_head.weight" || name.ends_with("embed_tokens.weight");
}

bool is_gate(std::string_view name) {
  return name.ends_with(".in_proj_a.weight") || name.ends_with(".in_proj_b.weight");
}

}  // namespace

std::string_view to_string(WeightPreset preset) {
  return kPresetNames[static_cast<std::size_t>(preset)];
}

std::optional<WeightPreset> weight_preset_from_name(std::string_view name) {
  for (const WeightPreset preset : kWeightPresets) {
    if (to_string(preset) == name) {
      return preset;
    }
  }
  return std::nullopt;
}

bool is_narrow(WeightPreset preset, std::string_view name) {
  if (preset == WeightPreset::bf16 || is_gate(name) || name.find("visual.") != name.npos ||
      name.ends_with("mtp.fc.weight")) {
    return false;
  }
  if (preset == WeightPreset::mlp_fp8) {
    return name.find(".mlp.") != std::string_view::npos;
  }
  return preset != WeightPreset::fp8 || !is_head(name);
}

WeightFormat weight_format(WeightPreset preset, std::string_view name) {
  if (!is_narrow(preset, name)) {
    return WeightFormat::bf16;
  }
  if (preset == WeightPreset::fp8 || preset == WeightPreset::mlp_fp8) {
    return WeightFormat::fp8;
  }
  return preset == WeightPreset::int4 && !is_head(name) ? WeightFormat::int4 : WeightFormat::int8;
}

bool has_integer_weights(WeightPreset preset) {
  return preset == WeightPreset::int8 || preset == WeightPreset::int4;
}

}  // namespace sluice
