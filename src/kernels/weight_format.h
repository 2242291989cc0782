// How linear weights lie in memory. Every format is a run of panels of 32 output columns, each one
// sequential stream, made to be read by one product routine per family:
//
//   bf16   kernels/layout.h: steps of 32 k as two 1 KB tiles of bf16
//   fp8    [fp32 scales, one per 128 k, padded to 64 bytes] [steps of 32 k]
//          step: [2 halves][16 pairs of k][16 columns][2 k] e4m3, as in bf16        1,024 bytes
//   int8   [32 fp32 column scales] [steps of 64 k]
//          step: [2 halves][16 quads of k][16 columns][4 k] int8                    2,048 bytes
//   int4   [32 fp32 column scales] [steps of 64 k]
//          step: [2 halves][2 groups of 32 k][16 columns] group scales                 64 bytes
//                [2 halves][2 groups][4 rows][16 columns][4 k], two codes a byte    1,024 bytes
//                low half: quad 2 row of the group, high half: quad 2 row + 1
//
// fp8: weight = bf16(fp32(code) x scale), a bf16 operand like any other; the scale is that of a
// block of 128 columns x 128 k, in which a panel lies whole. NaN codes (0x7f, 0xff) do not occur.
// int8: weight = value x column scale. int4: weight = value x column scale with
// value = s (code - 8), or s (code - 7) where the group scale has bit 7 set; s = its low 5 bits, 1
// to 16 (15 with bit 7), so that every value fits int8. 4.25 bits a weight. Once decoded an int4
// step is an int8 step, and one integer product serves both.
//
// N is rounded up to 32, K to 64 (bf16: 32); the padding is zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "kernels/layout.h"

namespace sluice::kernels {

enum class WeightFormat : std::uint8_t { bf16, fp8, int8, int4 };

inline constexpr std::array kWeightFormats{WeightFormat::bf16, WeightFormat::fp8,
                                           WeightFormat::int8, WeightFormat::int4};

// "bf16", "fp8", "int8", "int4".
std::string_view to_string(WeightFormat format);
std::optional<WeightFormat> weight_format_from_name(std::string_view name);

inline constexpr std::int64_t kFp8BlockSize = 128;  // rows and columns of W that share a scale
inline constexpr std::int64_t kFp8StepBytes = kStepElements;
static_assert(kFp8BlockSize % kPanelColumns == 0 && kFp8BlockSize % kStepK == 0);

inline constexpr std::int64_t kIntStepK = 64;
inline constexpr std::int64_t kIntTileBytes = 1024;  // half a decoded step; 16 rows of activations
inline constexpr std::int64_t kIntStepBytes = 2 * kIntTileBytes;
inline constexpr std::int64_t kInt4GroupK = 32;
inline constexpr std::int64_t kInt4ScaleBytes = 64;  // of one step
inline constexpr std::int64_t kInt4StepBytes = kInt4ScaleBytes + kIntStepBytes / 2;
inline constexpr std::int64_t kPanelScaleBytes = kPanelColumns * 4;

// |sum| <= K x 127 x 128 must fit int32.
inline constexpr std::int64_t kIntProductKMax = std::int64_t{1} << 17;
static_assert(kIntProductKMax * 127 * 128 <= 0x7fffffff);

constexpr bool is_integer(WeightFormat format) {
  return format == WeightFormat::int8 || format == WeightFormat::int4;
}

constexpr std::int64_t pad64(std::int64_t k) {
  return (k + 63) / 64 * 64;
}

constexpr std::int64_t int_steps(std::int64_t k) {
  return pad64(k) / kIntStepK;
}

constexpr std::int64_t fp8_blocks(std::int64_t size) {
  return (size + kFp8BlockSize - 1) / kFp8BlockSize;
}

// What a panel begins with. k may be padded already.
constexpr std::int64_t scale_bytes(WeightFormat format, std::int64_t k) {
  switch (format) {
    case WeightFormat::bf16:
      return 0;
    case WeightFormat::fp8:
      return pad64(fp8_blocks(k) * 4);
    default:
      return kPanelScaleBytes;
  }
}

constexpr std::int64_t panel_bytes(WeightFormat format, std::int64_t k) {
  switch (format) {
    case WeightFormat::bf16:
      return packed_elements(kPanelColumns, k) * static_cast<std::int64_t>(sizeof(bf16_t));
    case WeightFormat::fp8:
      return scale_bytes(format, k) + packed_elements(kPanelColumns, k);
    case WeightFormat::int8:
      return kPanelScaleBytes + int_steps(k) * kIntStepBytes;
    case WeightFormat::int4:
      return kPanelScaleBytes + int_steps(k) * kInt4StepBytes;
  }
  return 0;
}

constexpr std::int64_t packed_bytes(WeightFormat format, std::int64_t n, std::int64_t k) {
  return pad32(n) / kPanelColumns * panel_bytes(format, k);
}

// The weight that an fp8 code stands for: the product in fp32, rounded once. The one definition of
// it, of FP8 checkpoints too. The thread flushes denormals (platform/float_mode.h).
inline bf16_t fp8_weight(std::uint8_t code, float scale) {
  return float_to_bf16(kF8E4m3Values.of[code] * scale);
}

// The scale of a step of an fp8 panel. The code of (column n, k) is byte packed_index(n % 32, k)
// behind the scales.
inline float fp8_scale(const std::byte* panel, std::int64_t step) {
  float scale = 0.0F;
  std::memcpy(&scale, panel + step * kStepK / kFp8BlockSize * 4, sizeof scale);
  return scale;
}

// Byte of element (column n, k) in the step of an int8 panel.
constexpr std::int64_t int8_index(std::int64_t n, std::int64_t k) {
  return n % 32 / 16 * kIntTileBytes + k % 64 / 4 * 64 + n % 16 * 4 + k % 4;
}

// Where an int4 step has the scale and the code of an element; the code is the byte's high half
// where high_half.
struct Int4Place {
  std::int64_t scale;
  std::int64_t code;
  bool high_half;
};
constexpr Int4Place int4_place(std::int64_t n, std::int64_t k) {
  const std::int64_t half = n % 32 / 16;
  const std::int64_t group = k % 64 / kInt4GroupK;
  const std::int64_t quad = k % kInt4GroupK / 4;
  return {.scale = half * 32 + group * 16 + n % 16,
          .code = kInt4ScaleBytes + half * 512 + group * 256 + quad / 2 * 64 + n % 16 * 4 + k % 4,
          .high_half = quad % 2 != 0};
}

inline constexpr std::uint8_t kInt4ScaleMask = 0x1f;
inline constexpr std::uint8_t kInt4ScaleFlip = 0x80;

constexpr std::int32_t int4_value(std::uint8_t scale, std::int32_t code) {
  return (scale & kInt4ScaleMask) * (code - ((scale & kInt4ScaleFlip) != 0 ? 7 : 8));
}

// Quantised activations lie in tiles, [rows / 16][steps][16 rows][64 k] int8.
constexpr std::int64_t int_rows_bytes(std::int64_t rows, std::int64_t k) {
  return (rows + 15) / 16 * int_steps(k) * kIntTileBytes;
}
constexpr std::int64_t int_row_offset(std::int64_t row, std::int64_t steps) {
  return row / 16 * steps * kIntTileBytes + row % 16 * kIntStepK;
}

// Rows of a weight before they are packed, row-major.
struct WeightRows {
  const bf16_t* values;  // [rows][k], finite
  // Where they come from blocks of FP8, what `values` was made of: codes [rows][k] without NaN,
  // scales [blocks of rows][blocks of k]. fp8 keeps them as they are.
  const std::uint8_t* codes = nullptr;
  const float* scales = nullptr;
};

// Rows that are packed at a time, or a multiple of them: those that share scales.
constexpr std::int64_t rows_packed_at_once(WeightFormat format) {
  return format == WeightFormat::fp8 ? kFp8BlockSize : kPanelColumns;
}

// Packs rows [row, row + rows) of w [n, k] into `packed`, which was zero; `row` is a multiple of
// rows_packed_at_once(), `rows` too unless it reaches n.
// Rounds once per weight, to nearest even, the same on every machine:
//   fp8: scale = largest |w| of the block / 448, code = w / scale, at most 448; scale 1 where the
//        largest |w| is below 2^-100, all codes are zero then
//   int8: scale = largest |w| of the row / 127
//   int4: column scale = largest |w| / 120; per group the scale s and its sign with the least sum
//         of squared errors among those around largest |w| of the group (ties: the first tried)
// Rows whose largest |w| is below 2^-100 are zero. k <= kIntProductKMax for integer formats.
void pack_weight_rows(WeightFormat format, const WeightRows& w, std::int64_t row, std::int64_t rows,
                      std::int64_t k, std::byte* packed);

// What the packed row stands for, k values: the other direction, for reports and tests.
void unpack_weight_row(WeightFormat format, const std::byte* packed, std::int64_t row,
                       std::int64_t k, float* w);

}  // namespace sluice::kernels
