#include "engine/picture_encoder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

// Whether its rows are needed and not here.
bool is_missing(const SequencePicture& picture, const Sequence& sequence) {
  return picture.end() > sequence.computed_tokens && !picture.rows;
}

const SequencePicture* first_missing(const Sequence& sequence) {
  const auto missing = std::ranges::find_if(sequence.pictures, [&](const SequencePicture& picture) {
    return is_missing(picture, sequence);
  });
  return missing != sequence.pictures.end() ? &*missing : nullptr;
}

// What it waits with; true when it had any.
bool give_back_rows(Sequence& sequence) {
  bool any = false;
  for (SequencePicture& picture : sequence.pictures) {
    any |= picture.rows != nullptr;
    picture.rows.reset();
  }
  return any;
}

bool needs(const Sequence& sequence, TokenId name) {
  return std::ranges::any_of(sequence.pictures, [&](const SequencePicture& picture) {
    return picture.name == name && is_missing(picture, sequence);
  });
}

}  // namespace

void PictureEncoder::name_pictures(Sequence& sequence) {
  for (SequencePicture& picture : sequence.pictures) {
    SLUICE_CHECK(encoder_ != nullptr);
    picture.name = shelf_.name_of(picture.input->digest);
    const std::int64_t end = std::min(picture.end(), std::ssize(sequence.tokens));
    std::fill(sequence.tokens.begin() + picture.position, sequence.tokens.begin() + end,
              picture.name);
  }
}

bool PictureEncoder::gather(Sequence& sequence) {
  for (SequencePicture& picture : sequence.pictures) {
    if (is_missing(picture, sequence)) {
      picture.rows = shelf_.find(picture.name);
      reused_count_ += picture.rows ? 1 : 0;
    }
  }
  return first_missing(sequence) == nullptr;
}

Result<bool> PictureEncoder::advance(std::span<Sequence* const> waiting, double flops_max) {
  if (std::ranges::none_of(
          waiting, [this](const Sequence* sequence) { return needs(*sequence, current_); })) {
    stop_encoding();
  }
  if (waiting.empty()) {
    return false;
  }
  if (!encoding_) {
    const SequencePicture* picture = first_missing(*waiting.front());
    SLUICE_CHECK(picture != nullptr);
    const std::size_t bytes = bytes_of(*picture->input);
    if (!make_room(bytes, waiting)) {
      return false;
    }
    encoding_ = SLUICE_TRY(encoder_->start(picture->input));
    encoding_bytes_ = bytes;
    current_ = picture->name;
  }
  if (!encoding_->advance(flops_max)) {
    return false;
  }
  const std::shared_ptr<const PictureRows> rows = counted(encoding_->take_rows());
  const TokenId name = current_;
  stop_encoding();
  ++encoded_count_;
  for (Sequence* sequence : waiting) {
    for (SequencePicture& picture : sequence->pictures) {
      if (picture.name == name) {
        picture.rows = rows;
      }
    }
  }
  shelf_.keep(name, rows);
  return true;
}

// Of rows that are only kept first, then of those that others wait with, the last in order first.
bool PictureEncoder::make_room(std::size_t bytes, std::span<Sequence* const> waiting) {
  while (rows_bytes_in_all() + bytes > bytes_max_) {
    if (shelf_.drop_unused_rows()) {
      continue;
    }
    const auto holder = std::find_if(waiting.rbegin(), waiting.rend() - 1,
                                     [](Sequence* sequence) { return give_back_rows(*sequence); });
    if (holder == waiting.rend() - 1) {
      return false;
    }
  }
  return true;
}

std::size_t PictureEncoder::bytes_of(const VisionInput& input) const {
  return static_cast<std::size_t>(input.token_count() * encoder_->row_size()) * sizeof(float);
}

std::shared_ptr<const PictureRows> PictureEncoder::counted(PictureRows rows) const {
  const std::size_t bytes = rows.size() * sizeof(float);
  *rows_bytes_ += bytes;
  return std::shared_ptr<const PictureRows>(new PictureRows(std::move(rows)),
                                            [total = rows_bytes_, bytes](const PictureRows* gone) {
                                              delete gone;
                                              *total -= bytes;
                                            });
}

void PictureEncoder::stop_encoding() {
  encoding_.reset();
  encoding_bytes_ = 0;
  current_ = 0;
}

void PictureEncoder::check_invariants() const {
  shelf_.check_invariants();
  SLUICE_CHECK(shelf_.rows_bytes() <= *rows_bytes_);
  SLUICE_CHECK((encoding_bytes_ > 0) == (encoding_ != nullptr));
  SLUICE_CHECK(rows_bytes_in_all() <= bytes_max_);
}

}  // namespace sluice
