// Parts of messages that are pictures or videos, in the spellings of OpenAI's chat and Responses
// APIs and of other servers of this model family:
//
//   {"type": "image_url", "image_url": {"url", "detail"} or "..."}
//   {"type": "input_image", "image_url": "...", "detail"}        {"type": "image", "image": "..."}
//   {"type": "video_url" or "video" or "input_video", "video_url" or "video": {"url"} or "..." or
//    [frames], "fps", "max_frames"}
//
// each with "min_pixels" and "max_pixels" if wanted.
#pragma once

#include <optional>
#include <string_view>

#include "api/chat/media_source.h"
#include "api/fields/json_fields.h"

namespace sluice {

// What a part of this type shows; none: it is no picture or video.
std::optional<MediaKind> media_kind_of(std::string_view part_type);

// Errors go to the report: no text, a wrong type or range, a file that would have to be stored
// here.
MediaSource read_media_part(JsonFields& part, MediaKind kind);

// The `source` of an image block of the Anthropic API: base64 or a URL.
MediaSource read_image_source(JsonFields& image);

// What a picture at a place where there can be none is answered with.
void refuse_media(const std::string& path, MediaKind kind, std::string_view place,
                  FieldReport& report);

}  // namespace sluice
