// The flags of `sluice serve`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/model_loader.h"
#include "engine/engine.h"
#include "server/server_config.h"

namespace CLI {
class App;
}

namespace sluice::apps {

struct ServeOptions {
  RuntimeOptions runtime;
  ServerConfig server;
  EngineConfig engine = {.context_max = 0};  // 0: kDefaultContext, or what the model has
  std::string name;                          // empty: that of the directory
  std::vector<std::string> aliases;
  std::string api_key_file;
  std::int64_t body_mib_max = 128;
  std::int64_t body_memory_mib = 0;  // 0: kBodiesAtOnce of the largest
  bool no_vision = false;            // pictures are refused, the encoder is not loaded
  std::int64_t image_mib_max = 50;
  std::int64_t image_megapixels_max = 48;
  std::int64_t pixel_mib = 1024;   // for pixels of requests
  std::int64_t picture_mib = 256;  // for what the encoder made, kept for later requests
  std::int64_t cache_mib = 2048;
  std::string cache_dir;  // empty: no cache files
  std::string
      cache_file;  // a name in it; empty: nothing is loaded at the start or saved at the end
  std::string log_level = "info";
};

// Ranges are checked while parsing.
void add_serve_options(CLI::App& command, ServeOptions& options);

}  // namespace sluice::apps
