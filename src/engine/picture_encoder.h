// Encodes the pictures that sequences wait for, a piece per step, so that running streams are not
// held up by a large one. One picture at a time: it is finished before the next begins, unless
// nobody waits for it any more.
//
// The rows of all pictures, kept or held by sequences, stay within a limit that holds those of one
// whole context: where sequences would need more together, the first in order gets what it needs.
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

struct PictureRowsLimits {
  std::size_t kept_bytes_max = 0;  // for later requests
  std::size_t bytes_max = 0;       // in all, at least those of the pictures of any one sequence
};

class PictureEncoder {
 public:
  // encoder: null for a model without one (then no sequence has pictures); must outlive this.
  PictureEncoder(VisionEncoder* encoder, const PictureRowsLimits& limits)
      : encoder_(encoder), bytes_max_(limits.bytes_max), shelf_(limits.kept_bytes_max) {}

  // Puts the pictures' names in place of their placeholders.
  void name_pictures(Sequence& sequence);

  // Gives the sequence what is known of the rows it still needs; true when these are all.
  bool gather(Sequence& sequence);

  // One piece of work, of about flops_max operations, for the first of `waiting` (each lacks rows),
  // unless sequences that are being computed hold too many rows; these give them back by and by.
  // True when a picture was finished by it: gather() may succeed now. Error resource_exhausted: no
  // memory for a picture of the first one.
  Result<bool> advance(std::span<Sequence* const> waiting, double flops_max);

  TokenNames& names() { return shelf_; }
  void forget_rows() { shelf_.forget_rows(); }
  std::int64_t encoded_count() const { return encoded_count_; }
  std::int64_t reused_count() const { return reused_count_; }
  std::size_t rows_bytes() const { return shelf_.rows_bytes(); }  // kept
  std::size_t rows_bytes_in_all() const { return *rows_bytes_ + encoding_bytes_; }

  void check_invariants() const;

 private:
  bool make_room(std::size_t bytes, std::span<Sequence* const> waiting);
  std::size_t bytes_of(const VisionInput& input) const;
  // Rows that are counted until nobody has them.
  std::shared_ptr<const PictureRows> counted(PictureRows rows) const;
  void stop_encoding();

  VisionEncoder* encoder_;
  std::size_t bytes_max_;
  // Of rows that exist. Shared with them: sequences may outlive this.
  std::shared_ptr<std::size_t> rows_bytes_ = std::make_shared<std::size_t>(0);
  PictureShelf shelf_;
  TokenId current_ = 0;  // name of the picture being encoded; 0: none
  std::unique_ptr<VisionEncoding> encoding_;
  std::size_t encoding_bytes_ = 0;  // of its rows
  std::int64_t encoded_count_ = 0;
  std::int64_t reused_count_ = 0;  // rows that somebody needed and that were known
};

}  // namespace sluice
