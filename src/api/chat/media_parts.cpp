#include "api/chat/media_parts.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace sluice {
namespace {

namespace json = boost::json;

struct PartType {
  std::string_view name;
  MediaKind kind;
};

constexpr std::array<PartType, 6> kPartTypes{{{"image_url", MediaKind::image},
                                              {"input_image", MediaKind::image},
                                              {"image", MediaKind::image},
                                              {"video_url", MediaKind::video},
                                              {"video", MediaKind::video},
                                              {"input_video", MediaKind::video}}};

std::string_view word_of(MediaKind kind) {
  return kind == MediaKind::image ? "an image" : "a video";
}

std::shared_ptr<const std::string> shared_text(const json::string& text) {
  return std::make_shared<const std::string>(text.data(), text.size());
}

void fail_missing(const std::string& path, FieldReport& report) {
  if (!report.failed()) {
    report.fail(ApiErrorKind::missing_parameter, path + " is required", path);
  }
}

void read_detail(JsonFields& fields, MediaSource& source) {
  const auto detail = fields.string("detail");
  if (!detail || *detail == "auto") {
    return;
  }
  if (*detail == "low") {
    source.detail = ImageDetail::low;
  } else if (*detail == "high" || *detail == "original") {
    source.detail = ImageDetail::high;
  } else {
    fields.report().fail(ApiErrorKind::invalid_value,
                         fmt::format("{} is '{}', want auto, low or high", fields.path_of("detail"),
                                     detail->substr(0, 64)),
                         fields.path_of("detail"));
  }
}

void read_pixel_limits(JsonFields& part, MediaSource& source) {
  const IntegerRange range{1, kMediaPixelsMax};
  source.pixels_min = part.integer("min_pixels", range);
  source.pixels_max = part.integer("max_pixels", range);
  if (source.pixels_min && source.pixels_max && *source.pixels_min > *source.pixels_max) {
    part.report().fail(ApiErrorKind::invalid_value,
                       fmt::format("{} is {}, more than max_pixels {}", part.path_of("min_pixels"),
                                   *source.pixels_min, *source.pixels_max),
                       part.path_of("min_pixels"));
  }
}

// A text, or an object with a "url".
void add_location(const json::value& value, const std::string& path, FieldReport& report,
                  MediaSource& source) {
  if (value.is_string()) {
    source.texts.push_back(shared_text(value.get_string()));
    return;
  }
  if (!value.is_object()) {
    report.fail(
        ApiErrorKind::invalid_type,
        fmt::format("{} is {}, want a string or an object with 'url'", path, json_type_name(value)),
        path);
    return;
  }
  JsonFields fields(value.get_object(), path, report);
  read_detail(fields, source);
  const json::value* url = fields.find("url");
  source.path = fields.path_of("url");
  if (url == nullptr || !url->is_string()) {
    fail_missing(source.path, report);
    return;
  }
  source.texts.push_back(shared_text(url->get_string()));
  fields.ignore_rest();
}

void add_frames(const json::array& frames, const std::string& path, FieldReport& report,
                MediaSource& source) {
  source.is_frames = true;
  if (frames.empty() || frames.size() > kMediaFramesMax) {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("{} has {} frames, want 1 to {}", path, frames.size(), kMediaFramesMax),
                path);
    return;
  }
  for (std::size_t i = 0; i < frames.size() && !report.failed(); ++i) {
    add_location(frames[i], fmt::format("{}[{}]", path, i), report, source);
  }
  source.path = path;
}

void read_location(JsonFields& part, MediaSource& source) {
  constexpr std::array<std::string_view, 2> kImageKeys{"image_url", "image"};
  constexpr std::array<std::string_view, 2> kVideoKeys{"video_url", "video"};
  const bool is_video = source.kind == MediaKind::video;
  for (const std::string_view key : is_video ? kVideoKeys : kImageKeys) {
    const json::value* value = part.find(key);
    if (value == nullptr || !source.path.empty()) {
      continue;
    }
    source.path = part.path_of(key);
    if (is_video && value->is_array()) {
      add_frames(value->get_array(), part.path_of(key), part.report(), source);
    } else {
      add_location(*value, part.path_of(key), part.report(), source);
    }
  }
  if (source.path.empty()) {
    fail_missing(part.path_of(is_video ? kVideoKeys[0] : kImageKeys[0]), part.report());
  }
}

}  // namespace

std::optional<MediaKind> media_kind_of(std::string_view part_type) {
  for (const PartType& known : kPartTypes) {
    if (known.name == part_type) {
      return known.kind;
    }
  }
  return std::nullopt;
}

MediaSource read_media_part(JsonFields& part, MediaKind kind) {
  MediaSource source{.kind = kind};
  if (part.has("file_id")) {
    part.report().fail(ApiErrorKind::unsupported_content,
                       part.path_of("file_id") + " names a file, but this server keeps none",
                       part.path_of("file_id"));
    return source;
  }
  read_location(part, source);
  if (source.detail == ImageDetail::automatic) {
    read_detail(part, source);
  }
  read_pixel_limits(part, source);
  if (kind == MediaKind::video) {
    source.frames_per_second = part.number("fps", {0.0, kMediaFrameRateMax, true});
    source.frames_max = part.integer("max_frames", {1, static_cast<std::int64_t>(kMediaFramesMax)});
  }
  return source;
}

MediaSource read_image_source(JsonFields& image) {
  FieldReport& report = image.report();
  MediaSource media{.kind = MediaKind::image};
  auto source = image.object("source");
  if (!source) {
    fail_missing(image.path_of("source"), report);
    return media;
  }
  const std::string type = source->string("type").value_or("");
  if (type == "file") {
    report.fail(ApiErrorKind::unsupported_content,
                image.path_of("source") + " names a file, but this server keeps none",
                image.path_of("source"));
    return media;
  }
  if (type != "base64" && type != "url") {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("{} is '{}', want base64, url or file", source->path_of("type"),
                            type.substr(0, 64)),
                source->path_of("type"));
    return media;
  }
  media.base64_only = type == "base64";
  if (media.base64_only && !source->string("media_type")) {  // which the bytes say themselves
    fail_missing(source->path_of("media_type"), report);
  }
  const std::string_view key = media.base64_only ? "data" : "url";
  media.path = source->path_of(key);
  const json::value* text = source->find(key);
  if (text == nullptr) {
    fail_missing(media.path, report);
  } else {
    add_location(*text, media.path, report, media);
  }
  source->ignore_rest();
  return media;
}

void refuse_media(const std::string& path, MediaKind kind, std::string_view place,
                  FieldReport& report) {
  report.fail(ApiErrorKind::unsupported_content,
              fmt::format("{} is {}: {}", path, word_of(kind), place), path);
}

}  // namespace sluice
