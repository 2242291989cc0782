#include "server/models.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>

#include "api/fields/json_text.h"
#include "api/responses/codex_catalog.h"
#include "server/error_map.h"
#include "server/generation_plan.h"

namespace sluice {
namespace {

namespace json = boost::json;

std::vector<std::string> model_names(const ServedModel& model) {
  std::vector<std::string> names{model.id};
  names.insert(names.end(), model.aliases.begin(), model.aliases.end());
  return names;
}

json::array input_modalities(bool sees) {
  return sees ? json::array{"text", "image", "video"} : json::array{"text"};
}

json::object model_json(const ServedModel& model, const std::string& name, std::int64_t context) {
  const bool sees = model.vision.has_value();
  const std::chrono::sys_seconds created{std::chrono::seconds(model.created)};
  return json::object{
      {"id", name},
      {"object", "model"},
      {"type", "model"},
      {"created", model.created},
      {"created_at", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                                 fmt::gmtime(std::chrono::system_clock::to_time_t(created)))},
      {"owned_by", "local"},
      {"display_name", name},
      {"lifecycle", "active"},
      {"root", model.id},
      {"max_model_len", context},
      {"context_length", context},
      {"max_input_tokens", context},
      {"max_tokens", context},
      {"architecture", json::object{{"input_modalities", input_modalities(sees)},
                                    {"output_modalities", json::array{"text"}}}},
      {"capabilities", json::object{{"tools", true}, {"reasoning", true}, {"vision", sees}}}};
}

}  // namespace

void handle_models(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const std::vector<std::string> names = model_names(*backend.model);
  const std::int64_t context = context_max_of(backend, exchange->request());
  json::array list;
  json::array catalog;
  for (const std::string& name : names) {
    list.push_back(model_json(*backend.model, name, context));
    catalog.push_back(codex_model_json({.name = name,
                                        .context_tokens = context,
                                        .rank = static_cast<std::int64_t>(catalog.size()),
                                        .sees = backend.model->vision.has_value()}));
  }
  exchange->reply({.body = json::serialize(json::object{{"object", "list"},
                                                        {"data", std::move(list)},
                                                        {"models", std::move(catalog)},
                                                        {"has_more", false},
                                                        {"first_id", names.front()},
                                                        {"last_id", names.back()}})});
}

void handle_model(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const std::string& path = exchange->request().path;
  constexpr std::string_view kFolder = "/models/";
  const std::string name = path.substr(path.find(kFolder) + kFolder.size());
  const std::vector<std::string> names = model_names(*backend.model);
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    const std::int64_t context = context_max_of(backend, exchange->request());
    exchange->reply({.body = json::serialize(model_json(*backend.model, name, context))});
    return;
  }
  exchange->reply(openai_error_response(
      {ApiErrorKind::model_not_found,
       fmt::format("there is no model of that name; {} is served", backend.model->id), "model"}));
}

void handle_props(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const ServedModel& model = *backend.model;
  const EngineConfig& engine = backend.engine->config();
  exchange->reply(
      {.body = to_json(json::object{
           {"default_generation_settings",
            json::object{{"n_ctx", context_max_of(backend, exchange->request())}}},
           {"total_slots", engine.sequences_max},
           {"model_alias", model.id},
           {"chat_template", model.chat_template.source()},
           {"modalities", json::object{{"vision", model.vision.has_value()}, {"audio", false}}},
           {"build_info", model.build}})});
}

}  // namespace sluice
