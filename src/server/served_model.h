// What the server needs to know about the model it serves, beside the engine that runs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/chat/vision_prompt.h"
#include "engine/engine.h"
#include "media/preprocessor_config.h"
#include "text/chat_template.h"
#include "text/generation_config.h"
#include "text/tokenizer.h"

namespace sluice {

// How pictures come into prompts.
struct VisionModel {
  PlaceholderIds placeholders;
  PreprocessorConfig preprocessor = {};

  // Of a picture or frame as the encoder sees it.
  std::int64_t pixels_max() const { return encoder_pixels_max(preprocessor); }
};

// Thread rule: read only once the server runs.
struct ServedModel {
  Tokenizer tokenizer;
  ChatTemplate chat_template;
  GenerationConfig generation;
  std::string id;                          // the canonical name: "tiny", "Qwen3.6-27B"
  std::vector<std::string> aliases = {};   // further names /v1/models lists
  std::int64_t created = 0;                // Unix seconds of the weights, for /v1/models
  std::string quantisation = "none";       // how the weights are held, for /version
  std::string fingerprint = "fp_unknown";  // of build, weights, quantisation and template
  CacheIdentity cache_identity = {};       // what kept prefixes depend on, for cache files
  std::optional<VisionModel> vision = std::nullopt;  // none: it reads text only
  std::string version = "0.0.0";                     // of this program
  std::string build = "unknown";                     // commit or date
};

}  // namespace sluice
