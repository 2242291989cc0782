#include "media/video_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include "media/frame_choice.h"
#include "media/picture_type.h"
#include "media/pixel_rows.h"

namespace sluice {
namespace {

constexpr const char* kFormats = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,gif";
constexpr const char* kCodecs = "h264,hevc,vp8,vp9,libdav1d,av1,mpeg4,mjpeg,gif,png,rawvideo";
constexpr int kStreamsMax = 64;
constexpr std::int64_t kPacketsPerFrameMax = 16;  // of all streams, for each frame allowed
constexpr std::size_t kAllocationBytesMax = std::size_t{512} << 20;
constexpr int kIoBufferBytes = 1 << 16;

// The bytes as FFmpeg reads them.
struct MemoryReader {
  std::span<const std::byte> bytes;
  std::size_t at = 0;

  static int read(void* self, std::uint8_t* target, int count) {
    auto* reader = static_cast<MemoryReader*>(self);
    const std::size_t left = reader->bytes.size() - reader->at;
    const std::size_t taken = std::min(left, static_cast<std::size_t>(std::max(count, 0)));
    if (taken == 0) {
      return AVERROR_EOF;
    }
    std::memcpy(target, reader->bytes.data() + reader->at, taken);
    reader->at += taken;
    return static_cast<int>(taken);
  }

  static std::int64_t seek(void* self, std::int64_t offset, int whence) {
    auto* reader = static_cast<MemoryReader*>(self);
    const auto size = static_cast<std::int64_t>(reader->bytes.size());
    if (whence == AVSEEK_SIZE) {
      return size;
    }
    const std::int64_t from = whence == SEEK_CUR   ? static_cast<std::int64_t>(reader->at)
                              : whence == SEEK_END ? size
                                                   : 0;
    std::int64_t target = 0;
    if (__builtin_add_overflow(from, offset, &target) || target < 0 || target > size) {
      return AVERROR(EINVAL);
    }
    reader->at = static_cast<std::size_t>(target);
    return target;
  }
};

struct FreeIo {
  void operator()(AVIOContext* io) const {
    av_freep(static_cast<void*>(&io->buffer));
    avio_context_free(&io);
  }
};
struct CloseFormat {
  void operator()(AVFormatContext* format) const { avformat_close_input(&format); }
};
struct FreeCodec {
  void operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
};
struct FreePacket {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
struct FreeFrame {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};
struct FreeScaler {
  void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
};

int refuse_open(AVFormatContext* /*format*/, AVIOContext** /*io*/, const char* /*url*/,
                int /*flags*/, AVDictionary** /*options*/) {
  return AVERROR(EPERM);
}

void drop_log(void* /*context*/, int /*level*/, const char* /*format*/, va_list /*arguments*/) {}

void start_ffmpeg() {
  static const bool started = [] {
    av_log_set_callback(drop_log);
    av_max_alloc(kAllocationBytesMax);
    return true;
  }();
  static_cast<void>(started);
}

std::unexpected<Error> broken(std::string_view what) {
  return fail(ErrorCode::invalid_argument, fmt::format("video: {}", what));
}

std::unexpected<Error> too_much(std::string_view what) {
  return fail(ErrorCode::resource_exhausted, fmt::format("video: {}", what));
}

bool is_open(const std::int64_t value) {
  return value != AV_NOPTS_VALUE;
}

// An open container and its first video stream. Packets come in the order of the file.
class Container {
 public:
  static Result<std::unique_ptr<Container>> open(std::span<const std::byte> bytes,
                                                 const VideoLimits& limits);

  const AVStream& stream() const { return *stream_; }
  PictureSize stored_size() const {
    return {.width = stream_->codecpar->width, .height = stream_->codecpar->height};
  }
  int exif_orientation() const;

  // Reads the next packet of the stream; false at the end.
  Result<bool> next(AVPacket* packet);

 private:
  MemoryReader reader_;
  std::unique_ptr<AVIOContext, FreeIo> io_;
  std::unique_ptr<AVFormatContext, CloseFormat> format_;
  const AVStream* stream_ = nullptr;
  std::int64_t packets_left_ = 0;
};

Result<void> check_file(std::span<const std::byte> bytes, const VideoLimits& limits) {
  if (bytes.empty()) {
    return broken("0 bytes");
  }
  if (bytes.size() > limits.encoded_bytes_max) {
    return too_much(
        fmt::format("{} bytes, want at most {}", bytes.size(), limits.encoded_bytes_max));
  }
  const std::optional<PictureType> picture = sniff_picture_type(bytes);
  if (picture && *picture != PictureType::gif) {
    return fail(ErrorCode::unsupported,
                fmt::format("a {} picture, want a video", to_string(*picture)));
  }
  return {};
}

Result<void> check_frame(PictureSize size, const VideoLimits& limits) {
  const std::string what = fmt::format("frames of {} x {} pixels", size.width, size.height);
  if (size.width < 1 || size.height < 1) {
    return broken(what + ": they are empty");
  }
  if (size.width > kPictureSideMax || size.height > kPictureSideMax ||
      size.pixel_count() > limits.frame_pixels_max) {
    return too_much(fmt::format("{}, want at most {} in all", what, limits.frame_pixels_max));
  }
  return {};
}

Result<std::unique_ptr<Container>> Container::open(std::span<const std::byte> bytes,
                                                   const VideoLimits& limits) {
  start_ffmpeg();
  SLUICE_TRY(check_file(bytes, limits));
  auto file = std::make_unique<Container>();
  file->reader_.bytes = bytes;
  file->packets_left_ = limits.frames_max * kPacketsPerFrameMax;
  auto* buffer = static_cast<unsigned char*>(av_malloc(kIoBufferBytes));
  file->io_.reset(avio_alloc_context(buffer, kIoBufferBytes, 0, &file->reader_, MemoryReader::read,
                                     nullptr, MemoryReader::seek));
  AVFormatContext* format = avformat_alloc_context();
  if (file->io_ == nullptr || format == nullptr) {
    avformat_free_context(format);
    return too_much("no memory to open it");
  }
  format->pb = file->io_.get();
  format->flags |= AVFMT_FLAG_CUSTOM_IO;
  format->io_open = refuse_open;
  format->format_whitelist = av_strdup(kFormats);
  format->codec_whitelist = av_strdup(kCodecs);
  format->protocol_whitelist = av_strdup("");
  format->max_streams = kStreamsMax;
  const int status = avformat_open_input(&format, "", nullptr, nullptr);  // frees it when it fails
  if (status < 0) {
    const std::string_view other = sniff_other_type(bytes);
    return fail(
        ErrorCode::unsupported,
        fmt::format("{}, want a readable MP4, WebM, Matroska, AVI or GIF video",
                    other.empty() ? fmt::format("{} bytes of no known type", bytes.size())
                                  : std::string(other) + " that is broken, cut off or else"));
  }
  file->format_.reset(format);
  for (unsigned i = 0; i < format->nb_streams && file->stream_ == nullptr; ++i) {
    AVStream* stream = format->streams[i];
    const bool cover = (stream->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0;
    if (stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO && !cover) {
      file->stream_ = stream;
    } else {
      stream->discard = AVDISCARD_ALL;
    }
  }
  if (file->stream_ == nullptr) {
    return broken("it has no pictures, only other streams");
  }
  SLUICE_TRY(check_frame(file->stored_size(), limits));
  return file;
}

// The display matrix turns counter-clockwise; only quarter turns can be expressed.
int Container::exif_orientation() const {
  constexpr double kQuarter = 90.0;
  const std::uint8_t* matrix = av_stream_get_side_data(stream_, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
  if (matrix == nullptr) {
    return 1;
  }
  std::array<std::int32_t, 9> values{};
  std::memcpy(values.data(), matrix, sizeof(values));
  const double degrees = av_display_rotation_get(values.data());
  switch (std::isfinite(degrees) ? std::lround(degrees / kQuarter) : 0) {
    case 1:
      return 8;
    case -1:
      return 6;
    case 2:
    case -2:
      return 3;
    default:
      return 1;
  }
}

Result<bool> Container::next(AVPacket* packet) {
  while (true) {
    av_packet_unref(packet);
    const int status = av_read_frame(format_.get(), packet);
    if (status == AVERROR_EOF) {
      return false;
    }
    if (status < 0 || (packet->flags & AV_PKT_FLAG_CORRUPT) != 0) {
      return broken("its data is broken or cut off");
    }
    if (--packets_left_ < 0) {
      return too_much("it has too many packets");
    }
    if (packet->stream_index == stream_->index) {
      return true;
    }
  }
}

double rate_of(const AVStream& stream, std::int64_t frame_count, std::int64_t ticks) {
  constexpr double kRateMax = 1000.0;
  double rate = 0.0;
  if (stream.avg_frame_rate.num > 0 && stream.avg_frame_rate.den > 0) {
    rate = av_q2d(stream.avg_frame_rate);
  } else if (ticks > 0 && stream.time_base.num > 0 && stream.time_base.den > 0) {
    rate =
        static_cast<double>(frame_count) / (static_cast<double>(ticks) * av_q2d(stream.time_base));
  }
  return rate > 1.0 / kRateMax && rate <= kRateMax ? rate : kFrameRateWhenUnknown;
}

// A decoder of a stream, and the way from its frames to RGB.
class FrameDecoder {
 public:
  static Result<FrameDecoder> open(const Container& file, const VideoLimits& limits);

  // One packet in (none: there are no more), then frames until there is none: false.
  Result<void> send(const AVPacket* packet);
  Result<bool> receive();

  // The frame just received.
  Result<Picture> picture();

 private:
  std::unique_ptr<AVCodecContext, FreeCodec> codec_;
  std::unique_ptr<AVFrame, FreeFrame> frame_;
  std::unique_ptr<SwsContext, FreeScaler> scaler_;
  int exif_orientation_ = 1;
  std::int64_t pixels_left_ = 0;
  VideoLimits limits_;
};

Result<FrameDecoder> FrameDecoder::open(const Container& file, const VideoLimits& limits) {
  const AVCodecParameters* parameters = file.stream().codecpar;
  const AVCodec* codec = avcodec_find_decoder(parameters->codec_id);
  FrameDecoder decoder;
  decoder.limits_ = limits;
  decoder.pixels_left_ = limits.decoded_pixels_max;
  decoder.exif_orientation_ = file.exif_orientation();
  decoder.codec_.reset(avcodec_alloc_context3(codec));
  decoder.frame_.reset(av_frame_alloc());
  if (codec == nullptr || decoder.codec_ == nullptr || decoder.frame_ == nullptr ||
      avcodec_parameters_to_context(decoder.codec_.get(), parameters) < 0) {
    return fail(ErrorCode::unsupported,
                fmt::format("video: codec {}", avcodec_get_name(parameters->codec_id)));
  }
  AVCodecContext* context = decoder.codec_.get();
  context->thread_count = 1;
  context->max_pixels = limits.frame_pixels_max;
  context->flags |= AV_CODEC_FLAG_BITEXACT;
  context->err_recognition |= AV_EF_EXPLODE;
  context->pkt_timebase = file.stream().time_base;
  context->codec_whitelist = av_strdup(kCodecs);
  if (avcodec_open2(context, codec, nullptr) < 0) {
    return fail(ErrorCode::unsupported,
                fmt::format("video: codec {}, want one of {}",
                            avcodec_get_name(parameters->codec_id), kCodecs));
  }
  return decoder;
}

Result<void> FrameDecoder::send(const AVPacket* packet) {
  return avcodec_send_packet(codec_.get(), packet) < 0
             ? broken("a frame's data is broken or cut off")
             : Result<void>();
}

Result<bool> FrameDecoder::receive() {
  const int status = avcodec_receive_frame(codec_.get(), frame_.get());
  if (status == AVERROR(EAGAIN) || status == AVERROR_EOF) {
    return false;
  }
  if (status < 0 || frame_->decode_error_flags != 0) {
    return broken("a frame's data is broken or cut off");
  }
  // Frames may be larger than the container says.
  pixels_left_ -= std::int64_t{frame_->width} * frame_->height;
  if (pixels_left_ < 0) {
    return too_much(fmt::format("more than {} pixels to decode", limits_.decoded_pixels_max));
  }
  return true;
}

Result<Picture> FrameDecoder::picture() {
  const PictureSize stored{.width = frame_->width, .height = frame_->height};
  SLUICE_TRY(check_frame(stored, limits_));
  const auto source_format = static_cast<AVPixelFormat>(frame_->format);
  const AVPixFmtDescriptor* description = av_pix_fmt_desc_get(source_format);
  const bool alpha = description != nullptr && (description->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
  const SampleLayout layout = alpha ? SampleLayout::rgb_alpha : SampleLayout::rgb;
  constexpr int kFlags = SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_BITEXACT;
  scaler_.reset(sws_getCachedContext(scaler_.release(), frame_->width, frame_->height,
                                     source_format, frame_->width, frame_->height,
                                     alpha ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24, kFlags, nullptr,
                                     nullptr, nullptr));
  if (scaler_ == nullptr) {
    return fail(ErrorCode::unsupported, fmt::format("video: pixels of format {}", frame_->format));
  }
  const int* matrix = sws_getCoefficients(frame_->colorspace);
  constexpr int kOne = 1 << 16;
  sws_setColorspaceDetails(scaler_.get(), matrix, frame_->color_range == AVCOL_RANGE_JPEG ? 1 : 0,
                           sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, kOne, kOne);

  const auto width = static_cast<std::size_t>(stored.width);
  const std::size_t row_bytes = width * channel_count(layout);
  // swscale writes whole vectors: room behind each row.
  const std::size_t stride = row_bytes + 64;
  std::vector<std::uint8_t> samples(stride * static_cast<std::size_t>(stored.height) + 64);
  std::array<std::uint8_t*, 4> planes{samples.data(), nullptr, nullptr, nullptr};
  const std::array<int, 4> strides{static_cast<int>(stride), 0, 0, 0};
  if (sws_scale(scaler_.get(), frame_->data, frame_->linesize, 0, frame_->height, planes.data(),
                strides.data()) != frame_->height) {
    return fail(ErrorCode::unsupported, fmt::format("video: pixels of format {}", frame_->format));
  }
  const Orientation orientation(exif_orientation_, stored);
  Picture picture{.size = orientation.size(), .pixels = {}};
  picture.pixels.resize(static_cast<std::size_t>(stored.pixel_count()) * 3);
  std::vector<std::uint8_t> row(width * 3);
  for (std::int64_t y = 0; y < stored.height; ++y) {
    const std::uint8_t* source = samples.data() + static_cast<std::size_t>(y) * stride;
    to_rgb(std::as_bytes(std::span(source, row_bytes)), layout, false, row);
    orientation.place_row(row, y, picture.pixels);
  }
  return picture;
}

// Hands out the wanted ones of the frames that come by.
class FrameTaker {
 public:
  FrameTaker(std::span<const std::int64_t> wanted,
             const std::function<Result<void>(const Picture&)>& take)
      : wanted_(wanted), take_(&take) {}

  bool done() const { return taken_ == wanted_.size(); }

  // All frames that the decoder has ready.
  Result<void> drain(FrameDecoder* decoder) {
    while (!done() && SLUICE_TRY(decoder->receive())) {
      if (wanted_[taken_] == index_) {
        last_ = SLUICE_TRY(decoder->picture());
        SLUICE_TRY(take_up_to(index_));
      }
      ++index_;
    }
    return {};
  }

  // There are no more frames: the last one taken stands for the rest.
  Result<void> finish() {
    if (!done() && !last_) {
      return broken("none of the frames wanted could be decoded");
    }
    return done() ? Result<void>() : take_up_to(wanted_.back());
  }

 private:
  Result<void> take_up_to(std::int64_t index) {
    for (; !done() && wanted_[taken_] <= index; ++taken_) {
      SLUICE_TRY((*take_)(*last_));
    }
    return {};
  }

  std::span<const std::int64_t> wanted_;
  const std::function<Result<void>(const Picture&)>* take_;
  std::size_t taken_ = 0;
  std::int64_t index_ = 0;
  std::optional<Picture> last_;
};

}  // namespace

Result<VideoFacts> read_video_facts(std::span<const std::byte> bytes, const VideoLimits& limits) {
  const std::unique_ptr<Container> file = SLUICE_TRY(Container::open(bytes, limits));
  const std::unique_ptr<AVPacket, FreePacket> packet(av_packet_alloc());
  VideoFacts facts{.size = Orientation(file->exif_orientation(), file->stored_size()).size()};
  std::int64_t first = AV_NOPTS_VALUE;
  std::int64_t end = AV_NOPTS_VALUE;
  while (packet != nullptr && SLUICE_TRY(file->next(packet.get()))) {
    if (++facts.frame_count > limits.frames_max) {
      return too_much(fmt::format("more than {} frames", limits.frames_max));
    }
    const std::int64_t time = packet->pts;
    std::int64_t packet_end = 0;
    if (is_open(time) && !__builtin_add_overflow(time, packet->duration, &packet_end)) {
      first = is_open(first) ? std::min(first, time) : time;
      end = is_open(end) ? std::max(end, packet_end) : packet_end;
    }
  }
  if (facts.frame_count == 0) {
    return broken("it has no frames, or is cut off before the first");
  }
  std::int64_t ticks = 0;
  if (!is_open(first) || __builtin_sub_overflow(end, first, &ticks)) {
    ticks = 0;
  }
  facts.frames_per_second = rate_of(file->stream(), facts.frame_count, ticks);
  const double seconds = static_cast<double>(facts.frame_count) / facts.frames_per_second;
  if (seconds > limits.seconds_max) {
    return too_much(
        fmt::format("{:.0f} seconds, want at most {:.0f}", seconds, limits.seconds_max));
  }
  return facts;
}

Result<void> decode_frames(std::span<const std::byte> bytes, std::span<const std::int64_t> frames,
                           const VideoLimits& limits, const GivesUp& gives_up,
                           const std::function<Result<void>(const Picture&)>& take) {
  if (frames.empty()) {
    return {};
  }
  const std::unique_ptr<Container> file = SLUICE_TRY(Container::open(bytes, limits));
  const std::int64_t pixels = file->stored_size().pixel_count();
  if (frames.back() >= limits.decoded_pixels_max / pixels) {
    return too_much(fmt::format("frames of {} pixels up to number {}, want at most {} in all",
                                pixels, frames.back(), limits.decoded_pixels_max));
  }
  FrameDecoder decoder = SLUICE_TRY(FrameDecoder::open(*file, limits));
  const std::unique_ptr<AVPacket, FreePacket> packet(av_packet_alloc());
  FrameTaker taker(frames, take);
  while (packet != nullptr && !taker.done() && SLUICE_TRY(file->next(packet.get()))) {
    if (gives_up && gives_up()) {
      return fail(ErrorCode::cancelled, "video: not decoded to its end");
    }
    SLUICE_TRY(decoder.send(packet.get()));
    SLUICE_TRY(taker.drain(&decoder));
  }
  if (!taker.done()) {
    SLUICE_TRY(decoder.send(nullptr));
    SLUICE_TRY(taker.drain(&decoder));
  }
  return taker.finish();
}

}  // namespace sluice
