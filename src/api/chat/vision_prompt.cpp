#include "api/chat/vision_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "api/chat/template_text.h"

namespace sluice {
namespace {

constexpr std::string_view kImagePad = "<|image_pad|>";
constexpr std::string_view kVideoPad = "<|video_pad|>";
constexpr std::string_view kVisionStart = "<|vision_start|>";
constexpr std::string_view kVisionEnd = "<|vision_end|>";

struct Placeholder {
  MediaKind kind = MediaKind::image;
  std::size_t at = 0;
};

std::vector<Placeholder> find_placeholders(const PromptText& prompt) {
  const TemplateText text(prompt);
  std::vector<Placeholder> found;
  for (const auto& [kind, pad] :
       {std::pair(MediaKind::image, kImagePad), std::pair(MediaKind::video, kVideoPad)}) {
    for (std::size_t at = text.find(pad, 0); at != std::string::npos;
         at = text.find(pad, at + pad.size())) {
      found.push_back({kind, at});
    }
  }
  std::ranges::sort(found, {}, &Placeholder::at);
  return found;
}

Result<void> check_placeholders(std::span<const Placeholder> found,
                                std::span<const PromptMedia> media) {
  if (std::ranges::equal(found, media, {}, &Placeholder::kind, &PromptMedia::kind)) {
    return {};
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("the chat template shows {} pictures and videos, the conversation has {}",
                          found.size(), media.size()));
}

std::string video_text(const PromptMedia& video) {
  std::string text;
  for (const PromptPicture& picture : video.pictures) {
    text += picture.caption;
    text += kVisionStart;
    text += kVideoPad;
    text += kVisionEnd;
  }
  return text;
}

// Whether `text` has `word` right before `at`.
bool stands_before(std::string_view text, std::size_t at, std::string_view word) {
  return text.substr(0, at).ends_with(word);
}

}  // namespace

Result<VisionText> VisionText::make(const PromptText& prompt, std::span<const PromptMedia> media) {
  const std::vector<Placeholder> found = find_placeholders(prompt);
  SLUICE_TRY(check_placeholders(found, media));
  VisionText result;
  const std::string_view text = prompt.text;
  std::size_t done = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].kind == MediaKind::image) {
      continue;
    }
    const std::size_t at = found[i].at;
    const std::size_t after = at + kVideoPad.size();
    if (!stands_before(text, at, kVisionStart) || !text.substr(after).starts_with(kVisionEnd)) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("the chat template shows a video without {} and {} around it",
                              kVisionStart, kVisionEnd));
    }
    const std::string shown = video_text(media[i]);
    const Change change{at - kVisionStart.size(), after + kVisionEnd.size(), shown.size()};
    result.prompt_.text += text.substr(done, change.begin - done);
    result.prompt_.text += shown;
    done = change.end;
    result.changes_.push_back(change);
  }
  result.prompt_.text += text.substr(done);
  result.prompt_.owner = prompt.owner;
  result.prompt_.literal_ranges = prompt.literal_ranges;
  for (auto& [begin, end] : result.prompt_.literal_ranges) {
    begin = result.moved(begin);
    end = result.moved(end);
  }
  return result;
}

std::size_t VisionText::moved(std::size_t offset) const {
  std::size_t place = offset;
  for (const Change& change : changes_) {
    if (offset <= change.begin) {
      break;
    }
    // What was inside goes to its end.
    place += change.size + (std::max(offset, change.end) - offset);
    place -= change.end - change.begin;
  }
  return place;
}

std::int64_t VisionTokens::moved(std::int64_t position) const {
  const auto after = std::ranges::lower_bound(pictures, position, {}, &PlacedPicture::index);
  if (after == pictures.begin()) {
    return position;
  }
  const PlacedPicture& last = *(after - 1);
  return last.position + last.token_count + (position - last.index - 1);
}

Result<VisionTokens> repeat_placeholders(std::span<const TokenId> token_ids,
                                         std::span<const PromptMedia> media,
                                         const PlaceholderIds& ids) {
  std::vector<std::int64_t> counts;
  for (const PromptMedia& one : media) {
    std::ranges::transform(one.pictures, std::back_inserter(counts), &PromptPicture::token_count);
  }
  VisionTokens result;
  for (std::size_t i = 0; i < token_ids.size(); ++i) {
    const TokenId id = token_ids[i];
    if (!ids.contains(id)) {
      result.token_ids.push_back(id);
      continue;
    }
    if (result.pictures.size() == counts.size()) {
      return fail(
          ErrorCode::internal,
          fmt::format("the prompt has more placeholders than its {} pictures", counts.size()));
    }
    const std::int64_t count = counts[result.pictures.size()];
    result.pictures.push_back({.index = static_cast<std::int64_t>(i),
                               .position = std::ssize(result.token_ids),
                               .token_count = count});
    result.token_ids.insert(result.token_ids.end(), static_cast<std::size_t>(count), id);
  }
  if (result.pictures.size() != counts.size()) {
    return fail(ErrorCode::internal, fmt::format("the prompt has {} placeholders for {} pictures",
                                                 result.pictures.size(), counts.size()));
  }
  return result;
}

}  // namespace sluice
