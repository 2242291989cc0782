// See generation_fields.h. Ranges are those of the OpenAI API where it has the field.
#include "api/fields/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>

namespace sluice {
namespace {

namespace json = boost::json;

std::optional<float> read_float(JsonFields& body, std::string_view key, NumberRange range) {
  const auto number = body.number(key, range);
  return number ? std::optional(static_cast<float>(*number)) : std::nullopt;
}

void read_logit_bias(JsonFields& body, const RequestLimits& limits, SamplingFields& sampling) {
  const json::value* value = body.find("logit_bias");
  if (value == nullptr) {
    return;
  }
  FieldReport& report = body.report();
  const std::string path = body.path_of("logit_bias");
  if (!value->is_object()) {
    report.fail(ApiErrorKind::invalid_type,
                fmt::format("{} is {}, want an object", path, json_type_name(*value)), path);
    return;
  }
  const json::object& entries = value->get_object();
  if (static_cast<std::int64_t>(entries.size()) > kLogitBiasMax) {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("{} has {} entries, at most {} are allowed", path, entries.size(),
                            kLogitBiasMax),
                path);
    return;
  }
  for (const auto& entry : entries) {
    const std::string_view key(entry.key().data(), entry.key().size());
    TokenId id = -1;
    const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool whole = failure == std::errc() && end == key.data() + key.size();
    if (!whole || id < 0 || id >= limits.vocab_size) {
      report.fail(ApiErrorKind::invalid_value,
                  fmt::format("{} has the key '{}', want a token id from 0 to {}", path,
                              key.substr(0, 64), limits.vocab_size - 1),
                  path);
      return;
    }
    const double bias = entry.value().is_number() ? entry.value().to_number<double>() : 1e9;
    if (!(bias >= -100.0 && bias <= 100.0)) {
      report.fail(ApiErrorKind::invalid_value,
                  fmt::format("{}.{} wants a number from -100 to 100", path, id),
                  fmt::format("{}.{}", path, id));
      return;
    }
    sampling.logit_bias.emplace_back(id, static_cast<float>(bias));
  }
}

void add_stop_text(const json::value& value, const std::string& path, FieldReport& report,
                   std::vector<std::string>& stop) {
  if (!value.is_string()) {
    report.fail(ApiErrorKind::invalid_type,
                fmt::format("{} is {}, want a string", path, json_type_name(value)), path);
    return;
  }
  const auto& text = value.get_string();
  if (static_cast<std::int64_t>(text.size()) > kStopTextBytesMax) {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("{} has {} bytes, at most {} are allowed", path, text.size(),
                            kStopTextBytesMax),
                path);
  } else if (!text.empty()) {
    stop.emplace_back(text);
  }
}

void read_stop_fields(JsonFields& body, const RequestLimits& limits, GenerationFields& fields) {
  fields.stop = read_stop_texts(body, "stop");
  fields.keep_stop_text = body.boolean("include_stop_str_in_output").value_or(false);
  if (const auto scope = body.string("stop_scope")) {
    fields.stop_everywhere = *scope == "all";
    if (*scope != "all" && *scope != "content") {
      body.report().fail(ApiErrorKind::invalid_value, "stop_scope wants 'content' or 'all'",
                         body.path_of("stop_scope"));
    }
  }
  if (const json::array* ids = body.array("stop_token_ids")) {
    const std::string path = body.path_of("stop_token_ids");
    if (static_cast<std::int64_t>(ids->size()) > kStopTokensMax) {
      body.report().fail(
          ApiErrorKind::invalid_value,
          fmt::format("{} has {} ids, at most {} are allowed", path, ids->size(), kStopTokensMax),
          path);
    } else {
      fields.stop_token_ids = read_token_ids(*ids, path, limits, body.report());
    }
  }
  fields.ignore_eos = body.boolean("ignore_eos").value_or(false);
}

void read_stream_fields(JsonFields& body, GenerationFields& fields) {
  fields.stream = body.boolean("stream").value_or(false);
  if (!fields.stream) {
    return;  // stream_options then stays among the ignored
  }
  if (auto options = body.object("stream_options")) {
    fields.include_usage = options->boolean("include_usage").value_or(false);
    fields.continuous_usage = options->boolean("continuous_usage_stats").value_or(false);
    options->ignore_rest();
  }
}

std::optional<std::string> read_request_id(JsonFields& body) {
  auto id = body.string("request_id");
  const auto printable = [](char c) { return c > 0x20 && c < 0x7F; };
  if (id &&
      (id->empty() || id->size() > kRequestIdBytesMax || !std::ranges::all_of(*id, printable))) {
    body.report().fail(ApiErrorKind::invalid_value,
                       fmt::format("request_id wants 1 to {} printable characters without spaces",
                                   kRequestIdBytesMax),
                       "request_id");
    return std::nullopt;
  }
  return id;
}

// Fields that would change the answer and cannot be honoured. Values that mean "off" pass.
void refuse_unsupported(JsonFields& body) {
  if (body.boolean("use_beam_search").value_or(false)) {
    body.reject("use_beam_search", "tokens are sampled one by one");
  }
  body.reject("prompt_logprobs", "prompt tokens are not scored");
}

}  // namespace

GenerationFields read_generation_fields(JsonFields& body, const RequestLimits& limits) {
  GenerationFields fields;
  fields.model = body.string("model");
  if (fields.model && fields.model->size() > kModelNameBytesMax) {
    body.report().fail(ApiErrorKind::invalid_value,
                       fmt::format("model has {} bytes, want at most {}", fields.model->size(),
                                   kModelNameBytesMax),
                       "model");
  }
  read_stream_fields(body, fields);
  fields.choices = body.integer("n", {1, limits.choices_max}).value_or(1);
  if (const auto best_of = body.integer("best_of", {1, limits.choices_max});
      best_of && *best_of != fields.choices) {
    body.reject("best_of", "it must equal n");
  }
  fields.sampling = read_sampling_fields(body, limits);
  read_stop_fields(body, limits, fields);
  fields.skip_special_tokens = body.boolean("skip_special_tokens").value_or(true);
  fields.return_token_ids = body.boolean("return_token_ids").value_or(false);
  fields.timings = body.boolean("timings").value_or(false);
  fields.request_id = read_request_id(body);
  fields.priority = body.integer("priority", {-kPriorityMax, kPriorityMax}).value_or(0);
  fields.cache_salt = read_cache_salt(body);
  constexpr double kTimeoutSecondsMax = 1e6;
  fields.timeout_seconds = body.number("timeout", {0.0, kTimeoutSecondsMax, true});
  fields.constraint = read_constraint_fields(body, limits);
  refuse_unsupported(body);
  return fields;
}

std::string read_cache_salt(JsonFields& body) {
  const auto salt = body.string("cache_salt");
  if (salt && (salt->empty() || salt->size() > kCacheSaltBytesMax)) {
    body.report().fail(
        ApiErrorKind::invalid_value,
        fmt::format("cache_salt has {} bytes, want 1 to {}", salt->size(), kCacheSaltBytesMax),
        "cache_salt");
  }
  return salt.value_or("");
}

SamplingFields read_sampling_fields(JsonFields& body, const RequestLimits& limits) {
  SamplingFields sampling;
  sampling.temperature = read_float(body, "temperature", {0.0, 2.0});
  sampling.top_p = read_float(body, "top_p", {0.0, 1.0});
  sampling.min_p = read_float(body, "min_p", {0.0, 1.0});
  sampling.presence_penalty = read_float(body, "presence_penalty", {-2.0, 2.0});
  sampling.frequency_penalty = read_float(body, "frequency_penalty", {-2.0, 2.0});
  const NumberRange repetition{0.0, 2.0, true};
  sampling.repetition_penalty = read_float(body, "repetition_penalty", repetition);
  const auto repeat = read_float(body, "repeat_penalty", repetition);
  if (!sampling.repetition_penalty) {
    sampling.repetition_penalty = repeat;
  }
  if (const auto top_k = body.integer("top_k", {-1, std::numeric_limits<std::int32_t>::max()})) {
    sampling.top_k = static_cast<std::int32_t>(std::max<std::int64_t>(*top_k, 0));
  }
  if (const auto seed = body.integer("seed", {})) {
    sampling.seed = static_cast<std::uint64_t>(*seed);
  }
  read_logit_bias(body, limits, sampling);
  return sampling;
}

void complete_sampling(SamplingFields& fields, const SamplingFields& defaults) {
  const auto complete = [](auto& value, const auto& other) { value = value ? value : other; };
  complete(fields.temperature, defaults.temperature);
  complete(fields.top_k, defaults.top_k);
  complete(fields.top_p, defaults.top_p);
  complete(fields.min_p, defaults.min_p);
  complete(fields.presence_penalty, defaults.presence_penalty);
  complete(fields.frequency_penalty, defaults.frequency_penalty);
  complete(fields.repetition_penalty, defaults.repetition_penalty);
}

std::vector<std::string> read_stop_texts(JsonFields& body, std::string_view key) {
  std::vector<std::string> stop;
  const json::value* value = body.find(key);
  if (value == nullptr) {
    return stop;
  }
  const std::string path = body.path_of(key);
  if (!value->is_array()) {
    add_stop_text(*value, path, body.report(), stop);
    return stop;
  }
  const json::array& texts = value->get_array();
  if (static_cast<std::int64_t>(texts.size()) > kStopTextsMax) {
    body.report().fail(
        ApiErrorKind::invalid_value,
        fmt::format("{} has {} strings, at most {} are allowed", path, texts.size(), kStopTextsMax),
        path);
    return stop;
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    add_stop_text(texts[i], fmt::format("{}[{}]", path, i), body.report(), stop);
  }
  return stop;
}

std::optional<std::int64_t> read_tokens_max(JsonFields& body,
                                            std::initializer_list<std::string_view> keys) {
  std::optional<std::int64_t> first;
  for (const std::string_view key : keys) {
    const auto value = body.integer(key, {-1, kTokensMaxMax});
    if (!first) {
      first = value;
    }
  }
  return first == -1 ? std::nullopt : first;
}

std::vector<TokenId> read_token_ids(const json::array& values, const std::string& path,
                                    const RequestLimits& limits, FieldReport& report) {
  std::vector<TokenId> ids;
  ids.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto id = as_integer(values[i]);
    if (!id || *id < 0 || *id >= limits.vocab_size) {
      const std::string element = fmt::format("{}[{}]", path, i);
      report.fail(id ? ApiErrorKind::invalid_value : ApiErrorKind::invalid_type,
                  fmt::format("{} wants a token id from 0 to {}", element, limits.vocab_size - 1),
                  element);
      return {};
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

SamplingParams resolve_sampling(const SamplingFields& fields, const GenerationConfig& model,
                                std::uint64_t seed) {
  SamplingParams params;
  const float model_temperature = model.do_sample ? model.temperature.value_or(1.0F) : 0.0F;
  params.temperature = fields.temperature.value_or(model_temperature);
  params.top_k = fields.top_k.value_or(std::max(model.top_k.value_or(0), 0));
  params.top_p = fields.top_p.value_or(model.top_p.value_or(1.0F));
  params.min_p = fields.min_p.value_or(model.min_p.value_or(0.0F));
  params.presence_penalty = fields.presence_penalty.value_or(model.presence_penalty.value_or(0.0F));
  params.frequency_penalty = fields.frequency_penalty.value_or(0.0F);
  params.repetition_penalty =
      fields.repetition_penalty.value_or(model.repetition_penalty.value_or(1.0F));
  params.seed = fields.seed.value_or(seed);
  params.logit_bias = fields.logit_bias;
  return params;
}

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

StopCriteria resolve_stop(const GenerationFields& fields, const GenerationConfig& model,
                          std::int64_t tokens_max) {
  StopCriteria stop;
  stop.tokens_max = tokens_max;
  stop.stop_token_ids = fields.stop_token_ids;
  if (!fields.ignore_eos) {
    stop.stop_token_ids.insert(stop.stop_token_ids.end(), model.eos_token_ids.begin(),
                               model.eos_token_ids.end());
  }
  return stop;
}

}  // namespace sluice
