#include "weights/rope_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <span>

namespace sluice {
namespace {

using std::string_view_literals::operator""sv;

// Where a rope value may be written: in rope_parameters, in rope_scaling, and for some keys
// directly in the text config.
struct Place {
  const ConfigObject* object;
  std::string_view key;
};

// The value at the first place that has one; places that repeat it must agree. Absent everywhere:
// no value. `read` is called as read(object, key) and returns Result<std::optional<T>>.
template <typename T, typename Read>
Result<std::optional<T>> read_agreed(std::span<const Place> places, const Read& read) {
  std::optional<T> result;
  std::string_view first_key;
  for (const Place& place : places) {
    const std::optional<T> value = SLUICE_TRY(read(*place.object, place.key));
    if (!value) {
      continue;
    }
    if (result && *result != *value) {
      return place.object->reject(ErrorCode::corrupt_data, place.key,
                                  fmt::format("the same as where {} is written before", first_key));
    }
    if (!result) {
      result = value;
      first_key = place.key;
    }
  }
  return result;
}

std::vector<Place> places_of(std::span<const ConfigObject> objects,
                             std::initializer_list<std::string_view> keys) {
  std::vector<Place> places;
  for (const ConfigObject& object : objects) {
    for (const std::string_view key : keys) {
      places.push_back({&object, key});
    }
  }
  return places;
}

Result<void> check_fixed_keys(const ConfigObject& object) {
  constexpr std::array kDefault{"default"sv};
  constexpr std::array kKnown{"rope_theta"sv,    "partial_rotary_factor"sv,
                              "mrope_section"sv, "mrope_interleaved"sv,
                              "rope_type"sv,     "type"sv};
  SLUICE_TRY(object.require_text("rope_type", kDefault));
  SLUICE_TRY(object.require_text("type", kDefault));
  SLUICE_TRY(object.require_flag("mrope_interleaved", true));
  for (const auto& member : object.object()) {
    const std::string_view key(member.key().data(), member.key().size());
    if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end() && object.has(key)) {
      return object.reject(ErrorCode::unsupported, key,
                           "no such key (its effect on the positions is not known)");
    }
  }
  return {};
}

// The sections must divide the rotary_dim / 2 frequencies as the interleaving does: height takes
// 1, 4, 7, ..., width 2, 5, 8, ..., time the rest; so the last height and width frequency must
// exist.
Result<void> read_sections(const ConfigObject& text, std::span<const ConfigObject> objects,
                           RopeParameters& rope) {
  const auto read = [](const ConfigObject& object, std::string_view key) {
    return object.integers(key, {.min = 0, .max = kHeadDimMax}, false);
  };
  const auto sections = SLUICE_TRY(read_agreed<std::vector<std::int64_t>>(
                                       places_of(objects, {"mrope_section"}), read))
                            .value_or(std::vector<std::int64_t>{11, 11, 10});
  const auto reject = [&](std::string_view reason) {
    return text.explain(ErrorCode::unsupported, "mrope_section",
                        fmt::format("is [{}]: {}", fmt::join(sections, ", "), reason));
  };
  if (sections.size() != rope.mrope_section.size()) {
    return reject("want 3 entries");
  }
  std::copy(sections.begin(), sections.end(), rope.mrope_section.begin());
  const auto [time, height, width] = rope.mrope_section;
  const std::int64_t frequencies = rope.rotary_dim / 2;
  if (time + height + width != frequencies) {
    return reject(fmt::format("the sum is {}, want {}, half of the {} rotary channels",
                              time + height + width, frequencies, rope.rotary_dim));
  }
  if (3 * height - 2 >= frequencies || 3 * width - 1 >= frequencies) {
    return reject(
        fmt::format("cannot be interleaved, height ends at frequency {} and width at {}, "
                    "there are {}",
                    3 * height - 2, 3 * width - 1, frequencies));
  }
  return {};
}

}  // namespace

Result<RopeParameters> read_rope_parameters(const ConfigObject& text, std::int64_t head_dim) {
  std::vector<ConfigObject> objects;
  for (const std::string_view key : {"rope_parameters"sv, "rope_scaling"sv}) {
    if (const std::optional<ConfigObject> child = SLUICE_TRY(text.child(key))) {
      SLUICE_TRY(check_fixed_keys(*child));
      objects.push_back(*child);
    }
  }
  std::vector<ConfigObject> with_text = objects;
  with_text.push_back(text);  // theta and factor may be repeated one level up
  const auto read_theta = [](const ConfigObject& object, std::string_view key) {
    return object.number(key, {.above = 1.0, .max = 1e12});
  };
  const auto read_factor = [](const ConfigObject& object, std::string_view key) {
    return object.number(key, {.above = 0.0, .max = 1.0});
  };
  RopeParameters rope;
  rope.rope_theta =
      SLUICE_TRY(read_agreed<double>(places_of(with_text, {"rope_theta"}), read_theta))
          .value_or(rope.rope_theta);
  const double factor =
      SLUICE_TRY(read_agreed<double>(places_of(with_text, {"partial_rotary_factor"}), read_factor))
          .value_or(0.25);
  const double channels = static_cast<double>(head_dim) * factor;
  rope.rotary_dim = std::llround(channels);
  const bool whole = std::abs(channels - static_cast<double>(rope.rotary_dim)) < 1e-6;
  if (!whole || rope.rotary_dim < 2 || rope.rotary_dim % 2 != 0) {
    return text.explain(ErrorCode::unsupported, "partial_rotary_factor",
                        fmt::format("is {}: makes {} rotary channels of head_dim {}, want a "
                                    "positive even number",
                                    factor, channels, head_dim));
  }
  SLUICE_TRY(read_sections(text, objects, rope));
  return rope;
}

}  // namespace sluice
