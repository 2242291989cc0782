#include "server/health.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace sluice {
namespace {

namespace json = boost::json;

std::string_view status_name(Readiness::Status status) {
  switch (status) {
    case Readiness::Status::loading:
    case Readiness::Status::warming_up:
      return "loading";
    case Readiness::Status::ready:
      return "ok";
    case Readiness::Status::draining:
      return "draining";
    case Readiness::Status::device_error:
      break;
  }
  return "device_error";
}

}  // namespace

void handle_live(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  exchange->reply(
      {.body = json::serialize(json::object{{"status", "ok"}, {"model", backend.model->id}})});
}

void handle_ready(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const Readiness::Status status = backend.readiness->status();
  const std::string_view name = status_name(status);
  const EngineStatus engine = backend.engine->status();
  HttpResponse response;
  json::object body{{"status", json::string_view(name.data(), name.size())},
                    {"model", backend.model->id},
                    {"queue", engine.waiting},
                    {"running", engine.running}};
  if (status == Readiness::Status::loading) {
    body.emplace("progress", backend.readiness->progress());
  }
  response.body = json::serialize(body);
  if (status != Readiness::Status::ready) {
    response.status = 503;
    response.headers.emplace_back("retry-after", "1");
  }
  exchange->reply(std::move(response));
}

void handle_version(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const ServedModel& model = *backend.model;
  exchange->reply({.body = json::serialize(json::object{{"version", model.version},
                                                        {"build", model.build},
                                                        {"model", model.id},
                                                        {"quant", model.quantisation},
                                                        {"fingerprint", model.fingerprint}})});
}

}  // namespace sluice
