// Where the engine goes once there is one: the server answers from its first moment, an engine
// takes as long as its weights take to load.
//
// Thread rule: fill() once, from any thread; everything else from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace sluice {

class EngineSlot final : public Engine {
 public:
  // config: the engine's, whenever it comes.
  explicit EngineSlot(EngineConfig config) : config_(std::move(config)) {}

  // The engine must outlive the slot.
  void fill(Engine& engine) { engine_.store(&engine); }

  // Until then all that asks for work fails with cancelled, and nothing runs.
  Result<std::shared_ptr<GenerationStream>> submit(Request request,
                                                   std::function<void()> on_ready) override {
    Engine* engine = engine_.load();
    return engine != nullptr ? engine->submit(std::move(request), std::move(on_ready)) : none();
  }
  Result<void> flush_cache(CacheFlush what,
                           std::function<void(const CacheFlushed&)> on_done) override {
    Engine* engine = engine_.load();
    return engine != nullptr ? engine->flush_cache(std::move(what), std::move(on_done)) : none();
  }
  Result<void> list_pins(std::function<void(const std::vector<PinnedPrefix>&)> on_done) override {
    Engine* engine = engine_.load();
    return engine != nullptr ? engine->list_pins(std::move(on_done)) : none();
  }
  Result<void> unpin(std::string id, std::function<void(const bool&)> on_done) override {
    Engine* engine = engine_.load();
    return engine != nullptr ? engine->unpin(std::move(id), std::move(on_done)) : none();
  }
  Result<void> save_cache(CacheFile file,
                          std::function<void(const Result<CacheTransfer>&)> on_done) override {
    Engine* engine = engine_.load();
    return engine != nullptr ? engine->save_cache(std::move(file), std::move(on_done)) : none();
  }
  Result<void> load_cache(CacheFile file,
                          std::function<void(const Result<CacheTransfer>&)> on_done) override {
    Engine* engine = engine_.load();
    return engine != nullptr ? engine->load_cache(std::move(file), std::move(on_done)) : none();
  }
  EngineStatus status() const override {
    const Engine* engine = engine_.load();
    return engine != nullptr ? engine->status() : EngineStatus{};
  }
  const EngineConfig& config() const override { return config_; }

 private:
  static std::unexpected<Error> none() {
    return fail(ErrorCode::cancelled, "the model is loading");
  }

  const EngineConfig config_;
  std::atomic<Engine*> engine_{nullptr};
};

}  // namespace sluice
