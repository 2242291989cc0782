#include "media/preprocessor_config.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "media/test_pictures.h"

namespace sluice {
namespace {

class PreprocessorConfigTest : public ::testing::Test {
 protected:
  PreprocessorConfigTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice_media_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~PreprocessorConfigTest() override { std::filesystem::remove_all(folder_); }

  Result<PreprocessorConfig> load(std::string_view pictures, std::string_view videos = "{}") {
    std::ofstream(folder_ / "preprocessor_config.json") << pictures;
    std::ofstream(folder_ / "video_preprocessor_config.json") << videos;
    return load_preprocessor_config(folder_);
  }

  std::filesystem::path folder_;
};

TEST_F(PreprocessorConfigTest, NoFilesMeanTheReleases) {
  const PreprocessorConfig config = load_preprocessor_config(folder_).value();
  EXPECT_EQ(config.picture.pixels_min, 65536);
  EXPECT_EQ(config.picture.pixels_max, 16777216);
  EXPECT_EQ(config.video.pixels_min, 4096);
  EXPECT_EQ(config.video.pixels_max, 25165824);
  EXPECT_EQ(config.frames_min, 4);
  EXPECT_EQ(config.frames_max, 768);
  EXPECT_EQ(config.frames_per_second, 2.0);
}

TEST_F(PreprocessorConfigTest, TheReleasedFiles) {
  constexpr std::string_view kSteps =
      R"("patch_size": 16, "temporal_patch_size": 2, "merge_size": 2,
    "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "do_resize": true,)";
  const std::string pictures = "{" + std::string(kSteps) +
                               R"("size": {"longest_edge": 1000000, "shortest_edge": 2048},
    "processor_class": "Qwen3VLProcessor", "image_processor_type": "Qwen2VLImageProcessorFast"})";
  const std::string videos = "{" + std::string(kSteps) +
                             R"("size": {"longest_edge": 3000000, "shortest_edge": 5000}, "fps": 4,
    "min_frames": 6, "max_frames": 60, "rescale_factor": 0.00392156862745098, "resample": 3})";
  const PreprocessorConfig config = load(pictures, videos).value();
  EXPECT_EQ(config.picture.pixels_min, 2048);
  EXPECT_EQ(config.picture.pixels_max, 1000000);
  EXPECT_EQ(config.video.pixels_min, 5000);
  EXPECT_EQ(config.video.pixels_max, 3000000);
  EXPECT_EQ(config.frames_per_second, 4.0);
  EXPECT_EQ(config.frames_min, 6);
  EXPECT_EQ(config.frames_max, 60);
}

TEST_F(PreprocessorConfigTest, OlderNamesWin) {
  const PreprocessorConfig config =
      load(
          R"({"min_pixels": 3136, "max_pixels": 12845056, "size": {"shortest_edge": 5, "longest_edge": 6}})")
          .value();
  EXPECT_EQ(config.picture.pixels_min, 3136);
  EXPECT_EQ(config.picture.pixels_max, 12845056);
}

TEST_F(PreprocessorConfigTest, RefusesWhatIsNotImplemented) {
  for (const std::string_view field :
       {R"("patch_size": 14)", R"("merge_size": 1)", R"("temporal_patch_size": 1)",
        R"("image_mean": [0.48, 0.45, 0.4])", R"("image_mean": 0.5)", R"("image_std": [0.5, 0.5])",
        R"("rescale_factor": 1.0)", R"("resample": 2)", R"("do_resize": false)",
        R"("do_normalize": 1)", R"("size": {"height": 224, "width": 224})"}) {
    const std::string name(field.substr(1, field.find('"', 1) - 1));
    const std::string text = "{" + std::string(field) + "}";
    EXPECT_ERROR(load(text), ErrorCode::unsupported, {"/preprocessor_config.json", name, "want"});
    EXPECT_ERROR(load("{}", text), ErrorCode::unsupported, {"video_preprocessor_config", name});
  }
  EXPECT_ERROR(load("{}", R"({"cap_pixels_per_frame": true})"), ErrorCode::unsupported,
               {"cap_pixels_per_frame"});
  EXPECT_ERROR(load("{}", R"({"num_frames": 16})"), ErrorCode::unsupported, {"num_frames"});
}

TEST_F(PreprocessorConfigTest, RefusesWhatIsBroken) {
  const auto broken = [&](std::string_view text, std::string_view part) {
    EXPECT_ERROR(load(text), ErrorCode::corrupt_data, {"/preprocessor_config.json", part});
    EXPECT_ERROR(load("{}", text), ErrorCode::corrupt_data, {"video_preprocessor_config", part});
  };
  broken("", "not JSON");
  broken("{", "not JSON");
  broken("[]", "want a JSON object");
  broken(R"({"size": 5})", "size is 5, want an object");
  broken(R"({"size": {"longest_edge": 0}})", "longest_edge is 0");
  broken(R"({"size": {"longest_edge": 1e300}})", "longest_edge");
  broken(R"({"size": {"shortest_edge": "a"}})", "shortest_edge is \"a\"");
  broken(R"({"min_pixels": 10.5})", "min_pixels is 1.05E1, want an integer");
  broken(R"({"min_pixels": 100, "max_pixels": 99})", "100 is above");
  EXPECT_ERROR(load("{}", R"({"fps": 0})"), ErrorCode::corrupt_data, {"fps is 0"});
  EXPECT_ERROR(load("{}", R"({"min_frames": 9, "max_frames": 8})"), ErrorCode::corrupt_data,
               {"min_frames 9 is above max_frames 8"});
}

}  // namespace
}  // namespace sluice
