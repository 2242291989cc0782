// Every tensor of the family, listed once: name, shape, role. Whatever a checkpoint holds beyond,
// below or beside this list is an Error with the tensor's name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/scalar.h"
#include "tensor/tensor_view.h"
#include "weights/model_config.h"
#include "weights/safetensors.h"

namespace sluice {

enum class TensorRole {
  matrix,     // a linear weight [out, in]; may be F8_E4M3 with a .weight_scale_inv beside it
  embedding,  // a table of rows
  vector,     // norm weights, biases, A_log, dt_bias, conv: kept in fp32
};

enum class TensorGroup { text, mtp, vision };

struct TensorSpec {
  std::string name;  // as in the checkpoint at hand (prefix resolved)
  Shape shape;
  TensorRole role = TensorRole::matrix;
  TensorGroup group = TensorGroup::text;
};

inline constexpr std::string_view kMtpPrefix = "mtp.";
inline constexpr std::string_view kVisionPrefix = "model.visual.";

// The prefix of the text tensors in this checkpoint: "model.language_model." or "model.".
Result<std::string> text_prefix(const Checkpoint& checkpoint);

// The prefix of the MTP tensors: "mtp." or "model.mtp."; "mtp." when there are none.
Result<std::string> mtp_prefix(const Checkpoint& checkpoint);

// Whether the checkpoint holds the MTP or the vision group (check_tensors makes it all or nothing).
bool has_group(const ModelConfig& config, const Checkpoint& checkpoint, TensorGroup group);

// All tensors that a checkpoint with this config may hold. MTP and vision tensors are listed when
// the config names them; a checkpoint may leave a whole such group out.
std::vector<TensorSpec> list_tensors(const ModelConfig& config, std::string_view text_prefix,
                                     std::string_view mtp_prefix = kMtpPrefix);

// Compares a checkpoint with the list. Errors (corrupt_data): missing, extra or misshapen tensor,
// a dtype that the role does not allow, an FP8 matrix without scale or with a scale of wrong shape.
//
// lm_head.weight in a checkpoint whose config ties it to the embedding: some exporters write the
// shared tensor twice. Equal bytes are accepted (and not used); different ones are an Error, since
// the config says that the head is the embedding and the file says that it is not.
Result<void> check_tensors(const ModelConfig& config, const Checkpoint& checkpoint);

// One weight, ready for packing.
//
// Rows [row_begin, row_begin + row_count) of a matrix as bf16 (axes after the first are flattened
// to `in`). BF16 is copied, F32 and F16 are rounded once, F8_E4M3 is widened to fp32, multiplied
// with its 128 x 128 block scale (widened to fp32; subnormal scales and products count as zero,
// whatever the float mode of the thread) and the fp32 product rounded once. out has
// row_count * in values. Errors: not_found, invalid_argument (range, size of out, not a matrix),
// corrupt_data for a value or scale that is not finite, with row and column. Any thread.
Result<void> read_matrix_rows_bf16(const Checkpoint& checkpoint, std::string_view name,
                                   std::int64_t row_begin, std::int64_t row_count,
                                   std::span<bf16_t> out);

// Whether a matrix is stored as F8_E4M3 (false where there is none).
bool is_fp8_matrix(const Checkpoint& checkpoint, std::string_view name);

// Rows of such a matrix as they are stored, from row_begin, a multiple of 128: codes [rows, in],
// and the scales of the blocks that they touch, [blocks of rows, blocks of in], widened to fp32.
// Looks at no code: read_matrix_rows_bf16() finds those that are no numbers. Errors as above.
Result<void> read_matrix_rows_fp8(const Checkpoint& checkpoint, std::string_view name,
                                  std::int64_t row_begin, std::span<std::uint8_t> codes,
                                  std::span<float> scales);

// All elements of a BF16, F16 or F32 tensor as fp32 (exact). Errors as above.
Result<std::vector<float>> read_vector_f32(const Checkpoint& checkpoint, std::string_view name);

}  // namespace sluice
