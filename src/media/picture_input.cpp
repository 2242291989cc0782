#include "media/picture_input.h"

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <memory>

#include "base/check.h"
#include "media/resize.h"

namespace sluice {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// Sizes as little-endian 64-bit numbers, then the pixels. The failures of EVP that remain for a
// built-in digest are those of memory.
std::array<std::uint8_t, 32> digest_of(const VisionInput& input) {
  std::array<std::uint8_t, 24> sizes{};
  std::size_t at = 0;
  for (const std::int64_t size : {input.grid_rows, input.grid_columns, input.frame_count}) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      sizes[at++] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(size) >> shift);
    }
  }
  std::array<std::uint8_t, 32> digest{};
  unsigned digest_bytes = 0;
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  SLUICE_CHECK(context != nullptr);
  SLUICE_CHECK(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  SLUICE_CHECK(EVP_DigestUpdate(context.get(), sizes.data(), sizes.size()) == 1);
  SLUICE_CHECK(EVP_DigestUpdate(context.get(), input.pixels.data(), input.pixels.size()) == 1);
  SLUICE_CHECK(EVP_DigestFinal_ex(context.get(), digest.data(), &digest_bytes) == 1);
  SLUICE_CHECK(digest_bytes == digest.size());
  return digest;
}

VisionInput finish(VisionInput input, PictureSize size) {
  SLUICE_CHECK(size.width % (kVisionPatchSize * kVisionMergeSize) == 0);
  SLUICE_CHECK(size.height % (kVisionPatchSize * kVisionMergeSize) == 0);
  input.grid_rows = size.height / kVisionPatchSize;
  input.grid_columns = size.width / kVisionPatchSize;
  input.digest = digest_of(input);
  return input;
}

}  // namespace

Result<VisionInput> make_vision_input(const Picture& picture, PixelBudget budget) {
  const PictureSize size = SLUICE_TRY(encoder_size(picture.size, budget));
  VisionInput input;
  input.pixels = resize(picture, size).pixels;
  return finish(std::move(input), size);
}

Result<std::int64_t> vision_token_count(PictureSize size, PixelBudget budget) {
  constexpr std::int64_t kTokenSide = kVisionPatchSize * kVisionMergeSize;
  return SLUICE_TRY(encoder_size(size, budget)).pixel_count() / (kTokenSide * kTokenSide);
}

VisionInput join_frames(std::span<const Picture> frames) {
  SLUICE_CHECK(frames.size() == 1 || frames.size() == 2);
  VisionInput input;
  input.frame_count = static_cast<std::int64_t>(frames.size());
  for (const Picture& frame : frames) {
    SLUICE_CHECK(frame.size == frames.front().size);
    input.pixels.insert(input.pixels.end(), frame.pixels.begin(), frame.pixels.end());
  }
  return finish(std::move(input), frames.front().size);
}

}  // namespace sluice
