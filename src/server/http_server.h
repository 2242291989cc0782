// The HTTP server: accepts connections, runs them on a few threads, and ends without cutting
// answers off. Its only public class; apps/ builds one, then the engine for it.
//
// Thread rule: run() and the destructor from the owner; everything else from any thread (not from a
// signal handler).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "server/served_model.h"
#include "server/server_config.h"

namespace sluice {

class HttpServer {
 public:
  // Binds and listens; connections wait until run(). engine: of the engine that will come. The
  // model must outlive the server. Errors: invalid_argument (address, "*" as origin without a key),
  // io (port in use).
  static Result<std::unique_ptr<HttpServer>> create(const ServerConfig& config,
                                                    const EngineConfig& engine,
                                                    const ServedModel& model);

  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8000"

  // Until there is an engine: what needs one gets 503, /ready tells how far it is (0..1).
  void set_progress(double progress);
  // Once. The engine must outlive the server.
  void set_engine(Engine& engine);

  // Serves until stop() has drained; the calling thread is one of the HTTP threads.
  void run();

  // The first call: no new connections, new requests get 503, running answers may finish within
  // drain_seconds_max. After that, or at the second call, they are ended with an error that their
  // clients can read, and shortly after, or at the third call, every connection is closed.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
