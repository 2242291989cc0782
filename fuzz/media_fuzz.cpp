// Pictures, videos and data URIs from strangers. The first byte chooses: 0 a picture, 1 a video, 2
// text with embedded media, 3 a picture inside such text. Any bytes give pixels of the size that
// the header promised, within the limits, or an Error.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "media/data_uri.h"
#include "media/frame_choice.h"
#include "media/image_decoder.h"
#include "media/picture_input.h"
#include "media/video_file.h"
#include "media/video_input.h"

namespace sluice {
namespace {

constexpr PixelBudget kBudget{.pixels_min = 1024, .pixels_max = 4096};
constexpr PictureLimits kPictures{.encoded_bytes_max = 1 << 20, .pixels_max = 1 << 16};
constexpr VideoLimits kVideos{.encoded_bytes_max = 1 << 20,
                              .frame_pixels_max = 1 << 16,
                              .frames_max = 200,
                              .seconds_max = 1e4,
                              .decoded_pixels_max = 1 << 20};
constexpr std::size_t kMediaBytesMax = 1 << 16;

void check_error(const Error& error) {
  SLUICE_CHECK(!error.message.empty());
  SLUICE_CHECK(error.message.size() < 2000);
  SLUICE_CHECK(error.code == ErrorCode::invalid_argument || error.code == ErrorCode::unsupported ||
               error.code == ErrorCode::resource_exhausted);
}

void check_picture(std::span<const std::byte> bytes) {
  const Result<PictureSize> size = read_picture_size(bytes, kPictures);
  const Result<Picture> picture = decode_picture(bytes, kPictures);
  if (!picture) {
    check_error(picture.error());
    return;
  }
  SLUICE_CHECK(size.has_value());
  SLUICE_CHECK(*size == picture->size);
  SLUICE_CHECK(size->pixel_count() <= kPictures.pixels_max);
  SLUICE_CHECK(picture->pixels.size() == static_cast<std::size_t>(size->pixel_count()) * 3);
  const Result<VisionInput> input = make_vision_input(*picture, kBudget);
  SLUICE_CHECK(input.has_value());
  SLUICE_CHECK(input->token_count() == vision_token_count(*size, kBudget).value());
}

void check_video(std::span<const std::byte> bytes) {
  const Result<VideoFacts> facts = read_video_facts(bytes, kVideos);
  if (!facts) {
    check_error(facts.error());
    return;
  }
  SLUICE_CHECK(facts->frame_count >= 1);
  SLUICE_CHECK(facts->frame_count <= kVideos.frames_max);
  SLUICE_CHECK(facts->frames_per_second > 0.0);
  const Result<VideoPlan> plan = plan_video(*facts, {.frames_max = 8}, kBudget);
  if (!plan) {
    check_error(plan.error());
    return;
  }
  const Result<std::vector<VisionInput>> inputs = make_video_inputs(bytes, *plan, kVideos);
  if (!inputs) {
    check_error(inputs.error());
    return;
  }
  SLUICE_CHECK(inputs->size() == plan->seconds.size());
  for (const VisionInput& input : *inputs) {
    SLUICE_CHECK(input.token_count() == plan->tokens_per_group());
  }
}

std::vector<std::byte> check_text(std::string_view text) {
  Result<EmbeddedMedia> media = read_embedded_media(text, kMediaBytesMax);
  if (!media) {
    check_error(media.error());
    return {};
  }
  SLUICE_CHECK(!media->bytes.empty());
  SLUICE_CHECK(media->bytes.size() <= kMediaBytesMax);
  SLUICE_CHECK(media->bytes.size() <= text.size() / 4 * 3 + 2);
  return std::move(media->bytes);
}

void run(std::string_view input) {
  if (input.empty()) {
    return;
  }
  const auto mode = static_cast<unsigned char>(input.front()) % 4;
  input.remove_prefix(1);
  // A copy of exactly this size: reads behind it are seen.
  const std::vector<std::byte> bytes(
      reinterpret_cast<const std::byte*>(input.data()),
      reinterpret_cast<const std::byte*>(input.data()) + input.size());
  if (mode == 0) {
    check_picture(bytes);
  } else if (mode == 1) {
    check_video(bytes);
  } else if (const std::vector<std::byte> media = check_text(input); mode == 3) {
    check_picture(media);
  }
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
