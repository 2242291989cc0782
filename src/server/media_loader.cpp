#include "server/media_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "media/data_uri.h"
#include "media/image_decoder.h"
#include "media/picture_input.h"
#include "server/http_message.h"
#include "server/media_fetch.h"
#include "server/media_file.h"

namespace sluice {
namespace {

// What `detail: low` is worth: 256 tokens.
constexpr std::int64_t kLowDetailPixels = std::int64_t{512} * 512;

std::string_view word_of(MediaKind kind) {
  return kind == MediaKind::image ? "an image" : "a video";
}

ApiErrorKind kind_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::resource_exhausted:
      return ApiErrorKind::image_too_large;
    case ErrorCode::cancelled:
      return ApiErrorKind::not_ready;
    case ErrorCode::internal:
      return ApiErrorKind::internal;
    default:
      return ApiErrorKind::invalid_image;
  }
}

std::unexpected<ApiError> media_error(const MediaSource& source, const Error& error) {
  return api_fail(kind_of(error.code), fmt::format("{}: {}", source.path, error.message),
                  source.path);
}

// Of reading the bytes: what is not supported there is a place that may not be read from.
std::unexpected<ApiError> reading_error(const MediaSource& source, const Error& error,
                                        bool elsewhere) {
  if (elsewhere && error.code == ErrorCode::unsupported) {
    return api_fail(ApiErrorKind::media_url_not_allowed,
                    fmt::format("{}: {}", source.path, error.message), source.path);
  }
  return media_error(source, error);
}

// Of the pixels that decode() will make.
std::size_t decoded_bytes(std::span<const OpenedMedia> media) {
  constexpr std::int64_t kSide = kVisionPatchSize * kVisionMergeSize;
  std::int64_t bytes = 0;
  for (const OpenedMedia& one : media) {
    for (const PromptPicture& picture : one.prompt.pictures) {
      bytes += picture.token_count * kSide * kSide * 3 * (one.video ? 2 : 1);
    }
  }
  return static_cast<std::size_t>(bytes);
}

bool is_file_url(std::string_view text) {
  constexpr std::string_view kScheme = "file:";
  return equal_ignoring_case(text.substr(0, kScheme.size()), kScheme);
}

}  // namespace

GivesUp MediaLoader::gives_up(const std::atomic<bool>* gone) const {
  return [this, gone] { return pool_.stopping().load() || (gone != nullptr && gone->load()); };
}

ApiResult<std::vector<OpenedMedia>> MediaLoader::open(std::span<const MediaSource> sources,
                                                      const std::atomic<bool>* gone) const {
  std::vector<OpenedMedia> opened;
  if (sources.empty()) {
    return opened;
  }
  const MediaSource& first = sources.front();
  if (!vision_) {
    return api_fail(
        ApiErrorKind::unsupported_content,
        fmt::format("{} is {}, but this model reads text only", first.path, word_of(first.kind)),
        first.path);
  }
  std::int64_t count = 0;
  std::int64_t pixels = 0;
  std::size_t bytes_left = config_.request_bytes_max;
  for (const MediaSource& source : sources) {
    count += std::ssize(source.texts);
    if (count > config_.items_max) {
      return api_fail(ApiErrorKind::invalid_value,
                      fmt::format("{} is one picture too many: a request may have {}", source.path,
                                  config_.items_max),
                      source.path);
    }
    auto one = open_one(source, bytes_left, gives_up(gone));
    if (!one) {
      return std::unexpected(std::move(one).error());
    }
    pixels += one->stored_pixels;
    if (pixels > config_.request_pixels_max) {
      return api_fail(ApiErrorKind::image_too_large,
                      fmt::format("{}: with it the pictures of the request have {} pixels, want at "
                                  "most {} in all",
                                  source.path, pixels, config_.request_pixels_max),
                      source.path);
    }
    for (const auto& file : one->files) {
      bytes_left -= file.size();
    }
    opened.push_back(std::move(*one));
  }
  return opened;
}

ApiResult<std::vector<std::shared_ptr<const VisionInput>>> MediaLoader::decode(
    std::span<const OpenedMedia> media, const std::atomic<bool>* gone) const {
  std::vector<std::shared_ptr<const VisionInput>> inputs;
  const std::size_t bytes = decoded_bytes(media);
  if (bytes > decoded_.bytes_max()) {
    const std::string& path = media.front().source.path;
    return api_fail(ApiErrorKind::image_too_large,
                    fmt::format("{}: the pictures of the request have {} bytes of pixels, want at "
                                "most {}",
                                path, bytes, decoded_.bytes_max()),
                    path);
  }
  auto share = decoded_.take(bytes);
  if (!share) {
    return api_fail(ApiErrorKind::queue_full,
                    "the pictures of other requests fill the memory for pictures; try again later",
                    "");
  }
  for (const OpenedMedia& one : media) {
    auto decoded = decode_one(one, gives_up(gone));
    if (!decoded) {
      return media_error(one.source, decoded.error());
    }
    for (VisionInput& input : *decoded) {
      inputs.push_back(share->hold(std::move(input)));
    }
  }
  return inputs;
}

ApiResult<OpenedMedia> MediaLoader::open_one(const MediaSource& source, std::size_t bytes_max,
                                             const GivesUp& gives_up) const {
  OpenedMedia media{.source = source, .files = {}, .video = {}, .prompt = {}};
  for (const auto& text : source.texts) {
    const bool is_url = !source.base64_only && is_web_url(*text);
    PlanPool::Wait wait;
    if (is_url && !config_.domains.empty()) {
      wait = pool_.begin_wait();
      if (!wait) {
        return api_fail(
            ApiErrorKind::queue_full,
            fmt::format("{}: too many pictures are being fetched; try again soon", source.path),
            source.path);
      }
    }
    auto bytes =
        read(*text, source, std::min(bytes_max, config_.picture.encoded_bytes_max), gives_up);
    wait.reset();
    if (!bytes) {
      const bool elsewhere = is_url || (!source.base64_only && is_file_url(*text));
      return reading_error(source, bytes.error(), elsewhere);
    }
    bytes_max -= bytes->size();
    media.files.push_back(std::move(*bytes));
  }
  if (const auto looked = look_at(media); !looked) {
    return media_error(source, looked.error());
  }
  return media;
}

Result<std::vector<std::byte>> MediaLoader::read(const std::string& text, const MediaSource& source,
                                                 std::size_t bytes_max,
                                                 const GivesUp& gives_up) const {
  if (source.base64_only) {
    return decode_base64(text, bytes_max);
  }
  if (is_web_url(text)) {
    if (config_.domains.empty()) {
      return fail(ErrorCode::unsupported,
                  "this server fetches no URLs (--media-domains names hosts that it may ask): send "
                  "the picture as a data: URI");
    }
    return fetch_media(text,
                       {.domains = config_.domains, .bytes_max = bytes_max, .gives_up = gives_up});
  }
  if (is_file_url(text)) {
    return read_media_file(text, config_.root, bytes_max);
  }
  return std::move(SLUICE_TRY(read_embedded_media(text, bytes_max)).bytes);
}

Result<void> MediaLoader::look_at(OpenedMedia& media) const {
  media.prompt.kind = media.source.kind;
  if (media.source.kind == MediaKind::image) {
    const PictureSize size = SLUICE_TRY(read_picture_size(media.files.front(), config_.picture));
    media.stored_pixels = size.pixel_count();
    const PixelBudget budget = budget_of(media.source);
    const PictureSize seen = SLUICE_TRY(encoder_size(size, budget));
    SLUICE_TRY(check_seen(seen));
    const std::int64_t tokens = SLUICE_TRY(vision_token_count(size, budget));
    media.prompt.pictures.push_back({.token_count = tokens});
    return {};
  }
  if (media.source.is_frames) {
    const PictureSize size = SLUICE_TRY(frame_list_size(media));
    media.stored_pixels = size.pixel_count() * std::ssize(media.files);
    media.video = SLUICE_TRY(plan_list(media, size));
  } else {
    media.video = SLUICE_TRY(plan_file(media));
  }
  SLUICE_TRY(check_seen(media.video->frame_size));
  for (const double seconds : media.video->seconds) {
    media.prompt.pictures.push_back(
        {.token_count = media.video->tokens_per_group(), .caption = seconds_text(seconds)});
  }
  return {};
}

Result<VideoPlan> MediaLoader::plan_file(const OpenedMedia& media) const {
  const PreprocessorConfig& model = vision_->preprocessor;
  const std::int64_t frames_max =
      std::min(media.source.frames_max.value_or(model.frames_max), model.frames_max);
  const FrameRule rule{
      .frames_per_second = media.source.frames_per_second.value_or(model.frames_per_second),
      .frames_min = std::min(model.frames_min, frames_max),
      .frames_max = frames_max};
  const VideoFacts facts = SLUICE_TRY(read_video_facts(media.files.front(), config_.video));
  return plan_video(facts, rule, budget_of(media.source));
}

// That all frames of a list have.
Result<PictureSize> MediaLoader::frame_list_size(const OpenedMedia& media) const {
  const PictureSize size = SLUICE_TRY(read_picture_size(media.files.front(), config_.picture));
  for (std::size_t i = 1; i < media.files.size(); ++i) {
    const PictureSize other = SLUICE_TRY(read_picture_size(media.files[i], config_.picture));
    if (other != size) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("frame {} has {} x {} pixels, the first has {} x {}", i, other.width,
                              other.height, size.width, size.height));
    }
  }
  const std::int64_t count = std::ssize(media.files);
  if (size.pixel_count() > config_.list_pixels_max / count) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{} frames of {} x {} pixels, want at most {} pixels in all", count,
                            size.width, size.height, config_.list_pixels_max));
  }
  return size;
}

Result<VideoPlan> MediaLoader::plan_list(const OpenedMedia& media, PictureSize size) const {
  const std::int64_t count = std::ssize(media.files);
  const double rate =
      media.source.frames_per_second.value_or(vision_->preprocessor.frames_per_second);
  return plan_frames(size, {.frame_count = count, .frames_per_second = rate},
                     budget_of(media.source));
}

Result<std::vector<VisionInput>> MediaLoader::decode_one(const OpenedMedia& media,
                                                         const GivesUp& gives_up) const {
  if (media.video && !media.source.is_frames) {
    return make_video_inputs(media.files.front(), *media.video, config_.video, gives_up);
  }
  std::vector<Picture> pictures;
  pictures.reserve(media.files.size());
  for (const auto& file : media.files) {
    if (gives_up()) {
      return fail(ErrorCode::cancelled, "the picture was not decoded: nobody waits for it");
    }
    pictures.push_back(SLUICE_TRY(decode_picture(file, config_.picture)));
  }
  if (media.video) {
    return make_video_inputs(pictures, *media.video);
  }
  std::vector<VisionInput> inputs;
  inputs.push_back(SLUICE_TRY(make_vision_input(pictures.front(), budget_of(media.source))));
  return inputs;
}

// Against what the encoder has memory for.
Result<void> MediaLoader::check_seen(PictureSize seen) const {
  const std::int64_t pixels_max = vision_->pixels_max();
  if (seen.pixel_count() > pixels_max) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("enlarged to {} x {} pixels ({} in all), want at most {}", seen.width,
                            seen.height, seen.pixel_count(), pixels_max));
  }
  return {};
}

// The request chooses inside the model's own limits.
PixelBudget MediaLoader::budget_of(const MediaSource& source) const {
  const PreprocessorConfig& model = vision_->preprocessor;
  PixelBudget budget = source.kind == MediaKind::image ? model.picture : model.video;
  if (source.detail == ImageDetail::low) {
    budget.pixels_max = std::clamp(kLowDetailPixels, budget.pixels_min, budget.pixels_max);
  }
  if (source.pixels_max) {
    budget.pixels_max = std::clamp(*source.pixels_max, budget.pixels_min, budget.pixels_max);
  }
  if (source.pixels_min) {
    budget.pixels_min = std::clamp(*source.pixels_min, budget.pixels_min, budget.pixels_max);
  }
  return budget;
}

}  // namespace sluice
