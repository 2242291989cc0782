// Three-axis positions against transformers' (tests/goldens/geometry.json), and beyond the prompt.
#include "model/mrope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "platform/mapped_file.h"
#include "weights/strict_json.h"

namespace sluice {
namespace {

constexpr std::int64_t kImageToken = 248056;
constexpr std::int64_t kVideoToken = 248057;

VisionSpan span(std::int64_t position, std::int64_t grid_rows, std::int64_t grid_columns) {
  auto input = std::make_shared<VisionInput>();
  input->grid_rows = grid_rows;
  input->grid_columns = grid_columns;
  return {.position = position, .input = std::move(input)};
}

boost::json::array golden_cases() {
  const std::string path = SLUICE_SOURCE_DIR "/tests/goldens/geometry.json";
  const Result<std::string> text = read_text_file(path, 1 << 20);
  const Result<boost::json::value> document = parse_strict_json(text.value(), path);
  return document.value().at("rope_positions").as_array();
}

// Runs of placeholders, and their grids in the order of the prompt.
std::vector<VisionSpan> spans_of(const boost::json::value& golden) {
  std::vector<VisionSpan> spans;
  std::vector<std::pair<std::int64_t, std::int64_t>> grids;
  for (const char* list : {"image_grid_thw", "video_grid_thw"}) {  // no case has both
    for (const boost::json::value& grid : golden.at(list).as_array()) {
      for (std::int64_t frame = 0; frame < grid.at(0).as_int64(); ++frame) {
        grids.emplace_back(grid.at(1).as_int64(), grid.at(2).as_int64());
      }
    }
  }
  const boost::json::array& ids = golden.at("ids").as_array();
  std::int64_t last = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t id = ids[i].as_int64();
    const bool placeholder = id == kImageToken || id == kVideoToken;
    if (placeholder && id != last) {
      const auto [rows, columns] = grids.at(spans.size());
      spans.push_back(span(static_cast<std::int64_t>(i), rows, columns));
    }
    last = id;
  }
  EXPECT_EQ(spans.size(), grids.size());
  return spans;
}

TEST(MropeTest, PositionsAndDeltaAreThoseOfTheReference) {
  const boost::json::array cases = golden_cases();
  ASSERT_EQ(cases.size(), 4U);
  for (const boost::json::value& golden : cases) {
    const MropePositions positions(spans_of(golden));
    const auto count = static_cast<std::int64_t>(golden.at("ids").as_array().size());
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        EXPECT_EQ(positions.at(i)[axis],
                  golden.at("positions").at(axis).at(static_cast<std::size_t>(i)).as_int64())
            << golden.at("label") << ", token " << i << ", axis " << axis;
      }
    }
    for (std::int64_t i = count; i < count + 3; ++i) {  // answers
      const auto want = static_cast<std::int32_t>(i + golden.at("delta").as_int64());
      EXPECT_EQ(positions.at(i), (std::array{want, want, want})) << golden.at("label");
    }
  }
}

// Against the walk of the prompt, token by token.
TEST(MropeTest, ManyPicturesAgreeWithTheWalk) {
  std::vector<VisionSpan> spans;
  std::vector<std::array<std::int32_t, 3>> walk;
  std::int32_t p = 0;
  const auto text = [&](int count) {
    for (int i = 0; i < count; ++i, ++p) {
      walk.push_back({p, p, p});
    }
  };
  const std::pair<int, int> grids[] = {{2, 2}, {64, 2}, {2, 64}, {6, 10}, {4, 4}, {2, 2}};
  const int gaps[] = {0, 1, 0, 7, 2, 0};  // pictures may touch each other and the beginning
  for (std::size_t i = 0; i < std::size(grids); ++i) {
    text(gaps[i]);
    const auto [rows, columns] = grids[i];
    spans.push_back(span(static_cast<std::int64_t>(walk.size()), rows, columns));
    for (std::int32_t r = 0; r < rows / 2; ++r) {
      for (std::int32_t c = 0; c < columns / 2; ++c) {
        walk.push_back({p, p + r, p + c});
      }
    }
    p += std::max(rows, columns) / 2;
  }
  text(20);
  const MropePositions positions(spans);
  for (std::size_t i = 0; i < walk.size(); ++i) {
    EXPECT_EQ(positions.at(static_cast<std::int64_t>(i)), walk[i]) << i;
  }
}

TEST(MropeTest, TextCountsUp) {
  EXPECT_EQ(MropePositions().at(0), (std::array{0, 0, 0}));
  EXPECT_EQ(MropePositions().at(262143), (std::array{262143, 262143, 262143}));
}

}  // namespace
}  // namespace sluice
