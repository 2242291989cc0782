#include "apps/generation.h"

#include <memory>
#include <optional>
#include <utility>
#include <variant>

namespace sluice::apps {

Result<GenerationEnd> run_generation(Engine& engine, Request request, SignalWatch& watch,
                                     const OnToken& on_token) {
  const std::shared_ptr<GenerationStream> stream =
      SLUICE_TRY(engine.submit(std::move(request), [&watch] { watch.wake(); }));
  GenerationEnd end;
  bool wanted = true;
  for (;;) {
    while (std::optional<GenerationEvent> event = stream->try_next()) {
      if (auto* finished = std::get_if<GenerationFinished>(&*event)) {
        end.finished = std::move(*finished);
        return end;
      }
      const auto* token = std::get_if<TokenEvent>(&*event);
      if (wanted && token != nullptr && !on_token(*token)) {
        wanted = false;  // tokens computed meanwhile are not part of the answer
        stream->cancel();
      }
    }
    watch.wait();
    if (watch.take_signal()) {
      end.interrupted = true;
      stream->cancel();
    }
  }
}

}  // namespace sluice::apps
