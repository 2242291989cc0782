// The whole text model against the NumPy oracle's goldens, and against itself: the logits of a row
// must not depend on step sizes, threads, batch mix or instruction set.
#include "model/qwen3_5.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/select.h"
#include "platform/aligned_buffer.h"
#include "platform/thread_pool.h"
#include "weights/tensor_registry.h"

namespace sluice {
namespace {

const std::string kGoldens = SLUICE_SOURCE_DIR "/tests/goldens/";

template <typename T>
T unwrap(Result<T> result) {
  if (!result) {
    throw std::runtime_error(result.error().message);
  }
  return std::move(result).value();
}

// A model and cache memory for a few sequences of up to kContext tokens.
class Harness {
 public:
  static constexpr std::int64_t kContext = 512;
  static constexpr std::int64_t kSequences = 4;

  Harness(const std::string& name, const kernels::KernelTable& table, int threads)
      : pool_(threads),
        config_(unwrap(load_model_config(kGoldens + name))),
        checkpoint_(unwrap(Checkpoint::open(kGoldens + name))),
        model_(unwrap(Qwen3_5::load(config_, checkpoint_, table, pool_,
                                    {.step_tokens_max = kContext, .step_logit_rows_max = kContext},
                                    {}))),
        kv_(unwrap(
            AlignedBuffer::allocate(static_cast<std::size_t>(blocks_per_sequence() * kSequences) *
                                    model_->cache_layout().kv_block_bytes))),
        state_(unwrap(AlignedBuffer::allocate(static_cast<std::size_t>(kSequences) *
                                              model_->cache_layout().state_slot_bytes))) {}

  static std::int64_t blocks_per_sequence() { return kContext / kKvBlockTokens; }
  std::int64_t vocab() const { return config_.vocab_size; }

  void reset() {
    std::memset(kv_.data(), 0, kv_.size());
    std::memset(state_.data(), 0, state_.size());
  }

  void clear(std::int64_t slot) {
    const std::size_t bytes = model_->cache_layout().state_slot_bytes;
    std::memset(state_.data() + static_cast<std::size_t>(slot) * bytes, 0, bytes);
    // Its KV blocks hold the same tokens as before: writing them again changes nothing.
  }

  struct Part {
    std::int64_t slot;
    std::int64_t position;
    std::vector<std::int32_t> ids;
    std::vector<StateCheckpoint> checkpoints = {};
    std::int64_t embeddings_begin = 0;  // index in ids of the first row that embeddings replace
    std::vector<float> embeddings = {};
  };

  std::span<const std::byte> state(std::int64_t slot) const {
    const std::size_t bytes = model_->cache_layout().state_slot_bytes;
    return {state_.data() + static_cast<std::size_t>(slot) * bytes, bytes};
  }

  // One forward over the parts; logits of every row.
  std::vector<float> step(const std::vector<Part>& parts) {
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> positions;
    std::vector<std::int32_t> rows;
    std::vector<std::vector<std::int32_t>> tables;
    std::vector<SequenceSlice> slices;
    std::vector<EmbeddingRows> embeddings;
    for (const Part& part : parts) {
      std::vector<std::int32_t> table;
      for (std::int64_t b = 0; b < blocks_per_sequence(); ++b) {  // interleave the sequences
        table.push_back(static_cast<std::int32_t>(b * kSequences + part.slot));
      }
      tables.push_back(table);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      slices.push_back({.position = part.position,
                        .token_begin = static_cast<std::int64_t>(ids.size()),
                        .token_count = static_cast<std::int64_t>(part.ids.size()),
                        .block_table = tables[i],
                        .state_slot = static_cast<std::int32_t>(part.slot),
                        .checkpoints = part.checkpoints});
      if (!part.embeddings.empty()) {
        embeddings.push_back(
            {.token_begin = static_cast<std::int64_t>(ids.size()) + part.embeddings_begin,
             .row_count = std::ssize(part.embeddings) / config_.hidden_size,
             .rows = part.embeddings.data()});
      }
      for (std::size_t t = 0; t < part.ids.size(); ++t) {
        rows.push_back(static_cast<std::int32_t>(ids.size()));
        ids.push_back(part.ids[t]);
        positions.push_back(static_cast<std::int32_t>(part.position + static_cast<long>(t)));
      }
    }
    std::vector<std::int32_t> rope;
    for (int axis = 0; axis < 3; ++axis) {
      rope.insert(rope.end(), positions.begin(), positions.end());
    }
    std::vector<float> logits(ids.size() * static_cast<std::size_t>(vocab()));
    model_->forward({.token_ids = ids,
                     .rope_positions = rope,
                     .sequences = slices,
                     .logit_rows = rows,
                     .embeddings = embeddings},
                    {.kv_blocks = kv_.data(), .state_slots = state_.data()}, logits);
    return logits;
  }

  // Rows of the embedding table, as an encoder would hand them in.
  std::vector<float> embeddings_of(std::span<const std::int32_t> ids) const {
    const std::string name = unwrap(text_prefix(checkpoint_)) + "embed_tokens.weight";
    std::vector<bf16_t> row(static_cast<std::size_t>(config_.hidden_size));
    std::vector<float> rows;
    for (const std::int32_t id : ids) {
      EXPECT_TRUE(read_matrix_rows_bf16(checkpoint_, name, id, 1, row));
      std::ranges::transform(row, std::back_inserter(rows), bf16_to_float);
    }
    return rows;
  }

  // All logits of a prompt in slot 0, cut into steps of `step_tokens`.
  std::vector<float> score(const std::vector<std::int32_t>& ids, std::size_t step_tokens) {
    reset();
    std::vector<float> all;
    for (std::size_t at = 0; at < ids.size(); at += step_tokens) {
      const std::size_t end = std::min(ids.size(), at + step_tokens);
      const std::vector<float> part =
          step({{0,
                 static_cast<std::int64_t>(at),
                 {ids.begin() + static_cast<long>(at), ids.begin() + static_cast<long>(end)}}});
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

 private:
  ThreadPool pool_;
  ModelConfig config_;
  Checkpoint checkpoint_;
  std::unique_ptr<Qwen3_5> model_;
  AlignedBuffer kv_;
  AlignedBuffer state_;
};

// A fixed prompt of pseudo-random ids.
std::vector<std::int32_t> prompt(std::size_t length, std::int64_t vocab, std::uint32_t seed) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < length; ++i) {
    seed = seed * 1664525U + 1013904223U;
    ids.push_back(static_cast<std::int32_t>((seed >> 8) % static_cast<std::uint32_t>(vocab)));
  }
  return ids;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

const kernels::KernelTable& best_table() {
  static const CpuFeatures cpu = detect_cpu_features();
  return *unwrap(kernels::select_kernels(cpu, ""));
}

class ModelTest : public testing::TestWithParam<std::string> {};

TEST_P(ModelTest, LogitsDoNotDependOnStepSize) {
  Harness model(GetParam(), best_table(), 1);
  const auto ids = prompt(300, model.vocab(), 7);
  const std::vector<float> whole = model.score(ids, ids.size());
  for (const std::size_t step : {1, 7, 31, 32, 33, 63, 64, 65, 128, 150}) {
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
    part.embeddings_begin = begin;
    part.embeddings = model.embeddings_of(std::span(part.ids).subspan(
        static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
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
