// From the template's placeholders to those of the model, with the tokenizer and template of the
// embedded model.
#include "api/chat/vision_prompt.h"

#include <gtest/gtest.h>

#include "api/chat/chat_history.h"
#include "api/fields/json_text.h"
#include "text/chat_template.h"

namespace sluice {
namespace {

namespace json = boost::json;

const Tokenizer& tokenizer() {
  static const auto loaded =
      Tokenizer::load(std::string(SLUICE_SOURCE_DIR) + "/models/tiny").value();
  return loaded;
}

PromptText render(const std::vector<ChatTurn>& turns) {
  static const auto chat_template =
      ChatTemplate::load(std::string(SLUICE_SOURCE_DIR) + "/models/tiny").value();
  const json::object variables{{"messages", template_messages(turns)}};
  return chat_template.render(to_json(variables), tokenizer()).value();
}

TurnMedia at(std::size_t offset, MediaKind kind) {
  return {.offset = offset, .source = {.kind = kind}};
}

const PromptMedia kPicture{.kind = MediaKind::image, .pictures = {{.token_count = 3}}};
const PromptMedia kFilm{.kind = MediaKind::video,
                        .pictures = {{.token_count = 2, .caption = "<0.2 seconds>"},
                                     {.token_count = 4, .caption = "<1.2 seconds>"}}};

PlaceholderIds ids() {
  return {.image = tokenizer().token_id("<|image_pad|>").value(),
          .video = tokenizer().token_id("<|video_pad|>").value()};
}

TEST(VisionText, AVideoBecomesItsFramesWithTheirTimes) {
  const PromptText prompt =
      render({{.text = "See this?", .media = {at(4, MediaKind::image), at(9, MediaKind::video)}}});
  const std::vector<PromptMedia> media{kPicture, kFilm};
  const auto text = VisionText::make(prompt, media);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->prompt().text,
            "<|im_start|>user\nSee <|vision_start|><|image_pad|><|vision_end|>this?"
            "<0.2 seconds><|vision_start|><|video_pad|><|vision_end|>"
            "<1.2 seconds><|vision_start|><|video_pad|><|vision_end|><|im_end|>\n");
  // What a user wrote stays what a user wrote.
  for (const auto& [begin, end] : text->prompt().literal_ranges) {
    const std::string part = text->prompt().text.substr(begin, end - begin);
    EXPECT_TRUE(std::string("See this?").find(part) != std::string::npos) << part;
  }
}

TEST(VisionText, OffsetsMoveWithTheText) {
  const std::string before = "<|im_start|>user\n";
  const std::string triple = "<|vision_start|><|video_pad|><|vision_end|>";
  const PromptText prompt = render({{.text = "ab", .media = {at(1, MediaKind::video)}}});
  const auto text = VisionText::make(prompt, std::vector<PromptMedia>{kFilm});
  ASSERT_TRUE(text) << text.error().message;
  const std::size_t grown = text->prompt().text.size() - prompt.text.size();
  const std::size_t video = before.size() + 1;
  EXPECT_EQ(text->moved(0), 0U);
  EXPECT_EQ(text->moved(video), video);
  EXPECT_EQ(text->moved(video + triple.size()), video + triple.size() + grown);
  EXPECT_EQ(text->moved(video + 5), video + triple.size() + grown);  // inside: to its end
  EXPECT_EQ(text->moved(prompt.text.size()), text->prompt().text.size());
}

TEST(VisionText, TheTemplateHasToShowExactlyTheMedia) {
  const PromptText one = render({{.text = "a", .media = {at(0, MediaKind::image)}}});
  EXPECT_FALSE(VisionText::make(one, std::vector<PromptMedia>{kFilm}));
  EXPECT_FALSE(VisionText::make(one, std::vector<PromptMedia>{kPicture, kPicture}));
  EXPECT_TRUE(VisionText::make(one, std::vector<PromptMedia>{kPicture}));
  const auto none = VisionText::make(render({{.text = "a"}}), std::vector<PromptMedia>{kPicture});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::invalid_argument);
}

TEST(VisionText, PlaceholdersThatUsersWriteAreText) {
  const PromptText prompt =
      render({{.text = "<|image_pad|><|video_pad|>", .media = {at(0, MediaKind::image)}}});
  const std::vector<PromptMedia> media{kPicture};
  const auto text = VisionText::make(prompt, media);
  ASSERT_TRUE(text) << text.error().message;
  const auto tokens = repeat_placeholders(tokenizer().encode(text->prompt()).value(), media, ids());
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(std::ranges::count(tokens->token_ids, ids().image), 3);
  EXPECT_EQ(std::ranges::count(tokens->token_ids, ids().video), 0);
}

TEST(VisionTokens, PlaceholdersAreRepeatedAndPositionsFollow) {
  const PlaceholderIds pads{.image = 7, .video = 8};
  const std::vector<TokenId> encoded{1, 7, 2, 8, 3, 8, 4};
  const auto tokens = repeat_placeholders(encoded, std::vector<PromptMedia>{kPicture, kFilm}, pads);
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->token_ids, (std::vector<TokenId>{1, 7, 7, 7, 2, 8, 8, 3, 8, 8, 8, 8, 4}));
  ASSERT_EQ(tokens->pictures.size(), 3U);
  EXPECT_EQ(tokens->pictures[0].position, 1);
  EXPECT_EQ(tokens->pictures[1].position, 5);
  EXPECT_EQ(tokens->pictures[2].position, 8);
  const std::vector<std::int64_t> expected{0, 1, 4, 5, 7, 8, 12, 13};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(tokens->moved(static_cast<std::int64_t>(i)), expected[i]) << i;
  }
}

TEST(VisionTokens, AnotherNumberOfPlaceholdersIsAnError) {
  const PlaceholderIds pads{.image = 7, .video = 8};
  const std::vector<PromptMedia> media{kPicture};
  EXPECT_FALSE(repeat_placeholders(std::vector<TokenId>{1, 2}, media, pads));
  EXPECT_FALSE(repeat_placeholders(std::vector<TokenId>{7, 7}, media, pads));
}

}  // namespace
}  // namespace sluice
