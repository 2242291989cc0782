// A picture or a video of a conversation as the client sent it: where its bytes are, and how they
// shall be looked at. Nothing is decoded here (server/media_loader).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

inline constexpr std::size_t kMediaFramesMax = 768;  // of one list of frames
inline constexpr std::int64_t kMediaPixelsMax = std::int64_t{1} << 40;
inline constexpr double kMediaFrameRateMax = 240.0;

enum class MediaKind { image, video };

enum class ImageDetail { automatic, low, high };

struct MediaSource {
  MediaKind kind = MediaKind::image;
  // A data URI, a URL, or base64; one of a picture or a video file, one per frame of a list of
  // frames. They can be long: copies of this share them.
  std::vector<std::shared_ptr<const std::string>> texts = {};
  bool is_frames = false;    // of a video: its texts are its frames, as pictures
  bool base64_only = false;  // the texts are base64, whatever they look like
  ImageDetail detail = ImageDetail::automatic;
  std::optional<std::int64_t> pixels_min = std::nullopt;
  std::optional<std::int64_t> pixels_max = std::nullopt;
  std::optional<double> frames_per_second = std::nullopt;  // kept of a file; of a list: as taken
  std::optional<std::int64_t> frames_max = std::nullopt;
  std::string path = {};  // of the field the texts came from, for errors
};

}  // namespace sluice
