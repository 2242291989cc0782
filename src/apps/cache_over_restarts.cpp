#include "apps/cache_over_restarts.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <system_error>

namespace sluice::apps {
namespace {

using OnDone = std::function<void(const Result<CacheTransfer>&)>;
using Move = Result<void> (Engine::*)(CacheFile file, OnDone on_done);

Result<CacheTransfer> move_cache(Engine& engine, const CacheFile& file, Move move) {
  // Shared: the engine's thread may still be in set_value() when we go on.
  const auto moved = std::make_shared<std::promise<Result<CacheTransfer>>>();
  const Result<void> taken = (engine.*move)(
      file, [moved](const Result<CacheTransfer>& outcome) { moved->set_value(outcome); });
  return taken ? moved->get_future().get() : std::unexpected(taken.error());
}

std::string describe(const CacheTransfer& moved) {
  return fmt::format("{} tokens, {} bytes, {} pins in {:.3f} s", moved.tokens, moved.bytes,
                     moved.pins, moved.seconds);
}

}  // namespace

Result<void> check_cache_options(const ServeOptions& options) {
  std::error_code ignored;
  if (!options.cache_file.empty() && options.cache_dir.empty()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--cache-file {}: needs --cache-dir", options.cache_file));
  }
  if (!options.cache_dir.empty() && !std::filesystem::is_directory(options.cache_dir, ignored)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--cache-dir {}: there is no such directory", options.cache_dir));
  }
  if (!options.cache_file.empty() && options.cache_mib == 0) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("--cache-file {}: nothing is kept with --cache-memory 0", options.cache_file));
  }
  return {};
}

void load_cache_at_start(Engine& engine, const CacheFile& file) {
  const auto loaded = move_cache(engine, file, &Engine::load_cache);
  if (loaded) {
    spdlog::info("kept prefixes: loaded {} from {}", describe(*loaded), file.path.string());
  } else if (loaded.error().code == ErrorCode::not_found) {
    spdlog::info("kept prefixes: there is no {} yet", file.path.string());
  } else {
    spdlog::warn("kept prefixes: starting with none, {} is refused: {}", file.path.string(),
                 loaded.error().message);
  }
}

void save_cache_at_end(Engine& engine, const CacheFile& file) {
  const auto saved = move_cache(engine, file, &Engine::save_cache);
  if (saved) {
    spdlog::info("kept prefixes: saved {} to {}", describe(*saved), file.path.string());
  } else {
    spdlog::error("kept prefixes: {} was not written: {}", file.path.string(),
                  saved.error().message);
  }
}

}  // namespace sluice::apps
