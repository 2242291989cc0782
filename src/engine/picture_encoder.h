// Encodes the pictures that sequences wait for, a piece per step, so that running streams are not
// held up by a large one. One picture at a time: it is finished before the next begins, unless
// nobody waits for it any more.
//
// Thread rule: one owner (the engine thread).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/picture_shelf.h"
#include "engine/sequence.h"
#include "model/vision_encoder.h"

namespace sluice {

class PictureEncoder {
 public:
  // encoder: null for a model without one (then no sequence has pictures); must outlive this.
  PictureEncoder(VisionEncoder* encoder, std::size_t rows_bytes_max)
      : encoder_(encoder), shelf_(rows_bytes_max) {}

  // Puts the pictures' names in place of their placeholders.
  void name_pictures(Sequence& sequence);

  // Gives the sequence what is known of the rows it still needs; true when these are all.
  bool gather(Sequence& sequence);

  // One piece of work, of about flops_max operations, for the first of `waiting` (each lacks rows).
  // True when a picture was finished by it: gather() may succeed now. Error resource_exhausted: no
  // memory for a picture of the first one.
  Result<bool> advance(std::span<Sequence* const> waiting, double flops_max);

  TokenNames& names() { return shelf_; }
  void forget_rows() { shelf_.forget_rows(); }
  std::int64_t encoded_count() const { return encoded_count_; }
  std::int64_t reused_count() const { return reused_count_; }
  std::size_t rows_bytes() const { return shelf_.rows_bytes(); }

  void check_invariants() const { shelf_.check_invariants(); }

 private:
  VisionEncoder* encoder_;
  PictureShelf shelf_;
  TokenId current_ = 0;  // name of the picture being encoded; 0: none
  std::unique_ptr<VisionEncoding> encoding_;
  std::int64_t encoded_count_ = 0;
  std::int64_t reused_count_ = 0;  // rows that somebody needed and that were known
};

}  // namespace sluice
