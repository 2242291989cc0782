// From the one placeholder that the template writes for a picture or a video to as many as the
// model wants: one for each row of the vision encoder.
//
//   template   <|vision_start|><|image_pad|><|vision_end|>     <|vision_start|><|video_pad|>...
//   text       the same                                        <0.2 seconds><|vision_start|>
//                                                              <|video_pad|><|vision_end|>
//                                                              <1.2 seconds><|vision_start|>...
//   tokens     start, pad, pad, ..., pad, end                  the same for each of these
//
// The times of a video are text beside the user's text, so they are put in before the prompt is
// encoded; the placeholders are repeated after it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/chat/media_source.h"
#include "base/result.h"
#include "request/request.h"
#include "text/tokenizer.h"

namespace sluice {

// A picture, or two frames of a video: what has placeholders of its own.
struct PromptPicture {
  std::int64_t token_count = 0;
  std::string caption = {};  // text before it: when in its video it is; empty: none
};

struct PromptMedia {
  MediaKind kind = MediaKind::image;
  std::vector<PromptPicture> pictures;  // one of an image
};

// A prompt with one placeholder for each picture.
class VisionText {
 public:
  // `media` as the conversation shows them, at least one. Error invalid_argument when the template
  // does not show exactly these.
  static Result<VisionText> make(const PromptText& prompt, std::span<const PromptMedia> media);

  const PromptText& prompt() const { return prompt_; }

  // Where the byte `offset` of the prompt that was given is now.
  std::size_t moved(std::size_t offset) const;

 private:
  struct Change {
    std::size_t begin = 0;  // in the prompt that was given
    std::size_t end = 0;
    std::size_t size = 0;  // of what is there instead
  };

  PromptText prompt_;
  std::vector<Change> changes_;  // ascending
};

// The ids of the two placeholders.
struct PlaceholderIds {
  TokenId image = 0;
  TokenId video = 0;

  bool contains(TokenId id) const { return id == image || id == video; }
};

// A picture's placeholders: which token it was, and where they are now.
struct PlacedPicture {
  std::int64_t index = 0;  // in the tokens before the repetition
  std::int64_t position = 0;
  std::int64_t token_count = 0;
};

struct VisionTokens {
  std::vector<TokenId> token_ids;
  std::vector<PlacedPicture> pictures;  // of all media, in their order

  // Where a position of the tokens before the repetition is now.
  std::int64_t moved(std::int64_t position) const;
};

// Error internal when the tokens have another number of placeholders than there are pictures.
Result<VisionTokens> repeat_placeholders(std::span<const TokenId> token_ids,
                                         std::span<const PromptMedia> media,
                                         const PlaceholderIds& ids);

}  // namespace sluice
