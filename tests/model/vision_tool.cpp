// vision_tool MODEL IN OUT: encodes the pictures of a safetensors file, U8 [frames, height, width,
// 3] each, sides multiples of 32, and writes their rows under the same names. For test_vision.py.
//
// vision_tool positions SPANS COUNT: prints the positions of COUNT tokens, [[t, h, w], ...], of a
// prompt with pictures [[first token, rows, columns], ...] (grids of patches).
#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/select.h"
#include "model/mrope.h"
#include "model/vision_encoder.h"
#include "platform/mapped_file.h"
#include "platform/thread_pool.h"

namespace sluice {
namespace {

Result<std::shared_ptr<const VisionInput>> read_picture(const std::string& name,
                                                        const TensorView& view) {
  constexpr std::int64_t kFactor = kVisionPatchSize * kVisionMergeSize;
  if (view.dtype != DType::u8 || view.shape.size() != 4 || view.shape[3] != 3 ||
      view.shape[1] % kFactor != 0 || view.shape[2] % kFactor != 0 || view.shape[0] > 2 ||
      view.bytes.empty()) {
    return fail(ErrorCode::invalid_argument, name + ": no picture of that shape", name);
  }
  auto input = std::make_shared<VisionInput>();
  input->frame_count = view.shape[0];
  input->grid_rows = view.shape[1] / kVisionPatchSize;
  input->grid_columns = view.shape[2] / kVisionPatchSize;
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(view.bytes.data());
  input->pixels.assign(pixels, pixels + view.bytes.size());
  return input;
}

Result<void> encode(const std::string& model, const std::string& in, const std::string& out) {
  const char* forced = std::getenv("SLUICE_FORCE_ISA");
  const kernels::KernelTable* table =
      SLUICE_TRY(kernels::select_kernels(detect_cpu_features(), forced == nullptr ? "" : forced));
  ThreadPool pool(available_cpus());
  const ModelConfig config = SLUICE_TRY(load_model_config(model));
  const Checkpoint checkpoint = SLUICE_TRY(Checkpoint::open(model));
  const VisionOptions options{.patches_max = std::int64_t{1} << 16};
  const std::unique_ptr<VisionEncoder> encoder =
      SLUICE_TRY(VisionEncoder::load(config, checkpoint, *table, pool, options, {}));
  const MappedFile file = SLUICE_TRY(MappedFile::open(in));
  const TensorMap pictures = SLUICE_TRY(parse_safetensors(file.bytes(), in));
  std::map<std::string, std::vector<float>> rows;
  TensorMap tensors;
  for (const auto& [name, view] : pictures) {
    const auto picture = SLUICE_TRY(read_picture(name, view));
    const std::unique_ptr<VisionEncoding> encoding = SLUICE_TRY(encoder->start(picture));
    encoding->advance(std::numeric_limits<double>::infinity());
    const std::vector<float>& values = rows[name] = encoding->take_rows();
    tensors[name] = {.dtype = DType::f32,
                     .shape = {std::ssize(values) / encoder->row_size(), encoder->row_size()},
                     .bytes = std::as_bytes(std::span(values))};
  }
  return write_safetensors(out, tensors);
}

void print_positions(const std::string& spans_json, const std::string& count) {
  std::vector<VisionSpan> spans;
  const boost::json::value parsed = boost::json::parse(spans_json);
  for (const boost::json::value& span : parsed.as_array()) {
    auto input = std::make_shared<VisionInput>();
    input->grid_rows = span.at(1).as_int64();
    input->grid_columns = span.at(2).as_int64();
    spans.push_back({.position = span.at(0).as_int64(), .input = std::move(input)});
  }
  const MropePositions positions(spans);
  boost::json::array rows;
  for (std::int64_t i = 0; i < std::stoll(count); ++i) {
    const auto [time, height, width] = positions.at(i);
    rows.push_back(boost::json::array{time, height, width});
  }
  fmt::print("{}\n", boost::json::serialize(rows));
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "vision_tool MODEL IN OUT\n");
    return 2;
  }
  if (std::string(argv[1]) == "positions") {
    sluice::print_positions(argv[2], argv[3]);
    return 0;
  }
  const sluice::Result<void> done = sluice::encode(argv[1], argv[2], argv[3]);
  if (!done) {
    fmt::print(stderr, "vision_tool: {}\n", done.error().message);
    return 1;
  }
  return 0;
}
