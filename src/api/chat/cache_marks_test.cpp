// From a mark in a turn to its position in the prompt, with the tokenizer and template of the
// embedded model.
#include "api/chat/cache_marks.h"

#include <gtest/gtest.h>

#include "api/chat/chat_history.h"
#include "api/fields/json_text.h"
#include "text/chat_template.h"

namespace sluice {
namespace {

namespace json = boost::json;

std::string directory() {
  return std::string(SLUICE_SOURCE_DIR) + "/models/tiny";
}

std::string render(const std::vector<ChatTurn>& turns) {
  static const Tokenizer tokenizer = Tokenizer::load(directory()).value();
  static const ChatTemplate chat_template = ChatTemplate::load(directory()).value();
  const json::object variables{{"messages", template_messages(turns)},
                               {"add_generation_prompt", true}};
  return chat_template.render(to_json(variables), tokenizer)->text;
}

// What comes before each mark in the rendered prompt.
std::vector<std::string> before_marks(const std::vector<ChatTurn>& turns) {
  const std::string plain = render(turns);
  std::vector<std::string> texts;
  for (const std::size_t offset : marked_offsets(plain, render(with_mark_texts(turns)))) {
    texts.push_back(plain.substr(0, offset));
  }
  return texts;
}

TEST(CacheMarks, AreFoundInTheRenderedPrompt) {
  const std::vector<ChatTurn> turns{
      {.role = TurnRole::system, .text = "stable changing", .cache_marks = {6}},
      {.role = TurnRole::user, .text = " question \n", .cache_marks = {11}}};
  EXPECT_TRUE(has_cache_marks(turns));
  EXPECT_EQ(before_marks(turns),
            (std::vector<std::string>{"<|im_start|>system\nstable",
                                      "<|im_start|>system\nstable changing<|im_end|>\n"
                                      "<|im_start|>user\nquestion"}));
}

TEST(CacheMarks, AMarkThatChangesThePromptDoesNotCount) {
  EXPECT_TRUE(marked_offsets("ab", "xab").empty());
  const std::vector<ChatTurn> turns{{.role = TurnRole::user, .text = "  q", .cache_marks = {0}}};
  EXPECT_LE(before_marks(turns).size(), 1U);  // the template trims what is before the mark
}

TEST(CacheMarks, AMarkOnAPictureComesAfterIt) {
  const TurnMedia image{.offset = 5, .source = {}};
  const std::string turn = "<|im_start|>user\nLook <|vision_start|><|image_pad|><|vision_end|>";
  EXPECT_EQ(before_marks({{.text = "Look ", .cache_marks = {5}, .media = {image}}}),
            std::vector<std::string>{turn});
  EXPECT_EQ(before_marks({{.text = "Look at", .cache_marks = {4, 7}, .media = {image}}}),
            (std::vector<std::string>{"<|im_start|>user\nLook", turn + "at"}));
}

TEST(CacheMarks, OnlyTheLastOnesAreUsed) {
  std::vector<ChatTurn> turns{{.role = TurnRole::user, .text = std::string(20, 'a')}};
  for (std::size_t i = 1; i <= 20; ++i) {
    turns[0].cache_marks.push_back(i);
  }
  const auto texts = before_marks(turns);
  ASSERT_EQ(texts.size(), kCacheMarksMax);
  EXPECT_TRUE(texts.back().ends_with(std::string(20, 'a')));
}

TEST(CacheMarks, PositionsAreWholeTokensBefore) {
  const Tokenizer tokenizer = Tokenizer::load(directory()).value();
  const std::string prompt = "The quick brown fox \U0001F600 jumps.";
  const auto ids = tokenizer.encode(prompt, ControlTokens::literal).value();
  std::vector<std::size_t> offsets;
  for (std::size_t offset = 0; offset <= prompt.size(); ++offset) {
    offsets.push_back(offset);
  }
  const auto positions = token_positions(ids, prompt, offsets, tokenizer);
  ASSERT_EQ(positions.size(), offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    std::size_t bytes = 0;
    std::int64_t whole = 0;
    for (const std::int32_t id : ids) {
      bytes += tokenizer.token_bytes(id).size();
      whole += bytes <= offsets[i] ? 1 : 0;
    }
    EXPECT_EQ(positions[i], whole) << offsets[i];
  }
  EXPECT_TRUE(token_positions(ids, prompt + "!", offsets, tokenizer).empty());
}

TEST(CacheMarks, MoveWithTheirText) {
  ChatTurn first{.role = TurnRole::user, .text = "ab", .cache_marks = {1}};
  append_turn_text(first, {.role = TurnRole::user, .text = "cd", .cache_marks = {2}});
  EXPECT_EQ(first.text, "ab\n\ncd");
  EXPECT_EQ(first.cache_marks, (std::vector<std::size_t>{1, 6}));
}

}  // namespace
}  // namespace sluice
