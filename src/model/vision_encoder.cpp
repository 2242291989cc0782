#include "model/vision_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "model/vision_block.h"
#include "model/vision_embedding.h"
#include "model/vision_grid.h"
#include "model/vision_merger.h"
#include "model/vision_piece.h"
#include "platform/aligned_buffer.h"
#include "weights/tensor_registry.h"

namespace sluice {
namespace {

// Patches of one piece: what the products take at best, and of large pictures as many as keep the
// attention of a piece to that of kPieceRowsMax rows in 4 megapixels, about 0.04 TFLOP for the
// largest released tower. Multiples of a block of patches.
constexpr std::int64_t kPieceRowsMax = 512;
constexpr std::int64_t kPieceRowsMin = 64;
constexpr std::int64_t kPiecePairsMax = kPieceRowsMax * 16384;

std::int64_t piece_rows(std::int64_t patches) {
  std::int64_t rows = kPieceRowsMax;
  while (rows > kPieceRowsMin && rows * patches > kPiecePairsMax) {
    rows /= 2;
  }
  return rows;
}

struct Weights {
  VisionEmbedding embedding;
  std::vector<VisionBlock> blocks;
  VisionMerger merger;
  std::size_t bytes = 0;
};

// The parts of the work, in order; those from store_keys to mlp come once for each block.
enum class Stage { embed, store_keys, attend, mlp, merge, finished };

// Floating-point operations of `rows` patches in one stage, a multiply-add as two.
double stage_flops(const VisionConfig& config, Stage stage, std::int64_t patches,
                   std::int64_t rows) {
  const auto hidden = static_cast<double>(config.hidden_size);
  const auto merged = hidden * kMergedPatches;
  double per_row = 0.0;
  switch (stage) {
    case Stage::embed:
      per_row = 2.0 * hidden *
                static_cast<double>(config.in_channels * config.temporal_patch_size *
                                    config.patch_size * config.patch_size);
      break;
    case Stage::store_keys:
      per_row = 4.0 * hidden * hidden;
      break;
    case Stage::attend:
      per_row = 4.0 * hidden * hidden + 4.0 * hidden * static_cast<double>(patches);
      break;
    case Stage::mlp:
      per_row = 4.0 * hidden * static_cast<double>(config.intermediate_size);
      break;
    case Stage::merge:
      per_row = 2.0 * merged * (merged + static_cast<double>(config.out_hidden_size)) /
                static_cast<double>(kMergedPatches);
      break;
    case Stage::finished:
      break;
  }
  return per_row * static_cast<double>(rows);
}

Result<void> check_config(const VisionConfig& config) {
  const auto require = [](std::string_view field, std::int64_t value,
                          std::int64_t want) -> Result<void> {
    if (value == want) {
      return {};
    }
    return fail(ErrorCode::unsupported,
                fmt::format("vision_config.{} is {}, want {}", field, value, want),
                std::string(field));
  };
  SLUICE_TRY(require("patch_size", config.patch_size, kVisionPatchSize));
  SLUICE_TRY(require("spatial_merge_size", config.spatial_merge_size, kVisionMergeSize));
  SLUICE_TRY(require("temporal_patch_size", config.temporal_patch_size, 2));
  const std::int64_t head_dim = config.hidden_size / config.num_heads;
  if (head_dim > kernels::kFullAttentionHeadDimMax) {
    return fail(ErrorCode::unsupported,
                fmt::format("vision_config.hidden_size / num_heads is {}, want at most {}",
                            head_dim, kernels::kFullAttentionHeadDimMax),
                "hidden_size");
  }
  return {};
}

Result<Weights> load_weights(const VisionConfig& config, const std::string& prefix,
                             const Checkpoint& checkpoint, WeightLoader& loader) {
  Weights weights;
  weights.embedding = SLUICE_TRY(VisionEmbedding::load(config, prefix, checkpoint, loader));
  for (std::int64_t i = 0; i < config.depth; ++i) {
    const std::string block = prefix + "blocks." + std::to_string(i) + ".";
    weights.blocks.push_back(SLUICE_TRY(VisionBlock::load(config, block, loader)));
  }
  weights.merger = SLUICE_TRY(VisionMerger::load(prefix + "merger.", loader));
  weights.bytes = loader.packed_bytes() + weights.embedding.table_bytes();
  return weights;
}

// The part of the encoder's workspace that an encoding uses, at its beginning.
struct Activations {
  Activations(const VisionConfig& config, const ops::FullAttentionShape& shape, RegionPlan& plan)
      : x(plan.take<float>(shape.keys * config.hidden_size)),
        kv(plan.take<bf16_t>(shape.kv_elements())) {}

  float* x;    // residual stream [patches][hidden_size]
  bf16_t* kv;  // keys and values of the block at hand; zero at first
};

ops::FullAttentionShape shape_of(const VisionConfig& config, std::int64_t patches) {
  return {.heads = config.num_heads,
          .head_dim = config.hidden_size / config.num_heads,
          .keys = patches};
}

std::size_t activation_bytes(const VisionConfig& config, std::int64_t patches) {
  RegionPlan plan;
  const Activations sizing(config, shape_of(config, patches), plan);
  return plan.used();
}

// What the encodings use in turn: zeros whenever nobody does.
struct Workspace {
  AlignedBuffer memory;
  bool in_use = false;
};

// Gives the pages back when the encoding is gone: a server that sees few pictures has the memory
// for its files.
class WorkspaceLease {
 public:
  WorkspaceLease(Workspace& workspace, std::size_t bytes) : workspace_(workspace), bytes_(bytes) {
    SLUICE_CHECK(!std::exchange(workspace_.in_use, true));
  }
  ~WorkspaceLease() {
    workspace_.memory.discard(0, bytes_);
    workspace_.in_use = false;
  }
  WorkspaceLease(const WorkspaceLease&) = delete;
  WorkspaceLease& operator=(const WorkspaceLease&) = delete;

  std::byte* data() const { return workspace_.memory.data(); }

 private:
  Workspace& workspace_;
  std::size_t bytes_;
};

class Encoding final : public VisionEncoding {
 public:
  Encoding(const VisionConfig& config, const Weights& weights, VisionContext& context,
           std::shared_ptr<const VisionInput> input, Workspace& workspace)
      : config_(config),
        weights_(weights),
        context_(context),
        input_(std::move(input)),
        grid_(config, input_->grid_rows, input_->grid_columns),
        shape_(shape_of(config, grid_.patches())),
        lease_(workspace, activation_bytes(config, shape_.keys)),
        activations_(place(lease_, config, shape_)),
        rows_(static_cast<std::size_t>(input_->token_count() * config.out_hidden_size)) {}

  bool advance(double flops_max) override {
    double spent = 0.0;
    while (stage_ != Stage::finished) {
      const std::int64_t rows = std::min(piece_rows(shape_.keys), shape_.keys - begin_);
      const double flops = stage_flops(config_, stage_, shape_.keys, rows);
      if (spent > 0.0 && spent + flops > flops_max) {
        break;
      }
      compute(rows);
      spent += flops;
      begin_ += rows;
      if (begin_ == shape_.keys) {
        begin_ = 0;
        next_stage();
      }
    }
    return stage_ == Stage::finished;
  }

  std::vector<float> take_rows() override {
    SLUICE_CHECK(stage_ == Stage::finished);
    SLUICE_CHECK(!rows_.empty());
    return std::exchange(rows_, {});
  }

 private:
  static Activations place(const WorkspaceLease& lease, const VisionConfig& config,
                           const ops::FullAttentionShape& shape) {
    RegionPlan plan(lease.data());
    return {config, shape, plan};
  }

  void compute(std::int64_t rows) {
    const VisionPiece piece{
        .begin = begin_, .rows = rows, .x = activations_.x + begin_ * config_.hidden_size};
    const VisionBlock& block = weights_.blocks[block_];
    switch (stage_) {
      case Stage::embed:
        weights_.embedding.forward(context_, *input_, grid_, piece);
        break;
      case Stage::store_keys:
        block.store_keys(context_, shape_, grid_, piece, activations_.kv);
        break;
      case Stage::attend:
        block.attend(context_, shape_, grid_, piece, activations_.kv);
        break;
      case Stage::mlp:
        block.mlp(context_, piece);
        break;
      case Stage::merge:
        weights_.merger.forward(context_, piece,
                                rows_.data() + begin_ / kMergedPatches * config_.out_hidden_size);
        break;
      case Stage::finished:
        break;
    }
  }

  void next_stage() {
    const bool block_ends = stage_ == Stage::mlp;
    if (block_ends && block_ + 1 < weights_.blocks.size()) {
      ++block_;
      stage_ = Stage::store_keys;
      return;
    }
    stage_ = static_cast<Stage>(static_cast<int>(stage_) + 1);
  }

  const VisionConfig& config_;
  const Weights& weights_;
  VisionContext& context_;
  std::shared_ptr<const VisionInput> input_;
  VisionGrid grid_;
  ops::FullAttentionShape shape_;
  WorkspaceLease lease_;
  Activations activations_;
  std::vector<float> rows_;

  Stage stage_ = Stage::embed;
  std::size_t block_ = 0;
  std::int64_t begin_ = 0;  // first patch that the stage has not seen
};

class Encoder final : public VisionEncoder {
 public:
  Encoder(const VisionConfig& config, Weights weights, const kernels::KernelTable& table,
          ThreadPool& pool, std::int64_t patches_max, AlignedBuffer scratch,
          AlignedBuffer activations)
      : config_(config),
        weights_(std::move(weights)),
        patches_max_(patches_max),
        scratch_(std::move(scratch)),
        workspace_{.memory = std::move(activations)},
        context_{.table = table, .pool = pool, .scratch = place(config_, scratch_)} {}

  std::int64_t row_size() const override { return config_.out_hidden_size; }
  std::int64_t patches_max() const override { return patches_max_; }
  std::size_t weight_bytes() const override { return weights_.bytes; }
  std::size_t workspace_bytes() const override {
    return scratch_.size() + workspace_.memory.size();
  }

  double flops(std::int64_t grid_rows, std::int64_t grid_columns) const override {
    const std::int64_t patches = grid_rows * grid_columns;
    const auto of = [&](Stage stage) { return stage_flops(config_, stage, patches, patches); };
    return of(Stage::embed) + of(Stage::merge) +
           static_cast<double>(config_.depth) *
               (of(Stage::store_keys) + of(Stage::attend) + of(Stage::mlp));
  }

  Result<std::unique_ptr<VisionEncoding>> start(std::shared_ptr<const VisionInput> input) override {
    const std::int64_t patches = input->grid_rows * input->grid_columns;
    SLUICE_CHECK(input->frame_count == 1 || input->frame_count == 2);
    SLUICE_CHECK(std::ssize(input->pixels) ==
                 input->frame_count * patches * kVisionPatchSize * kVisionPatchSize * 3);
    SLUICE_CHECK(patches <= patches_max_);
    try {
      return std::make_unique<Encoding>(config_, weights_, context_, std::move(input), workspace_);
    } catch (const std::bad_alloc&) {
      return fail(ErrorCode::resource_exhausted, "no memory left for the rows of a picture");
    }
  }

 private:
  static VisionScratch place(const VisionConfig& config, AlignedBuffer& memory) {
    RegionPlan plan(memory.data());
    return {config, kPieceRowsMax, plan};
  }

  VisionConfig config_;
  Weights weights_;
  std::int64_t patches_max_;
  AlignedBuffer scratch_;  // of a piece
  Workspace workspace_;    // of a picture
  VisionContext context_;
};

// Bytes of the packed form of every matrix of the tower.
std::size_t packed_bytes_expected(const ModelConfig& config, const std::string& text_prefix) {
  std::int64_t elements = 0;
  for (const TensorSpec& spec : list_tensors(config, text_prefix)) {
    if (spec.group == TensorGroup::vision && spec.role == TensorRole::matrix) {
      elements +=
          kernels::packed_elements(spec.shape[0], element_count(spec.shape) / spec.shape[0]);
    }
  }
  return static_cast<std::size_t>(elements) * sizeof(bf16_t);
}

}  // namespace

Result<std::unique_ptr<VisionEncoder>> VisionEncoder::load(
    const ModelConfig& config, const Checkpoint& checkpoint, const kernels::KernelTable& table,
    ThreadPool& pool, const VisionOptions& options, const LoadProgress& progress) {
  SLUICE_CHECK(options.patches_max >= kMergedPatches);
  if (!has_group(config, checkpoint, TensorGroup::vision)) {
    return fail(ErrorCode::not_found,
                fmt::format("{}: no vision tower", checkpoint.directory().string()),
                checkpoint.directory().string());
  }
  SLUICE_TRY(check_config(*config.vision));
  SLUICE_TRY(check_tensors(config, checkpoint));
  WeightLoader loader(checkpoint, WeightPreset::bf16, pool, progress,
                      packed_bytes_expected(config, SLUICE_TRY(text_prefix(checkpoint))));
  Weights weights =
      SLUICE_TRY(load_weights(*config.vision, std::string(kVisionPrefix), checkpoint, loader));
  RegionPlan sizing;
  const VisionScratch measured(*config.vision, kPieceRowsMax, sizing);
  AlignedBuffer scratch = SLUICE_TRY(AlignedBuffer::allocate(sizing.used()));
  AlignedBuffer activations =
      SLUICE_TRY(AlignedBuffer::allocate(activation_bytes(*config.vision, options.patches_max)));
  return std::make_unique<Encoder>(*config.vision, std::move(weights), table, pool,
                                   options.patches_max, std::move(scratch), std::move(activations));
}

}  // namespace sluice
