// The vision encoder against the NumPy oracle's goldens (tests/goldens/tinyvl), and against itself:
// the rows of a picture must not depend on how the work was cut, on threads or instruction sets.
#include "model/vision_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/scalar_math.h"
#include "model/test_harness.h"
#include "model/vision_grid.h"
#include "weights/strict_json.h"

namespace sluice {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
const std::string kDirectory = kGoldens + "tinyvl";

// An encoder with all that it lives on.
struct EncoderBench {
  explicit EncoderBench(const kernels::KernelTable& table = best_table(), int threads = 2)
      : pool(threads),
        config(unwrap(load_model_config(kDirectory))),
        checkpoint(unwrap(Checkpoint::open(kDirectory))),
        encoder(unwrap(VisionEncoder::load(config, checkpoint, table, pool,
                                           {.patches_max = kPatchesMax}, {}))) {}

  static constexpr std::int64_t kPatchesMax = 624;

  std::vector<float> rows(const std::shared_ptr<const VisionInput>& input,
                          double flops_max = kNoLimit) {
    const std::unique_ptr<VisionEncoding> encoding = encoder->start(input).value();
    while (!encoding->advance(flops_max)) {
    }
    return encoding->take_rows();
  }

  ThreadPool pool;
  ModelConfig config;
  Checkpoint checkpoint;
  std::unique_ptr<VisionEncoder> encoder;
};

std::shared_ptr<VisionInput> noise(std::int64_t grid_rows, std::int64_t grid_columns,
                                   std::int64_t frames, std::uint32_t seed) {
  auto input = std::make_shared<VisionInput>();
  input->grid_rows = grid_rows;
  input->grid_columns = grid_columns;
  input->frame_count = frames;
  input->pixels.resize(static_cast<std::size_t>(frames * grid_rows * grid_columns * 16 * 16 * 3));
  for (std::uint8_t& pixel : input->pixels) {
    seed = seed * 1664525U + 1013904223U;
    pixel = static_cast<std::uint8_t>(seed >> 24);
  }
  return input;
}

// golden.safetensors and golden.json.
class Golden {
 public:
  Golden()
      : file_(unwrap(MappedFile::open(kDirectory + "/golden.safetensors"))),
        tensors_(unwrap(parse_safetensors(file_.bytes(), "golden"))),
        json_(unwrap(parse_strict_json(unwrap(read_text_file(kDirectory + "/golden.json", 1 << 20)),
                                       "golden.json"))) {}

  const boost::json::value& json() const { return json_; }
  const Shape& shape(const std::string& name) const { return tensors_.at(name).shape; }
  std::vector<float> floats(const std::string& name) const {
    const TensorView& view = tensors_.at(name);
    std::vector<float> values(view.bytes.size() / sizeof(float));
    std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
    return values;
  }

  // Frames [first, first + count) of a tensor [.., H, W, 3].
  std::shared_ptr<VisionInput> input(const std::string& name, std::int64_t first,
                                     std::int64_t count) const {
    const TensorView& view = tensors_.at(name);
    const std::size_t axes = view.shape.size();
    auto input = std::make_shared<VisionInput>();
    input->grid_rows = view.shape[axes - 3] / kVisionPatchSize;
    input->grid_columns = view.shape[axes - 2] / kVisionPatchSize;
    input->frame_count = count;
    const std::int64_t frame = view.shape[axes - 3] * view.shape[axes - 2] * 3;
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(view.bytes.data());
    input->pixels.assign(pixels + first * frame, pixels + (first + count) * frame);
    return input;
  }

  std::shared_ptr<VisionInput> image() const { return input("image.resized_u8", 0, 1); }
  // Five frames: two, two, and the last one, which the reference repeats.
  std::vector<std::shared_ptr<VisionInput>> video() const {
    return {input("video.frames_u8", 0, 2), input("video.frames_u8", 2, 2),
            input("video.frames_u8", 4, 1)};
  }

 private:
  MappedFile file_;
  TensorMap tensors_;
  boost::json::value json_;
};

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = a.size() == b.size() ? 0.0 : kNoLimit;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return worst;
}

// The reference in bf16 is up to 0.019 away from the same float64 goldens.
constexpr double kFeaturesMax = 0.02;

TEST(VisionGoldenTest, FeaturesOfAnImageMatchTheOracle) {
  const Golden golden;
  const double worst =
      largest_difference(EncoderBench().rows(golden.image()), golden.floats("image.features"));
  EXPECT_LT(worst, kFeaturesMax);
  printf("image features: max %.5f\n", worst);
}

TEST(VisionGoldenTest, FeaturesOfAVideoMatchTheOracle) {
  const Golden golden;
  EncoderBench bench;
  std::vector<float> rows;
  for (const std::shared_ptr<VisionInput>& frames : golden.video()) {
    const std::vector<float> part = bench.rows(frames);
    rows.insert(rows.end(), part.begin(), part.end());
  }
  const double worst = largest_difference(rows, golden.floats("video.features"));
  EXPECT_LT(worst, kFeaturesMax);
  printf("video features: max %.5f\n", worst);
}

TEST(VisionGoldenTest, RotaryAnglesAreThoseOfTheOracle) {
  const Golden golden;
  const VisionConfig config = *unwrap(load_model_config(kDirectory)).vision;
  const VisionGrid grid(config, 4, 6);
  const std::vector<float> angles = golden.floats("image.vision.rope_angle");
  const std::int64_t half = config.hidden_size / config.num_heads / 2;
  ASSERT_EQ(golden.shape("image.vision.rope_angle"), (Shape{grid.patches(), half}));
  std::vector<float> cos(static_cast<std::size_t>(half));
  std::vector<float> sin = cos;
  for (std::int64_t patch = 0; patch < grid.patches(); ++patch) {
    grid.turn(patch, cos.data(), sin.data());
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(angles[static_cast<std::size_t>(patch * half + i)]);
      EXPECT_NEAR(static_cast<double>(cos[static_cast<std::size_t>(i)]), std::cos(angle), 1e-6);
      EXPECT_NEAR(static_cast<double>(sin[static_cast<std::size_t>(i)]), std::sin(angle), 1e-6);
    }
  }
}

TEST(VisionGoldenTest, PositionTapsAreThoseOfTheOracle) {
  const std::string path = kGoldens + "geometry.json";
  const boost::json::value document =
      unwrap(parse_strict_json(unwrap(read_text_file(path, 1 << 20)), path));
  const boost::json::value& golden = document.at("pos_embed_taps");
  const auto side = golden.at("table_side").as_int64();
  VisionConfig config;
  config.hidden_size = 64;
  config.num_heads = 4;
  config.num_position_embeddings = side * side;
  const VisionGrid grid(config, golden.at("grid").at(1).as_int64(),
                        golden.at("grid").at(2).as_int64());
  for (std::int64_t patch = 0; patch < grid.patches(); ++patch) {
    const VisionGrid::Taps taps = grid.taps(patch);
    for (std::size_t tap = 0; tap < 4; ++tap) {
      const auto at = static_cast<std::size_t>(patch);
      EXPECT_EQ(taps.rows[tap], golden.at("index").at(at).at(tap).as_int64());
      // The same fp32 place between the rows; the oracle multiplies in fp64.
      EXPECT_NEAR(static_cast<double>(taps.weights[tap]),
                  golden.at("weight").at(at).at(tap).to_number<double>(), 0x1p-24);
    }
  }
}

// Prompt, picture, video and answer through both models.
TEST(VisionGoldenTest, LogitsAndGreedyTokensOfAPromptWithPictures) {
  const Golden golden;
  EncoderBench bench;
  std::vector<std::int32_t> ids;
  for (const boost::json::value& id : golden.json().at("prompt").as_array()) {
    ids.push_back(static_cast<std::int32_t>(id.as_int64()));
  }
  std::vector<std::shared_ptr<VisionInput>> inputs = golden.video();
  inputs.insert(inputs.begin(), golden.image());
  Harness::Part part{0, 0, ids};
  std::vector<VisionSpan> spans;
  const auto is_pad = [&](std::int64_t i) {
    const std::int32_t id = ids[static_cast<std::size_t>(i)];
    return id == bench.config.image_token_id || id == bench.config.video_token_id;
  };
  std::int64_t index = 0;
  for (const std::shared_ptr<VisionInput>& input : inputs) {
    while (!is_pad(index)) {
      ++index;
    }
    spans.push_back({.position = index, .input = input});
    part.pictures.push_back({index, bench.rows(input)});
    index += input->token_count();
  }
  part.positions = MropePositions(spans);
  Harness model("tinyvl", best_table(), 2);
  std::vector<float> logits = model.step({part});
  const double worst = largest_difference(logits, golden.floats("mm.logits"));
  EXPECT_LT(worst, 0.5);  // the reference in bf16: 0.61
  printf("logits of a prompt with pictures: max %.4f\n", worst);

  std::vector<float> greedy_logits;
  for (const boost::json::value& token : golden.json().at("greedy").as_array()) {
    const std::vector<float> last(logits.end() - model.vocab(), logits.end());
    greedy_logits.insert(greedy_logits.end(), last.begin(), last.end());
    const auto best = std::ranges::max_element(last) - last.begin();
    ASSERT_EQ(best, token.as_int64());
    logits = model.step({{.slot = 0,
                          .position = std::ssize(ids),
                          .ids = {static_cast<std::int32_t>(best)},
                          .positions = part.positions}});
    ids.push_back(static_cast<std::int32_t>(best));
  }
  EXPECT_LT(largest_difference(greedy_logits, golden.floats("mm.greedy_logits")), 0.5);
}

TEST(VisionEncoderTest, RowsDoNotDependOnHowTheWorkIsCut) {
  EncoderBench bench;
  const auto a = noise(26, 24, 1, 1);  // 624 patches: two pieces
  const auto b = noise(2, 6, 2, 2);
  const std::vector<float> whole_a = bench.rows(a);
  const std::vector<float> whole_b = bench.rows(b);
  EXPECT_EQ(std::ssize(whole_a), a->token_count() * bench.encoder->row_size());
  for (const double flops_max : {0.0, 1e6, 3e7}) {
    EXPECT_TRUE(same_bits(bench.rows(a, flops_max), whole_a)) << flops_max;
  }
  EXPECT_TRUE(same_bits(bench.rows(b, 0.0), whole_b));
}

// The workspace is that of the picture before, which was larger and given up at any point.
TEST(VisionEncoderTest, RowsDoNotDependOnThePictureBefore) {
  EncoderBench bench;
  const auto before = noise(26, 24, 1, 1);
  const auto picture = noise(2, 6, 2, 2);
  const std::vector<float> expected = EncoderBench().rows(picture);
  for (int pieces = 0; pieces < 16; ++pieces) {
    {
      const auto given_up = bench.encoder->start(before).value();
      for (int i = 0; i < pieces; ++i) {
        given_up->advance(0.0);
      }
    }
    ASSERT_TRUE(same_bits(bench.rows(picture), expected)) << pieces;
  }
}

TEST(VisionEncoderTest, TheWorkspaceIsThatOfTheLargestPictureAndNoLargerOneIsTaken) {
  EncoderBench bench;
  EXPECT_EQ(bench.encoder->patches_max(), 26 * 24);
  const VisionConfig& tower = *bench.config.vision;
  const auto residual = static_cast<std::size_t>(26 * 24 * tower.hidden_size) * sizeof(float);
  EXPECT_GT(bench.encoder->workspace_bytes(), residual);
  EXPECT_DEATH((void)bench.encoder->start(noise(26, 26, 1, 1)), "patches_max_");
  const auto first = bench.encoder->start(noise(2, 2, 1, 1)).value();
  EXPECT_DEATH((void)bench.encoder->start(noise(2, 2, 1, 1)), "in_use");
}

TEST(VisionEncoderTest, RowsDoNotDependOnThreadsOrInstructionSet) {
  const auto picture = noise(10, 14, 1, 3);
  const auto video = noise(4, 34, 2, 4);
  EncoderBench reference(best_table(), 1);
  const std::vector<float> expected = reference.rows(picture);
  const std::vector<float> expected_video = reference.rows(video);
  const auto check = [&](const kernels::KernelTable& table, int threads) {
    EncoderBench bench(table, threads);
    EXPECT_TRUE(same_bits(bench.rows(picture), expected)) << table.name << ", " << threads;
    EXPECT_TRUE(same_bits(bench.rows(video), expected_video)) << table.name << ", " << threads;
  };
  for (const int threads : {2, 3, 7}) {
    check(best_table(), threads);
  }
  for (const kernels::KernelTable* table : kernels::supported_tables(detect_cpu_features())) {
    check(*table, 2);
  }
}

// The same frame twice is a picture; another second frame is not.
TEST(VisionEncoderTest, APictureIsAVideoThatStandsStill) {
  EncoderBench bench;
  const auto picture = noise(4, 6, 1, 5);
  const auto still = std::make_shared<VisionInput>(*picture);
  still->frame_count = 2;
  still->pixels.insert(still->pixels.end(), picture->pixels.begin(), picture->pixels.end());
  EXPECT_TRUE(same_bits(bench.rows(still), bench.rows(picture)));
  const auto moving = std::make_shared<VisionInput>(*still);
  moving->pixels.back() ^= 0x80U;
  EXPECT_FALSE(same_bits(bench.rows(moving), bench.rows(picture)));
}

TEST(VisionEncoderTest, AdvanceKeepsToItsBudget) {
  EncoderBench bench;
  const auto input = noise(26, 24, 1, 1);
  const double flops = bench.encoder->flops(26, 24);
  const auto encoding = bench.encoder->start(input).value();
  int calls = 1;
  while (!encoding->advance(flops / 6.0)) {
    ++calls;
  }
  EXPECT_GE(calls, 6);
  EXPECT_LE(calls, 16);  // its 16 pieces: 2 of embedding and merger, 2 x 3 of each of 2 blocks
  EXPECT_TRUE(encoding->advance(0.0));
}

TEST(VisionEncoderTest, LoadNamesWhatItDoesNotCompute) {
  ThreadPool pool(1);
  const ModelConfig config = unwrap(load_model_config(kDirectory));
  const Checkpoint checkpoint = unwrap(Checkpoint::open(kDirectory));
  const auto error_of = [&](const ModelConfig& changed) {
    return VisionEncoder::load(changed, checkpoint, best_table(), pool, {.patches_max = 4}, {})
        .error();
  };
  ModelConfig text = config;
  text.vision.reset();
  EXPECT_EQ(error_of(text).code, ErrorCode::not_found);
  ModelConfig patches = config;
  patches.vision->patch_size = 14;
  EXPECT_EQ(error_of(patches).code, ErrorCode::unsupported);
  EXPECT_THAT(error_of(patches).message, testing::HasSubstr("patch_size is 14, want 16"));
  ModelConfig heads = config;
  heads.vision->hidden_size = 1024;
  heads.vision->num_heads = 4;
  EXPECT_THAT(error_of(heads).message, testing::HasSubstr("256, want at most 128"));
  ModelConfig deep = config;
  deep.vision->depth = 3;
  EXPECT_EQ(error_of(deep).code, ErrorCode::corrupt_data);
}

}  // namespace
}  // namespace sluice
