// What the checkpoint says about generation: stop ids and sampling defaults.
// Sources: generation_config.json, else eos_token_id of config.json; always joined with the
// tokenizer's eos_token (some re-exports list only <|endoftext|>, which never ends a chat answer).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace sluice {

struct GenerationConfig {
  std::vector<std::int32_t> eos_token_ids;  // ascending, no duplicates; may be empty
  bool do_sample = false;
  std::optional<float> temperature;
  std::optional<std::int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> presence_penalty;
  std::optional<float> repetition_penalty;
};

// `tokenizer` may be null (a checkpoint without one). A missing file is not an error; a malformed
// one is (corrupt_data, with file and field).
Result<GenerationConfig> load_generation_config(const std::filesystem::path& model_directory,
                                                const Tokenizer* tokenizer);

}  // namespace sluice
