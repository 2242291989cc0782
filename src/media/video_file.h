// A video (MP4 or QuickTime, Matroska or WebM, AVI, animated GIF) in memory, read by FFmpeg's
// libraries: the only place that knows them. Private to media/ but for the nouns.
//
// Bytes come from strangers: formats and codecs are on a list, no other file or address is opened
// whatever the container names, sizes and numbers of frames are checked against limits before and
// while decoding, on the caller's thread alone. Errors of the data are Errors, not best guesses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "media/picture.h"

namespace sluice {

struct VideoLimits {
  std::size_t encoded_bytes_max = std::size_t{256} << 20;
  std::int64_t frame_pixels_max = std::int64_t{16} << 20;
  std::int64_t frames_max = 200'000;
  double seconds_max = 7200.0;
  // Of all frames up to the last one needed, since each is decoded: some minutes of one core.
  std::int64_t decoded_pixels_max = std::int64_t{1} << 36;
};

// What a container says, without decoding. `frame_count` is the number of packets of its first
// video stream; the number it claims is not trusted. A rate it does not say is
// kFrameRateWhenUnknown.
struct VideoFacts {
  PictureSize size;  // upright
  std::int64_t frame_count = 0;
  double frames_per_second = 0.0;
};

// Errors: unsupported (another kind of file or codec), resource_exhausted (over a limit),
// invalid_argument (broken, cut off, no frames).
Result<VideoFacts> read_video_facts(std::span<const std::byte> bytes, const VideoLimits& limits);

// Asked between two frames: whether what is being done is of no use any more.
using GivesUp = std::function<bool()>;

// Decodes and calls `take` with each of `frames` (ascending indices), upright RGB, in turn. A
// decoder may give fewer frames than there were packets: the last one stands for those behind it.
// Error cancelled: gives_up (may be empty) said so.
Result<void> decode_frames(std::span<const std::byte> bytes, std::span<const std::int64_t> frames,
                           const VideoLimits& limits, const GivesUp& gives_up,
                           const std::function<Result<void>(const Picture&)>& take);

}  // namespace sluice
