// Packers of all weight formats. Plain code under every kernel table: what is packed on one machine
// is what every other one would pack.
#include "kernels/weight_format.h"

#include <algorithm>
#include <cstring>

#include "kernels/kernel_table.h"
#include "platform/float_mode.h"

namespace sluice::kernels {
namespace {

constexpr std::array<std::string_view, kWeightFormats.size()> kNames{"bf16", "fp8", "int8", "int4"};

constexpr float kInt8Levels = 127.0F;
constexpr float kInt4ScaleUnits = 120.0F;  // 8 levels on the long side x scale 15

// To the nearest integer, ties to even: the sum has no room for a fraction. |x| < 2^22. Unlike
// nearbyint() no library call in baseline code.
float round_even(float x) {
  constexpr float kShift = 0x1.8p23F;
  return (x + kShift) - kShift;
}

float largest_magnitude(const bf16_t* w, std::int64_t k) {
  bf16_t largest = 0;
  for (std::int64_t i = 0; i < k; ++i) {
    largest = std::max(largest, static_cast<bf16_t>(w[i] & 0x7fffU));
  }
  const float magnitude = bf16_to_float(largest);
  return magnitude < kQuantisedMin ? 0.0F : magnitude;
}

// Up to 128 x 128 weights with one scale: where they begin and end.
struct Fp8Block {
  std::int64_t row;
  std::int64_t rows;
  std::int64_t k;
  std::int64_t columns;
};

// A row of the block every `stride` codes.
void put_fp8_block(const Fp8Block& block, const std::uint8_t* codes, std::int64_t stride,
                   float scale, std::int64_t k, std::byte* packed) {
  const std::int64_t steps = pad32(k) / kStepK;
  for (std::int64_t r = 0; r < block.rows; ++r, codes += stride) {
    const std::int64_t n = block.row + r;
    std::byte* panel = packed + n / kPanelColumns * panel_bytes(WeightFormat::fp8, k);
    std::memcpy(panel + block.k / kFp8BlockSize * 4, &scale, sizeof scale);
    std::byte* column =
        panel + scale_bytes(WeightFormat::fp8, k) + packed_index(n % kPanelColumns, block.k, steps);
    for (std::int64_t i = 0; i < block.columns; ++i) {
      column[packed_index(0, i, steps)] = static_cast<std::byte>(codes[i]);
    }
  }
}

// Rounds a block of w [.., k], whose first row is `w`; returns its scale.
float quantise_fp8_block(const Fp8Block& block, const bf16_t* w, std::int64_t k,
                         std::uint8_t (&codes)[kFp8BlockSize * kFp8BlockSize]) {
  float largest = 0.0F;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    largest = std::max(largest, largest_magnitude(w + r * k + block.k, block.columns));
  }
  const float scale = largest == 0.0F ? 1.0F : largest / kF8E4m3Max;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const bf16_t* row = w + r * k + block.k;
    for (std::int64_t i = 0; i < block.columns; ++i) {
      codes[r * kFp8BlockSize + i] = float_to_f8_e4m3(bf16_to_float(row[i]) / scale);
    }
  }
  return scale;
}

void pack_fp8_rows(const WeightRows& w, std::int64_t row, std::int64_t rows, std::int64_t k,
                   std::byte* packed) {
  std::uint8_t codes[kFp8BlockSize * kFp8BlockSize];
  for (std::int64_t r = 0; r < rows; r += kFp8BlockSize) {
    for (std::int64_t i = 0; i < k; i += kFp8BlockSize) {
      const Fp8Block block{.row = row + r,
                           .rows = std::min(kFp8BlockSize, rows - r),
                           .k = i,
                           .columns = std::min(kFp8BlockSize, k - i)};
      if (w.codes != nullptr) {
        const float scale = w.scales[r / kFp8BlockSize * fp8_blocks(k) + i / kFp8BlockSize];
        put_fp8_block(block, w.codes + r * k + i, k, scale, k, packed);
      } else {
        const float scale = quantise_fp8_block(block, w.values + r * k, k, codes);
        put_fp8_block(block, codes, kFp8BlockSize, scale, k, packed);
      }
    }
  }
}

void set_scale(std::byte* panel, std::int64_t n, float scale) {
  std::memcpy(panel + n % kPanelColumns * 4, &scale, sizeof scale);
}

float get_scale(const std::byte* panel, std::int64_t n) {
  float scale = 0.0F;
  std::memcpy(&scale, panel + n % kPanelColumns * 4, sizeof scale);
  return scale;
}

void pack_int8_row(const bf16_t* w, std::int64_t n, std::int64_t k, std::byte* panel) {
  const float largest = largest_magnitude(w, k);
  if (largest == 0.0F) {
    return;
  }
  const float inverse = kInt8Levels / largest;
  set_scale(panel, n, largest / kInt8Levels);
  for (std::int64_t i = 0; i < k; ++i) {
    const auto value = static_cast<std::int8_t>(round_even(bf16_to_float(w[i]) * inverse));
    panel[kPanelScaleBytes + i / kIntStepK * kIntStepBytes + int8_index(n, i)] =
        static_cast<std::byte>(value);
  }
}

// A group scale as it is stored, and the zero point of its codes.
struct GroupScale {
  float size;
  float zero;  // 8, or 7 when flipped

  std::uint8_t stored() const {
    return static_cast<std::uint8_t>(static_cast<unsigned>(size) |
                                     (zero == 7.0F ? kInt4ScaleFlip : 0U));
  }
};

// Code of x (a weight in units of the column scale).
float code_of(float x, const GroupScale& scale, float inverse) {
  return std::clamp(round_even(x * inverse) + scale.zero, 0.0F, 15.0F);
}

// Sum of squared errors. Four sums, so that it is fast in baseline code too.
float squared_error(const float (&x)[kInt4GroupK], const GroupScale& scale) {
  const float inverse = 1.0F / scale.size;
  float sums[4] = {};
  for (std::int64_t i = 0; i < kInt4GroupK; i += 4) {
    for (std::int64_t lane = 0; lane < 4; ++lane) {
      const float code = code_of(x[i + lane], scale, inverse);
      const float error = (code - scale.zero) * scale.size - x[i + lane];
      sums[lane] += error * error;
    }
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The better of the scales around the one that just reaches the largest value.
GroupScale choose_scale(const float (&x)[kInt4GroupK]) {
  float low = 0.0F;
  float high = 0.0F;
  for (const float value : x) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const float largest = std::max(-low, high);
  const auto first = std::max(1, static_cast<int>(largest * 0.7F / 8.0F));
  const auto last = static_cast<int>(largest / 7.0F) + 1;
  GroupScale best{.size = 1.0F, .zero = 8.0F};
  float best_error = squared_error(x, best);
  for (const float zero : {8.0F, 7.0F}) {
    const int size_max = zero == 8.0F ? 16 : 15;
    for (int size = first; size <= std::min(last, size_max); ++size) {
      const GroupScale scale{.size = static_cast<float>(size), .zero = zero};
      const float error = squared_error(x, scale);
      if (error < best_error) {
        best = scale;
        best_error = error;
      }
    }
  }
  return best;
}

void pack_int4_row(const bf16_t* w, std::int64_t n, std::int64_t k, std::byte* panel) {
  const float largest = largest_magnitude(w, k);
  const float inverse = largest == 0.0F ? 0.0F : kInt4ScaleUnits / largest;
  set_scale(panel, n, largest / kInt4ScaleUnits);
  for (std::int64_t begin = 0; begin < pad64(k); begin += kInt4GroupK) {
    float x[kInt4GroupK] = {};
    for (std::int64_t i = 0; i < std::min(kInt4GroupK, k - begin); ++i) {
      x[i] = bf16_to_float(w[begin + i]) * inverse;
    }
    const GroupScale scale = choose_scale(x);
    std::byte* step = panel + kPanelScaleBytes + begin / kIntStepK * kInt4StepBytes;
    step[int4_place(n, begin).scale] = static_cast<std::byte>(scale.stored());
    for (std::int64_t i = 0; i < kInt4GroupK; ++i) {
      const Int4Place place = int4_place(n, begin + i);
      const auto code = static_cast<unsigned>(code_of(x[i], scale, 1.0F / scale.size));
      step[place.code] |= static_cast<std::byte>(place.high_half ? code << 4 : code);
    }
  }
}

}  // namespace

std::string_view to_string(WeightFormat format) {
  return kNames[static_cast<std::size_t>(format)];
}

std::optional<WeightFormat> weight_format_from_name(std::string_view name) {
  for (const WeightFormat format : kWeightFormats) {
    if (to_string(format) == name) {
      return format;
    }
  }
  return std::nullopt;
}

void pack_weight_rows(WeightFormat format, const WeightRows& w, std::int64_t row, std::int64_t rows,
                      std::int64_t k, std::byte* packed) {
  if (format == WeightFormat::bf16) {
    pack_rows(w.values, row, rows, k, reinterpret_cast<bf16_t*>(packed));
    return;
  }
  if (format == WeightFormat::fp8) {
    pack_fp8_rows(w, row, rows, k, packed);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t n = row + r;
    std::byte* panel = packed + n / kPanelColumns * panel_bytes(format, k);
    if (format == WeightFormat::int8) {
      pack_int8_row(w.values + r * k, n, k, panel);
    } else {
      pack_int4_row(w.values + r * k, n, k, panel);
    }
  }
}

void unpack_weight_row(WeightFormat format, const std::byte* packed, std::int64_t row,
                       std::int64_t k, float* w) {
  const FlushDenormals float_mode;  // fp8_weight() wants it
  const std::byte* panel = packed + row / kPanelColumns * panel_bytes(format, k);
  const std::byte* steps = panel + scale_bytes(format, k);
  for (std::int64_t i = 0; i < k; ++i) {
    if (format == WeightFormat::bf16) {
      const auto* elements = reinterpret_cast<const bf16_t*>(packed);
      w[i] = bf16_to_float(elements[packed_index(row, i, pad32(k) / kStepK)]);
    } else if (format == WeightFormat::fp8) {
      const std::byte code = steps[packed_index(row % kPanelColumns, i, pad32(k) / kStepK)];
      w[i] =
          bf16_to_float(fp8_weight(static_cast<std::uint8_t>(code), fp8_scale(panel, i / kStepK)));
    } else if (format == WeightFormat::int8) {
      const std::byte value = steps[i / kIntStepK * kIntStepBytes + int8_index(row, i)];
      w[i] = static_cast<float>(static_cast<std::int8_t>(value)) * get_scale(panel, row);
    } else {
      const std::byte* step = steps + i / kIntStepK * kInt4StepBytes;
      const Int4Place place = int4_place(row, i);
      const auto both = static_cast<std::uint8_t>(step[place.code]);
      const std::int32_t code = place.high_half ? both >> 4 : both & 15;
      w[i] = static_cast<float>(int4_value(static_cast<std::uint8_t>(step[place.scale]), code)) *
             get_scale(panel, row);
    }
  }
}

}  // namespace sluice::kernels
