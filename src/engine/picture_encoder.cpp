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
    std::fill_n(sequence.tokens.begin() + picture.position, picture.input->token_count(),
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
    encoding_.reset();  // it may hold much memory
  }
  if (waiting.empty()) {
    return false;
  }
  if (!encoding_) {
    const SequencePicture* picture = first_missing(*waiting.front());
    SLUICE_CHECK(picture != nullptr);
    encoding_ = SLUICE_TRY(encoder_->start(picture->input));
    current_ = picture->name;
  }
  if (!encoding_->advance(flops_max)) {
    return false;
  }
  const auto rows = std::make_shared<const PictureRows>(encoding_->take_rows());
  encoding_.reset();
  ++encoded_count_;
  for (Sequence* sequence : waiting) {
    for (SequencePicture& picture : sequence->pictures) {
      if (picture.name == current_) {
        picture.rows = rows;
      }
    }
  }
  shelf_.keep(std::exchange(current_, 0), rows);
  return true;
}

}  // namespace sluice
