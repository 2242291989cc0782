#include "media/vips_file.h"

#include <fmt/format.h>
#include <vips/vips.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sluice {
namespace {

constexpr int kRowsAtOnce = 16;

struct Unref {
  void operator()(void* object) const { g_object_unref(object); }
};
using ImagePointer = std::unique_ptr<VipsImage, Unref>;
using RegionPointer = std::unique_ptr<VipsRegion, Unref>;

void drop_log(const gchar* /*domain*/, GLogLevelFlags /*level*/, const gchar* /*text*/,
              gpointer /*data*/) {}

// Whether libvips is there to be used.
bool start_vips() {
  static const bool started = [] {
    constexpr auto kAll = static_cast<GLogLevelFlags>(G_LOG_LEVEL_MASK | G_LOG_FLAG_RECURSION);
    g_log_set_handler("VIPS", kAll, drop_log, nullptr);
    if (vips_init("sluice") != 0) {
      return false;
    }
    vips_concurrency_set(1);
    vips_cache_set_max(0);
    vips_cache_set_max_mem(0);
    vips_cache_set_max_files(0);
    vips_block_untrusted_set(TRUE);
    return true;
  }();
  return started;
}

// What libvips keeps for a calling thread goes with the scope.
struct ThreadScope {
  ThreadScope() = default;
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;
  ~ThreadScope() {
    vips_error_clear();
    vips_thread_shutdown();
  }
};

ImagePointer load_header(std::span<const std::byte> bytes, PictureType type) {
  // libvips takes the bytes as void*, and does not write to them.
  void* data = const_cast<std::byte*>(bytes.data());
  VipsImage* image = nullptr;
  const auto load = [&](auto function) {
    return function(data, bytes.size(), &image, "access", VIPS_ACCESS_SEQUENTIAL, "fail_on",
                    VIPS_FAIL_ON_ERROR, nullptr);
  };
  int status = -1;
  switch (type) {
    case PictureType::png:
      status = load(vips_pngload_buffer);
      break;
    case PictureType::jpeg:
      status = load(vips_jpegload_buffer);
      break;
    case PictureType::webp:
      status = load(vips_webpload_buffer);
      break;
    case PictureType::gif:
      status = load(vips_gifload_buffer);
      break;
    case PictureType::bmp:
      SLUICE_CHECK(false);
  }
  return ImagePointer(status == 0 ? image : nullptr);
}

// Inside compressed data 0xff is never followed by the marker's second byte; a thumbnail or chance
// may add a few.
std::size_t scan_count(std::span<const std::byte> jpeg) {
  constexpr std::array kStartOfScan{std::byte{0xff}, std::byte{0xda}};
  std::size_t count = 0;
  for (auto rest = std::ranges::search(jpeg, kStartOfScan); !rest.empty();
       rest =
           std::ranges::search(rest.end(), jpeg.end(), kStartOfScan.begin(), kStartOfScan.end())) {
    ++count;
  }
  return count;
}

std::optional<SampleLayout> layout_of(VipsImage* image) {
  switch (vips_image_get_bands(image)) {
    case 1:
      return SampleLayout::grey;
    case 2:
      return SampleLayout::grey_alpha;
    case 3:
      return SampleLayout::rgb;
    case 4:
      return vips_image_get_interpretation(image) == VIPS_INTERPRETATION_CMYK
                 ? SampleLayout::cmyk
                 : SampleLayout::rgb_alpha;
    default:
      return std::nullopt;
  }
}

}  // namespace

struct VipsFile::State {
  ImagePointer image;
  PictureType type = PictureType::png;
  SampleLayout layout = SampleLayout::rgb;
  bool wide = false;
};

VipsFile::VipsFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
VipsFile::VipsFile(VipsFile&&) noexcept = default;
VipsFile& VipsFile::operator=(VipsFile&&) noexcept = default;
VipsFile::~VipsFile() = default;

Result<VipsFile> VipsFile::open(std::span<const std::byte> bytes, PictureType type) {
  if (!start_vips()) {
    return fail(ErrorCode::internal, "libvips did not start");
  }
  if (type == PictureType::jpeg && scan_count(bytes) > kJpegScansMax) {
    return fail(
        ErrorCode::resource_exhausted,
        fmt::format("JPEG picture of {} scans, want at most {}", scan_count(bytes), kJpegScansMax));
  }
  const ThreadScope scope;
  auto state = std::make_unique<State>();
  state->type = type;
  state->image = load_header(bytes, type);
  if (state->image == nullptr) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} picture of {} bytes: its header is broken or cut off",
                            to_string(type), bytes.size()));
  }
  const VipsBandFormat format = vips_image_get_format(state->image.get());
  const std::optional<SampleLayout> layout = layout_of(state->image.get());
  if (!layout || (format != VIPS_FORMAT_UCHAR && format != VIPS_FORMAT_USHORT)) {
    return fail(ErrorCode::unsupported,
                fmt::format("{} picture with {} channels, want 1 to 4 of 8 or 16 bits",
                            to_string(type), vips_image_get_bands(state->image.get())));
  }
  state->layout = *layout;
  state->wide = format == VIPS_FORMAT_USHORT;
  return VipsFile(std::move(state));
}

PictureSize VipsFile::stored_size() const {
  return {.width = vips_image_get_width(state_->image.get()),
          .height = vips_image_get_height(state_->image.get())};
}

int VipsFile::exif_orientation() const {
  return vips_image_get_orientation(state_->image.get());
}

Result<Picture> VipsFile::decode() const {
  const ThreadScope scope;
  const PictureSize stored = stored_size();
  const Orientation orientation(exif_orientation(), stored);
  Picture picture{.size = orientation.size(), .pixels = {}};
  constexpr std::size_t kRgb = 3;
  picture.pixels.resize(static_cast<std::size_t>(stored.pixel_count()) * kRgb);
  const auto width = static_cast<std::size_t>(stored.width);
  const std::size_t row_bytes = width * channel_count(state_->layout) * (state_->wide ? 2 : 1);
  std::vector<std::uint8_t> row(width * kRgb);

  const RegionPointer region(vips_region_new(state_->image.get()));
  const auto height = static_cast<int>(stored.height);
  for (int y = 0; y < height; y += kRowsAtOnce) {
    const VipsRect rows{.left = 0,
                        .top = y,
                        .width = static_cast<int>(stored.width),
                        .height = std::min(kRowsAtOnce, height - y)};
    if (region == nullptr || vips_region_prepare(region.get(), &rows) != 0) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} picture of {} x {} pixels: its data is broken or cut off, seen "
                              "while decoding rows {} to {}",
                              to_string(state_->type), stored.width, stored.height, y,
                              y + rows.height - 1));
    }
    for (int i = 0; i < rows.height; ++i) {
      const auto* samples =
          reinterpret_cast<const std::byte*>(VIPS_REGION_ADDR(region.get(), 0, y + i));
      to_rgb({samples, row_bytes}, state_->layout, state_->wide, row);
      orientation.place_row(row, y + i, picture.pixels);
    }
  }
  return picture;
}

}  // namespace sluice
