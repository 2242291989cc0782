#include "api/fields/sampling_defaults.h"

#include <fmt/format.h>

#include <utility>

namespace sluice {
namespace {

SamplingFields read_mode(JsonFields& body, std::string_view mode) {
  SamplingFields sampling;
  if (auto fields = body.object(mode)) {
    fields->reject("seed", "it would be the same for all requests");
    fields->reject("logit_bias", "it belongs to single requests");
    sampling = read_sampling_fields(*fields, {});
    fields->ignore_rest();
  }
  return sampling;
}

}  // namespace

ApiResult<SamplingDefaults> parse_sampling_defaults(std::string text) {
  SamplingDefaults defaults;
  const auto unknown = read_body(std::move(text), [&](JsonFields& body) {
    defaults.thinking = read_mode(body, "thinking");
    defaults.direct = read_mode(body, "direct");
  });
  if (!unknown) {
    return std::unexpected(unknown.error());
  }
  if (!unknown->empty()) {
    return api_fail(
        ApiErrorKind::invalid_value,
        fmt::format("{} is no sampling field of \"thinking\" or \"direct\"", unknown->front()),
        unknown->front());
  }
  return defaults;
}

}  // namespace sluice
