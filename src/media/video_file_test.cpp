#include "media/video_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "media/image_decoder.h"
#include "media/test_pictures.h"

namespace sluice {
namespace {

using test::Bytes;

constexpr VideoLimits kLimits{};

Bytes read_video(std::string_view name) {
  return test::read_bytes(test::testdata() / "videos" / name);
}

boost::json::array known_videos() {
  return test::read_json(test::testdata() / "videos.json").as_array();
}

Result<std::vector<Picture>> decode(std::span<const std::byte> bytes,
                                    std::span<const std::int64_t> frames,
                                    const VideoLimits& limits = kLimits) {
  std::vector<Picture> pictures;
  SLUICE_TRY(decode_frames(bytes, frames, limits, {}, [&](const Picture& picture) {
    pictures.push_back(picture);
    return Result<void>();
  }));
  return pictures;
}

std::vector<std::int64_t> first_frames(std::int64_t count) {
  std::vector<std::int64_t> frames(static_cast<std::size_t>(count));
  std::iota(frames.begin(), frames.end(), std::int64_t{0});
  return frames;
}

// Means of red, green and blue over the inside of one of the four quarters.
std::array<std::int64_t, 3> mean_of_quarter(const Picture& picture, std::size_t quarter) {
  constexpr std::size_t kMargin = 4;
  const auto width = static_cast<std::size_t>(picture.size.width);
  const std::size_t rows = static_cast<std::size_t>(picture.size.height) / 2;
  const std::size_t columns = width / 2;
  std::array<std::int64_t, 3> sums{};
  for (std::size_t y = kMargin; y < rows - kMargin; ++y) {
    for (std::size_t x = kMargin; x < columns - kMargin; ++x) {
      const std::size_t row = y + (quarter / 2) * rows;
      const std::size_t column = x + (quarter % 2) * columns;
      for (std::size_t c = 0; c < 3; ++c) {
        sums[c] += picture.pixels[(row * width + column) * 3 + c];
      }
    }
  }
  for (std::int64_t& sum : sums) {
    sum /= static_cast<std::int64_t>((rows - 2 * kMargin) * (columns - 2 * kMargin));
  }
  return sums;
}

// Colours differ by at most 3 levels of 255 from another build of FFmpeg; frames differ by 15 or
// more.
void expect_quarters(const Picture& picture, const boost::json::value& want,
                     const std::string& where) {
  for (std::size_t quarter = 0; quarter < 4; ++quarter) {
    const std::array<std::int64_t, 3> mean = mean_of_quarter(picture, quarter);
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_LE(std::abs(mean[c] - want.at(quarter).at(c).as_int64()), 3)
          << where << ", quarter " << quarter << ", channel " << c;
    }
  }
}

TEST(VideoFile, FactsWithoutDecoding) {
  const boost::json::array videos = known_videos();
  ASSERT_GE(videos.size(), 9U);
  for (const boost::json::value& entry : videos) {
    const std::string name(entry.at("file").as_string());
    const Result<VideoFacts> facts = read_video_facts(read_video(name), kLimits);
    ASSERT_TRUE(facts.has_value()) << name << ": " << facts.error().message;
    EXPECT_EQ(facts->size.width, entry.at("width").as_int64()) << name;
    EXPECT_EQ(facts->size.height, entry.at("height").as_int64()) << name;
    EXPECT_NEAR(facts->frames_per_second, entry.at("rate").to_number<double>(), 0.05) << name;
    EXPECT_GE(facts->frame_count, 12) << name;
    EXPECT_LE(facts->frame_count, 13) << name;  // VP8 has packets that show nothing
  }
}

TEST(VideoFile, EveryFrameInItsPlace) {
  for (const boost::json::value& entry : known_videos()) {
    const std::string name(entry.at("file").as_string());
    const Result<std::vector<Picture>> pictures = decode(read_video(name), first_frames(12));
    ASSERT_TRUE(pictures.has_value()) << name << ": " << pictures.error().message;
    ASSERT_EQ(pictures->size(), 12U) << name;
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_EQ((*pictures)[i].size.width, entry.at("width").as_int64());
      expect_quarters((*pictures)[i], entry.at("quarters").at(i),
                      name + " frame " + std::to_string(i));
    }
  }
}

TEST(VideoFile, ChosenFramesAreThoseFrames) {
  const Bytes bytes = read_video("h264.mp4");
  const std::vector<Picture> all = decode(bytes, first_frames(12)).value();
  const std::vector<std::int64_t> chosen{0, 3, 4, 11};
  const std::vector<Picture> some = decode(bytes, chosen).value();
  ASSERT_EQ(some.size(), chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    EXPECT_EQ(some[i].pixels, all[static_cast<std::size_t>(chosen[i])].pixels);
  }
  const std::vector<std::int64_t> beyond{10, 11, 12, 40};
  const std::vector<Picture> last = decode(bytes, beyond).value();
  ASSERT_EQ(last.size(), 4U);
  EXPECT_EQ(last[3].pixels, all[11].pixels);
}

TEST(VideoFile, AnimatedGif) {
  const Bytes gif = test::read_picture_file("two_frames.gif");
  const VideoFacts facts = read_video_facts(gif, kLimits).value();
  EXPECT_EQ(facts.frame_count, 2);
  EXPECT_EQ(facts.size, (PictureSize{.width = 37, .height = 23}));
  EXPECT_NEAR(facts.frames_per_second, 5.0, 0.01);
  const std::vector<Picture> pictures = decode(gif, first_frames(2)).value();
  EXPECT_EQ(pictures[0].pixels, decode_picture(gif, PictureLimits{}).value().pixels);
  EXPECT_NE(pictures[1].pixels, pictures[0].pixels);
}

TEST(VideoFile, CutOffVideosAreErrorsOrShorter) {
  for (const boost::json::value& entry : known_videos()) {
    const std::string name(entry.at("file").as_string());
    const Bytes whole = read_video(name);
    for (std::size_t part = 0; part < 20; ++part) {
      const std::span<const std::byte> cut = std::span(whole).first(whole.size() * part / 20);
      const Result<VideoFacts> facts = read_video_facts(cut, kLimits);
      if (!facts) {
        EXPECT_FALSE(facts.error().message.empty());
        continue;
      }
      EXPECT_LE(facts->frame_count, 13);
      const Result<std::vector<Picture>> pictures = decode(cut, first_frames(facts->frame_count));
      if (pictures) {
        EXPECT_LT(facts->frame_count, 13) << name << " at " << part;
        EXPECT_EQ(pictures->size(), static_cast<std::size_t>(facts->frame_count));
      }
    }
  }
}

TEST(VideoFile, BrokenBytesGiveFramesOrAnError) {
  std::minstd_rand random(3);
  for (const boost::json::value& entry : known_videos()) {
    const Bytes whole = read_video(std::string(entry.at("file").as_string()));
    for (int round = 0; round < 12; ++round) {
      Bytes bytes = whole;
      for (int change = 0; change < 6; ++change) {
        bytes[random() % bytes.size()] = static_cast<std::byte>(random() >> 7U);
      }
      const VideoLimits small{.frame_pixels_max = 1 << 20, .frames_max = 1000};
      const Result<VideoFacts> facts = read_video_facts(bytes, small);
      if (facts) {
        EXPECT_LE(facts->frame_count, 1000);
        const Result<std::vector<Picture>> pictures = decode(bytes, first_frames(12), small);
        EXPECT_TRUE(pictures ? pictures->size() == 12 : !pictures.error().message.empty());
      }
    }
  }
}

TEST(VideoFile, LimitsAreAskedBeforeWork) {
  const Bytes bytes = read_video("h264.mp4");
  const auto refused = [&](const VideoLimits& limits, std::string_view part) {
    EXPECT_ERROR(read_video_facts(bytes, limits), ErrorCode::resource_exhausted, {part});
  };
  refused({.encoded_bytes_max = 100}, "2449 bytes, want at most 100");
  refused({.frame_pixels_max = 64 * 48 - 1}, "64 x 48 pixels, want at most 3071");
  refused({.frames_max = 11}, "more than 11 frames");
  refused({.seconds_max = 1.0}, "1 seconds, want at most 1");
  const auto twelve = first_frames(12);
  EXPECT_ERROR(decode(bytes, twelve, {.decoded_pixels_max = 64 * 48 * 11}),
               ErrorCode::resource_exhausted, {"up to number 11"});
  EXPECT_TRUE(decode(bytes, twelve, {.decoded_pixels_max = 64 * 48 * 12}).has_value());
}

// The container says 16 x 16, the frames inside are 64 x 48.
TEST(VideoFile, FramesLargerThanPromisedCount) {
  Bytes bytes = read_video("h264.mp4");
  const Bytes entry = test::bytes_of("avc1");
  const auto found = std::ranges::search(bytes.begin() + std::ranges::distance(bytes) / 4,
                                         bytes.end(), entry.begin(), entry.end());
  ASSERT_FALSE(found.empty());
  const std::ptrdiff_t width_at = 24 + (found.end() - bytes.begin());
  for (const std::ptrdiff_t side : {0, 2}) {
    bytes[static_cast<std::size_t>(width_at + side)] = std::byte{0};
    bytes[static_cast<std::size_t>(width_at + side + 1)] = std::byte{16};
  }
  EXPECT_EQ(read_video_facts(bytes, kLimits).value().size,
            (PictureSize{.width = 16, .height = 16}));
  EXPECT_EQ(decode(bytes, first_frames(12)).value()[11].size,
            (PictureSize{.width = 64, .height = 48}));
  EXPECT_ERROR(decode(bytes, first_frames(12), {.decoded_pixels_max = 64 * 48 * 11}),
               ErrorCode::resource_exhausted, {"pixels to decode"});
  EXPECT_ERROR(decode(bytes, first_frames(12), {.frame_pixels_max = 64 * 48 - 1}),
               ErrorCode::invalid_argument, {"video:"});
}

TEST(VideoFile, RefusesWhatIsNoVideo) {
  const auto refused = [](const Bytes& bytes, ErrorCode code, std::string_view part) {
    EXPECT_ERROR(read_video_facts(bytes, kLimits), code, {part});
    EXPECT_ERROR(decode(bytes, first_frames(1)), code, {part});
  };
  refused({}, ErrorCode::invalid_argument, "0 bytes");
  refused(test::read_picture_file("rgb.png"), ErrorCode::unsupported,
          "a PNG picture, want a video");
  refused(test::bytes_of("#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1/a.ts\n"), ErrorCode::unsupported,
          "no known type");
  refused(test::bytes_of("ffconcat version 1.0\nfile /etc/passwd\n"), ErrorCode::unsupported,
          "no known type");
  refused(Bytes(1000, std::byte{0}), ErrorCode::unsupported, "1000 bytes");
  Bytes matroska = test::bytes_of("\x1a\x45\xdf\xa3");
  matroska.resize(200);
  refused(matroska, ErrorCode::unsupported, "a Matroska or WebM video that is broken");
}

}  // namespace
}  // namespace sluice
