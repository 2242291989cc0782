// What another thread asks of the engine, done on the engine thread between two steps.
#pragma once

namespace sluice {

class EngineLoop;

// Made by Engine's methods on any thread, then owned by the engine thread.
class EngineCommand {
 public:
  EngineCommand() = default;
  EngineCommand(const EngineCommand&) = delete;
  EngineCommand& operator=(const EngineCommand&) = delete;
  virtual ~EngineCommand() = default;

  virtual void run(EngineLoop& loop) = 0;
  // Hands the outcome back, once the status that has it was published. Must only wake the reader,
  // and must not throw.
  virtual void done() = 0;
};

}  // namespace sluice
