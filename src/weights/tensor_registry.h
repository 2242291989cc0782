// Every tensor of the family, listed once: name, shape, role. Whatever a checkpoint holds beyond,
// below or beside this list is an Error with the tensor's name.
#pragma once

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

// The prefix of the text tensors in this checkpoint: "model.language_model." or "model.".
Result<std::string> text_prefix(const Checkpoint& checkpoint);

// All tensors that a checkpoint with this config may hold. MTP and vision tensors are listed when
// the config names them; a checkpoint may leave a whole such group out.
std::vector<TensorSpec> list_tensors(const ModelConfig& config, std::string_view text_prefix);

// Compares a checkpoint with the list. Errors (corrupt_data): missing, extra or misshapen tensor,
// a dtype that the role does not allow, an FP8 matrix without scale or with a scale of wrong shape.
Result<void> check_tensors(const ModelConfig& config, const Checkpoint& checkpoint);

// One weight, ready for packing.
//
// row_bf16: rows [row_begin, row_begin + row_count) of a matrix as bf16, one rounding: BF16 is
// copied, F32 and F16 are rounded, F8_E4M3 is multiplied with its 128 x 128 block scale and rounded
// once. out has row_count * in values.
Result<void> read_matrix_rows_bf16(const Checkpoint& checkpoint, std::string_view name,
                                   std::int64_t row_begin, std::int64_t row_count,
                                   std::span<bf16_t> out);

// A vector of any float dtype as fp32 (exact).
Result<std::vector<float>> read_vector_f32(const Checkpoint& checkpoint, std::string_view name);

}  // namespace sluice
