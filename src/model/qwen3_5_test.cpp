// The whole text model against the NumPy oracle's goldens, and against itself: the logits of a row
// must not depend on step sizes, threads, batch mix or instruction set.
#include "model/qwen3_5.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "model/test_harness.h"

namespace sluice {
namespace {

// A fixed prompt of pseudo-random ids.
std::vector<std::int32_t> prompt(std::size_t length, std::int64_t vocab, std::uint32_t seed) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < length; ++i) {
    seed = seed * 1664525U + 1013904223U;
    ids.push_back(static_cast<std::int32_t>((seed >> 8) % static_cast<std::uint32_t>(vocab)));
  }
  return ids;
}

class ModelTest : public testing::TestWithParam<std::string> {};

TEST_P(ModelTest, LogitsDoNotDependOnStepSize) {
  Harness model(GetParam(), best_table(), 1);
  const auto ids = prompt(300, model.vocab(), 7);
  const std::vector<float> whole = model.score(ids, ids.size());
  for (const std::size_t step : {1UL, 7UL, 31UL, 32UL, 33UL, 63UL, 64UL, 65UL, 128UL, 150UL}) {
    EXPECT_TRUE(same_bits(model.score(ids, step), whole)) << "step " << step;
  }
}

TEST_P(ModelTest, LogitsDoNotDependOnThreads) {
  Harness one(GetParam(), best_table(), 1);
  const auto ids = prompt(130, one.vocab(), 8);
  const std::vector<float> expected = one.score(ids, 64);
  for (const int threads : {2, 3, 5}) {
    Harness many(GetParam(), best_table(), threads);
    EXPECT_TRUE(same_bits(many.score(ids, 64), expected)) << threads << " threads";
  }
}

TEST_P(ModelTest, LogitsDoNotDependOnTheBatch) {
  Harness model(GetParam(), best_table(), 2);
  const auto a = prompt(90, model.vocab(), 1);
  const auto b = prompt(40, model.vocab(), 2);
  const std::vector<float> alone_a = model.score(a, a.size());
  const std::vector<float> alone_b = model.score(b, b.size());
  model.reset();
  const auto cut = [](const std::vector<std::int32_t>& ids, long from, long to) {
    return std::vector<std::int32_t>(ids.begin() + from, ids.begin() + to);
  };
  // Both sequences in other slots, sharing steps with each other and with a third one.
  std::vector<float> got_a;
  std::vector<float> got_b;
  const auto noise = prompt(200, model.vocab(), 3);
  const auto vocab = static_cast<long>(model.vocab());
  const auto keep = [&](std::vector<float>& to, const std::vector<float>& from, long row, long n) {
    to.insert(to.end(), from.begin() + row * vocab, from.begin() + (row + n) * vocab);
  };
  const std::vector<float> first =
      model.step({{2, 0, cut(noise, 0, 50)}, {3, 0, cut(a, 0, 33)}, {1, 0, cut(b, 0, 1)}});
  keep(got_a, first, 50, 33);
  keep(got_b, first, 83, 1);
  const std::vector<float> second =
      model.step({{1, 1, cut(b, 1, 40)}, {3, 33, cut(a, 33, 90)}, {2, 50, cut(noise, 50, 51)}});
  keep(got_b, second, 0, 39);
  keep(got_a, second, 39, 57);
  EXPECT_TRUE(same_bits(got_a, alone_a));
  EXPECT_TRUE(same_bits(got_b, alone_b));
}

// Rows handed in for placeholders count as if their tokens had been there.
TEST_P(ModelTest, EmbeddingRowsReplaceThoseOfTheirTokens) {
  Harness model(GetParam(), best_table(), 2);
  const auto a = prompt(90, model.vocab(), 1);
  const auto b = prompt(40, model.vocab(), 2);
  const std::vector<float> alone_a = model.score(a, a.size());
  const std::vector<float> alone_b = model.score(b, b.size());
  const auto with_rows = [&](const std::vector<std::int32_t>& ids, std::int64_t slot, long from,
                             long to, long begin, long end) {
    Harness::Part part{slot, from, {ids.begin() + from, ids.begin() + to}};
    part.pictures = {
        {begin, model.embeddings_of(std::span(part.ids).subspan(
                    static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)))}};
    std::fill(part.ids.begin() + begin, part.ids.begin() + end, 0);
    return part;
  };
  model.reset();  // two sequences in one step; a's rows run over the end of it
  const std::vector<float> first =
      model.step({with_rows(a, 1, 0, 50, 20, 50), with_rows(b, 2, 0, 40, 0, 33)});
  const std::vector<float> second = model.step({with_rows(a, 1, 50, 90, 0, 30)});
  const auto rows = [&](const std::vector<float>& logits, long begin, long end) {
    return std::vector<float>(logits.begin() + begin * model.vocab(),
                              logits.begin() + end * model.vocab());
  };
  EXPECT_TRUE(same_bits(rows(first, 0, 50), rows(alone_a, 0, 50)));
  EXPECT_TRUE(same_bits(rows(second, 0, 40), rows(alone_a, 50, 90)));
  EXPECT_TRUE(same_bits(rows(first, 50, 90), alone_b));
}

// A checkpoint is the state that a call ending there leaves behind, whatever the call was cut into.
TEST_P(ModelTest, ACheckpointIsTheStateAtItsPosition) {
  Harness harness(GetParam(), best_table(), 2);
  const std::vector<std::int32_t> ids = prompt(200, harness.vocab(), 9);
  const auto part = [&](std::int64_t slot, std::int64_t begin, std::int64_t end,
                        std::vector<StateCheckpoint> checkpoints) {
    return Harness::Part{slot, begin, {ids.begin() + begin, ids.begin() + end}, checkpoints};
  };
  for (const std::int64_t cut : {1, 63, 64, 65, 127, 128, 130}) {
    harness.reset();
    for (const std::int64_t position : {64, 128, 192}) {  // slot 1: ends exactly there
      harness.step({part(1, position - 64, position, {})});
      std::vector<Harness::Part> parts{part(0, 0, cut, {}), part(0, cut, 200, {})};
      if (position <= cut) {
        parts[0].checkpoints = {{.position = position, .state_slot = 2}};
      } else {
        parts[1].checkpoints = {{.position = position, .state_slot = 2}};
      }
      harness.clear(0);
      harness.step({parts[0]});
      harness.step({parts[1]});
      EXPECT_TRUE(std::ranges::equal(harness.state(2), harness.state(1)))
          << "cut " << cut << " position " << position;
    }
  }
  // Several in one call.
  harness.reset();
  harness.step({part(1, 0, 64, {})});
  harness.step(
      {part(0, 0, 200, {{.position = 64, .state_slot = 2}, {.position = 128, .state_slot = 3}})});
  EXPECT_TRUE(std::ranges::equal(harness.state(2), harness.state(1)));
  harness.step({part(1, 64, 128, {})});
  EXPECT_TRUE(std::ranges::equal(harness.state(3), harness.state(1)));
}

TEST_P(ModelTest, LogitsDoNotDependOnTheInstructionSet) {
  const CpuFeatures cpu = detect_cpu_features();
  const auto ids = prompt(100, Harness(GetParam(), best_table(), 1).vocab(), 9);
  const std::vector<float> expected = Harness(GetParam(), best_table(), 2).score(ids, 100);
  for (const kernels::KernelTable* table : kernels::supported_tables(cpu)) {
    EXPECT_TRUE(same_bits(Harness(GetParam(), *table, 2).score(ids, 41), expected)) << table->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, ModelTest, testing::Values("tiny27", "tiny08", "tiny_odd"),
                         [](const auto& test) { return test.param; });

class GoldenTest : public testing::TestWithParam<std::string> {};

// Logits of the long prompt of an oracle golden (fp64 arithmetic, stored as fp32).
TEST_P(GoldenTest, LogitsMatchTheOracle) {
  const std::string directory = kGoldens + GetParam();
  const MappedFile file = unwrap(MappedFile::open(directory + "/golden.safetensors"));
  const TensorMap tensors = unwrap(parse_safetensors(file.bytes(), "golden"));
  const std::string json = unwrap(read_text_file(directory + "/golden.json", 1 << 20));
  // "long": {"prompt": [ids]} - read without a JSON library, which this layer does not link.
  std::vector<std::int32_t> ids;
  std::size_t at = json.find("\"prompt\"", json.find("\"long\""));
  at = json.find('[', at);
  const std::size_t end = json.find(']', at);
  while (at < end) {
    char* rest = nullptr;
    ids.push_back(static_cast<std::int32_t>(std::strtol(json.c_str() + at + 1, &rest, 10)));
    at = static_cast<std::size_t>(rest - json.c_str());
    at = json.find_first_of(",]", at);
  }
  const TensorView& expected = tensors.at("long.logits");
  Harness model(GetParam(), best_table(), 2);
  ASSERT_EQ(expected.shape, (Shape{static_cast<std::int64_t>(ids.size()), model.vocab()}));
  const std::vector<float> logits = model.score(ids, 64);
  double worst = 0.0;
  double square = 0.0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    float want = 0.0F;
    std::memcpy(&want, expected.bytes.data() + 4 * i, 4);
    const double difference = std::fabs(static_cast<double>(logits[i]) - static_cast<double>(want));
    worst = std::max(worst, difference);
    square += difference * difference;
  }
  const double rms = std::sqrt(square / static_cast<double>(logits.size()));
  RecordProperty("max", std::to_string(worst));
  RecordProperty("rms", std::to_string(rms));
  EXPECT_LT(rms, 0.1) << "max " << worst;
  EXPECT_LT(worst, 1.0) << "rms " << rms;
  printf("%s: logits max %.4f rms %.5f\n", GetParam().c_str(), worst, rms);
}

INSTANTIATE_TEST_SUITE_P(Goldens, GoldenTest, testing::Values("tiny27", "tiny08", "tiny_odd"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sluice
