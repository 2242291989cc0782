// From what a request says about its pictures and videos to what the engine takes.
//
//   open    reads or fetches the bytes and looks at their headers: how many placeholders there are
//   decode  makes the pixels, once it is known that the prompt fits
//
// Bytes come from strangers: a declared type is not trusted, every limit is checked before anything
// is decoded (media/). All errors name the field. Thread rule: any thread; takes as long as it
// takes.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/api_error.h"
#include "api/chat/vision_prompt.h"
#include "media/encoder_size.h"
#include "media/video_input.h"
#include "request/vision_input.h"
#include "server/decoded_budget.h"
#include "server/media_config.h"
#include "server/plan_pool.h"
#include "server/served_model.h"

namespace sluice {

struct OpenedMedia {
  MediaSource source;
  std::vector<std::vector<std::byte>> files;  // one for each text of the source
  std::optional<VideoPlan> video;             // none of an image
  PromptMedia prompt;
  std::int64_t stored_pixels =
      0;  // of its pictures; 0 of a video file, which has limits of its own
};

class MediaLoader {
 public:
  // `pool` is where the calls come from; once it is stopping, they give up. All must outlive the
  // loader; vision is none where the model reads text only.
  MediaLoader(const MediaConfig& config, const std::optional<VisionModel>& vision, PlanPool& pool)
      : config_(config), vision_(vision), pool_(pool), decoded_(config.decoded_bytes_max) {}

  // Gives up once `gone` (may be null) is set. Error queue_full: too many fetch something already.
  ApiResult<std::vector<OpenedMedia>> open(std::span<const MediaSource> sources,
                                           const std::atomic<bool>* gone) const;

  // One input for each picture of the prompts, in their order; gives up like open(). Error
  // queue_full: those of other requests fill the memory there is for them.
  ApiResult<std::vector<std::shared_ptr<const VisionInput>>> decode(
      std::span<const OpenedMedia> media, const std::atomic<bool>* gone) const;

 private:
  GivesUp gives_up(const std::atomic<bool>* gone) const;
  ApiResult<OpenedMedia> open_one(const MediaSource& source, std::size_t bytes_max,
                                  const GivesUp& gives_up) const;
  Result<std::vector<std::byte>> read(const std::string& text, const MediaSource& source,
                                      std::size_t bytes_max, const GivesUp& gives_up) const;
  Result<void> look_at(OpenedMedia& media) const;
  Result<VideoPlan> plan_file(const OpenedMedia& media) const;
  Result<PictureSize> frame_list_size(const OpenedMedia& media) const;
  Result<VideoPlan> plan_list(const OpenedMedia& media, PictureSize size) const;
  Result<std::vector<VisionInput>> decode_one(const OpenedMedia& media,
                                              const GivesUp& gives_up) const;
  Result<void> check_seen(PictureSize seen) const;
  PixelBudget budget_of(const MediaSource& source) const;

  const MediaConfig& config_;
  const std::optional<VisionModel>& vision_;
  PlanPool& pool_;
  const DecodedBudget decoded_;
};

}  // namespace sluice
