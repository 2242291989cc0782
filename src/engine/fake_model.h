// For tests: a model without weights whose logits betray every mistake of the engine.
//
// Each token leaves a cell in its KV block and is folded into a hash in its state slot. Logits are
// a function of all cells and of the hash, so a wrong slot, block table, position, batch offset, a
// token computed twice or memory that was not zeroed gives other tokens than fake_logits() does.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/check.h"
#include "engine/engine.h"
#include "engine/fake_vision_encoder.h"
#include "model/mrope.h"

namespace sluice {

inline constexpr TokenId kFakeVocabSize = 61;
inline constexpr TokenId kNanToken = 60;  // its row gets a NaN among the logits

inline std::uint64_t fake_cell(TokenId token, std::uint64_t position) {
  return fake_mix(static_cast<std::uint64_t>(token) + 7, position);
}

// Logits from the fold of all cells and the hash of the state.
inline void fake_logits_of(std::uint64_t cells, std::uint64_t state, TokenId last,
                           std::span<float> logits) {
  const std::uint64_t history = fake_mix(cells, state);
  for (std::size_t id = 0; id < logits.size(); ++id) {
    logits[id] = static_cast<float>(fake_mix(history, id) % 4096) / 512.0F;
  }
  if (last == kNanToken) {
    logits[3] = std::nanf("");
  }
}

// Leaves the hash alone where all axes are the position, as in text.
inline void fake_fold_axes(std::uint64_t& state, std::int64_t position,
                           const std::array<std::int32_t, 3>& axes) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (axes[axis] != position) {
      state = fake_mix(state, static_cast<std::uint64_t>(axes[axis]) * 3 + axis);
    }
  }
}

// The logits after a history, without any cache.
inline std::vector<float> fake_logits(std::span<const TokenId> history,
                                      const MropePositions& positions = {}) {
  std::uint64_t cells = 0;
  std::uint64_t state = 0;
  for (std::size_t position = 0; position < history.size(); ++position) {
    cells = fake_mix(cells, fake_cell(history[position], position));
    const auto index = static_cast<std::int64_t>(position);
    fake_fold_axes(state, index, positions.at(index));
    state = fake_mix(state, static_cast<std::uint64_t>(history[position]));
  }
  std::vector<float> logits(kFakeVocabSize);
  fake_logits_of(cells, state, history.back(), logits);
  return logits;
}

class FakeModel final : public Qwen3_5 {
 public:
  struct State {
    std::uint64_t hash;
    std::int64_t count;
  };

  explicit FakeModel(const ModelOptions& options = {}, std::size_t slot_bytes = sizeof(State))
      : options_(options) {
    config_.vocab_size = kFakeVocabSize;
    layout_.kv_block_bytes = kKvBlockTokens * sizeof(std::uint64_t);
    layout_.state_slot_bytes = slot_bytes;
    layout_.picture_row_bytes = 2 * sizeof(float);
  }

  // Called at the start of every forward(), on the engine's thread.
  std::function<void(const ForwardBatch&)> on_forward;
  // Mistakes a model might make: a checkpoint that is not the state, logits that know the batch.
  std::function<void(State&)> on_checkpoint;
  std::function<bool(const ForwardBatch&)> bends_logits;

  FakeVisionEncoder encoder;
  VisionEncoder* vision() override { return options_.vision_patches_max > 0 ? &encoder : nullptr; }
  const ModelConfig& config() const override { return config_; }
  const CacheLayout& cache_layout() const override { return layout_; }
  const ModelOptions& options() const override { return options_; }
  std::size_t weight_bytes() const override { return 0; }
  std::size_t workspace_bytes() const override { return 0; }

  std::int64_t rows = 0;        // computed in all
  std::int64_t logit_rows = 0;  // asked for in all

  void forward(const ForwardBatch& batch, const CacheMemory& cache,
               std::span<float> logits) override {
    if (on_forward) {
      on_forward(batch);
    }
    SLUICE_CHECK(!batch.token_ids.empty());
    SLUICE_CHECK(std::ssize(batch.token_ids) <= options_.step_tokens_max);
    SLUICE_CHECK(batch.rope_positions.size() == 3 * batch.token_ids.size());
    SLUICE_CHECK(std::ssize(batch.logit_rows) <= options_.step_logit_rows_max);
    SLUICE_CHECK(logits.size() == batch.logit_rows.size() * kFakeVocabSize);
    rows += std::ssize(batch.token_ids);
    logit_rows += std::ssize(batch.logit_rows);
    std::int64_t row = 0;
    std::size_t next_logits = 0;
    for (const SequenceSlice& slice : batch.sequences) {
      SLUICE_CHECK(slice.token_begin == row);
      SLUICE_CHECK(slice.token_count >= 1);
      for (std::int64_t i = 0; i < slice.token_count; ++i, ++row) {
        compute_row(batch, cache, slice, row);
        for (const StateCheckpoint& checkpoint : slice.checkpoints) {
          if (checkpoint.position == slice.position + i + 1) {
            State& kept = state_of(cache, checkpoint.state_slot);
            kept = state_of(cache, slice.state_slot);
            if (on_checkpoint) {
              on_checkpoint(kept);
            }
          }
        }
        if (next_logits < batch.logit_rows.size() && batch.logit_rows[next_logits] == row) {
          const std::int64_t position = slice.position + i;
          fake_logits_of(fold_cells(cache, slice, position), state_of(cache, slice.state_slot).hash,
                         batch.token_ids[static_cast<std::size_t>(row)],
                         logits.subspan(next_logits * kFakeVocabSize, kFakeVocabSize));
          ++next_logits;
        }
      }
    }
    SLUICE_CHECK(row == std::ssize(batch.token_ids));
    SLUICE_CHECK(next_logits == batch.logit_rows.size());
    if (bends_logits && bends_logits(batch)) {
      std::ranges::for_each(logits, [](float& logit) { logit *= 1.001F; });
    }
  }

 private:
  State& state_of(const CacheMemory& cache, std::int64_t slot) const {
    const auto offset = static_cast<std::size_t>(slot) * layout_.state_slot_bytes;
    return *reinterpret_cast<State*>(cache.state_slots + offset);
  }

  std::uint64_t* cell_of(const CacheMemory& cache, const SequenceSlice& slice,
                         std::int64_t position) const {
    const auto block = slice.block_table[static_cast<std::size_t>(position / kKvBlockTokens)];
    return reinterpret_cast<std::uint64_t*>(cache.kv_blocks) + block * kKvBlockTokens +
           position % kKvBlockTokens;
  }

  static TokenId token_of(const ForwardBatch& batch, std::int64_t row) {
    for (const EmbeddingRows& given : batch.embeddings) {
      const std::int64_t index = row - given.token_begin;
      if (index >= 0 && index < given.row_count) {
        return fake_picture_token(given.rows[2 * index], given.rows[2 * index + 1]);
      }
    }
    return batch.token_ids[static_cast<std::size_t>(row)];
  }

  void compute_row(const ForwardBatch& batch, const CacheMemory& cache, const SequenceSlice& slice,
                   std::int64_t row) {
    const auto index = static_cast<std::size_t>(row);
    const std::int64_t position = slice.position + row - slice.token_begin;
    const TokenId token = token_of(batch, row);
    State& state = state_of(cache, slice.state_slot);
    std::uint64_t* cell = cell_of(cache, slice, position);
    const std::size_t stride = batch.token_ids.size();
    fake_fold_axes(state.hash, position,
                   {batch.rope_positions[index], batch.rope_positions[stride + index],
                    batch.rope_positions[2 * stride + index]});
    if (state.count != position) {  // a slot of someone else, not zeroed, or a token skipped
      state.hash ^= 0x2222;
    }
    *cell = *cell == 0 ? fake_cell(token, static_cast<std::uint64_t>(position)) : 0x3333;
    state.hash = fake_mix(state.hash, static_cast<std::uint64_t>(token));
    ++state.count;
  }

  std::uint64_t fold_cells(const CacheMemory& cache, const SequenceSlice& slice,
                           std::int64_t last) const {
    std::uint64_t cells = 0;
    for (std::int64_t position = 0; position <= last; ++position) {
      cells = fake_mix(cells, *cell_of(cache, slice, position));
    }
    return cells;
  }

  ModelOptions options_;
  ModelConfig config_;
  CacheLayout layout_;
};

}  // namespace sluice
