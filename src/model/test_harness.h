// A text model with cache memory for a few sequences, for the tests of model/: builds batches by
// hand and runs steps.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/select.h"
#include "model/mrope.h"
#include "model/qwen3_5.h"
#include "platform/aligned_buffer.h"
#include "platform/thread_pool.h"
#include "weights/tensor_registry.h"

namespace sluice {

inline const std::string kGoldens = SLUICE_SOURCE_DIR "/tests/goldens/";

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

  struct Picture {
    std::int64_t begin;  // index in Part::ids of the first row that it replaces
    std::vector<float> rows;
  };
  struct Part {
    std::int64_t slot;
    std::int64_t position;
    std::vector<std::int32_t> ids;
    std::vector<StateCheckpoint> checkpoints = {};
    std::vector<Picture> pictures = {};
    MropePositions positions = {};
  };

  std::span<const std::byte> state(std::int64_t slot) const {
    const std::size_t bytes = model_->cache_layout().state_slot_bytes;
    return {state_.data() + static_cast<std::size_t>(slot) * bytes, bytes};
  }

  // One forward over the parts; logits of every row.
  std::vector<float> step(const std::vector<Part>& parts) {
    std::vector<std::int32_t> ids;
    std::vector<std::array<std::int32_t, 3>> positions;
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
      for (const Picture& picture : part.pictures) {
        embeddings.push_back({.token_begin = std::ssize(ids) + picture.begin,
                              .row_count = std::ssize(picture.rows) / config_.hidden_size,
                              .rows = picture.rows.data()});
      }
      for (std::size_t t = 0; t < part.ids.size(); ++t) {
        rows.push_back(static_cast<std::int32_t>(ids.size()));
        ids.push_back(part.ids[t]);
        positions.push_back(part.positions.at(part.position + static_cast<std::int64_t>(t)));
      }
    }
    std::vector<std::int32_t> rope;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      for (const std::array<std::int32_t, 3>& position : positions) {
        rope.push_back(position[axis]);
      }
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

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline const kernels::KernelTable& best_table() {
  static const CpuFeatures cpu = detect_cpu_features();
  return *unwrap(kernels::select_kernels(cpu, ""));
}

}  // namespace sluice
