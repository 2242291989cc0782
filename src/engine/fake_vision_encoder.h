// For tests: a vision encoder whose rows tell which pixels they come from, and what FakeModel makes
// of them.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/vision_encoder.h"
#include "request/request.h"

namespace sluice {

inline std::uint64_t fake_mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 29)) * 0x94d049bb133111ebU;
  return (x ^ (x >> 32)) | 1U;  // never 0, so a used cell is never taken for an empty one
}

// What a row of a picture does to the model: as if it were this token.
inline TokenId fake_picture_token(float seed, float row) {
  return 1000 + static_cast<TokenId>(fake_mix(std::bit_cast<std::uint32_t>(seed),
                                              std::bit_cast<std::uint32_t>(row)) %
                                     1000000);
}

// Encodes a row of a picture as the sum of its pixels and the number of the row. A piece of work is
// one row, and more than anybody has for one step.
class FakeVisionEncoder final : public VisionEncoder {
 public:
  static float seed_of(const VisionInput& input) {
    return std::accumulate(input.pixels.begin(), input.pixels.end(), 0.0F);
  }

  std::int64_t rows = 0;  // encoded in all
  std::function<bool(const VisionInput&)> refuses;

  std::int64_t row_size() const override { return 2; }
  std::size_t weight_bytes() const override { return 0; }
  std::int64_t patches_max() const override { return std::int64_t{1} << 20; }
  std::size_t workspace_bytes() const override { return 0; }
  double flops(std::int64_t grid_rows, std::int64_t grid_columns) const override {
    return 1e18 * static_cast<double>(grid_rows * grid_columns / 4);
  }
  Result<std::unique_ptr<VisionEncoding>> start(std::shared_ptr<const VisionInput> input) override {
    if (refuses && refuses(*input)) {
      return fail(ErrorCode::resource_exhausted, "the fake encoder has no memory");
    }
    return std::make_unique<Encoding>(*this, std::move(input));
  }

 private:
  class Encoding final : public VisionEncoding {
   public:
    Encoding(FakeVisionEncoder& encoder, std::shared_ptr<const VisionInput> input)
        : encoder_(encoder), input_(std::move(input)) {}

    bool advance(double flops_max) override {
      SLUICE_CHECK(flops_max >= 0);
      rows_.push_back(seed_of(*input_));
      rows_.push_back(static_cast<float>(rows_.size() / 2));
      ++encoder_.rows;
      return is_finished();
    }
    std::vector<float> take_rows() override {
      SLUICE_CHECK(is_finished());
      return std::move(rows_);
    }

   private:
    bool is_finished() const { return std::ssize(rows_) == 2 * input_->token_count(); }

    FakeVisionEncoder& encoder_;
    std::shared_ptr<const VisionInput> input_;
    std::vector<float> rows_;
  };
};

}  // namespace sluice
