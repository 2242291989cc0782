#include "api/chat/cache_marks.h"

#include <algorithm>
#include <ranges>

namespace sluice {
namespace {

// U+FDD0 and U+FDD1 are no characters: no text has a reason to hold them. One that does moves
// marks, which changes no answer.
constexpr std::string_view kMarkText = "\xEF\xB7\x90mark\xEF\xB7\x91";

std::size_t before_white_space(std::string_view text, std::size_t offset) {
  const std::size_t last = text.substr(0, offset).find_last_not_of(" \t\r\n");
  return last == std::string_view::npos ? offset : last + 1;
}

// Where the mark's text goes: not before a picture that the mark comes after.
std::size_t place_of(std::size_t mark, const ChatTurn& turn) {
  std::size_t place = before_white_space(turn.text, mark);
  for (const TurnMedia& media : turn.media) {
    place = media.offset <= mark ? std::max(place, media.offset) : place;
  }
  return place;
}

void insert_mark(std::size_t mark, ChatTurn& turn) {
  const std::size_t place = place_of(mark, turn);
  turn.text.insert(place, kMarkText);
  for (TurnMedia& media : turn.media) {
    media.offset += media.offset > mark ? kMarkText.size() : 0;
  }
}

}  // namespace

bool has_cache_marks(const std::vector<ChatTurn>& turns) {
  return std::ranges::any_of(turns, [](const ChatTurn& turn) { return !turn.cache_marks.empty(); });
}

std::vector<ChatTurn> with_mark_texts(const std::vector<ChatTurn>& turns) {
  std::vector<ChatTurn> marked = turns;
  for (ChatTurn& turn : marked) {
    for (const std::size_t mark : std::views::reverse(turn.cache_marks)) {
      insert_mark(mark, turn);
    }
  }
  return marked;
}

std::vector<std::size_t> marked_offsets(std::string_view plain, std::string_view marked) {
  std::vector<std::size_t> offsets;
  std::size_t at = 0;
  for (std::size_t mark = marked.find(kMarkText); mark != std::string_view::npos;
       mark = marked.find(kMarkText)) {
    if (plain.substr(at, mark) != marked.substr(0, mark)) {
      break;
    }
    at += mark;
    offsets.push_back(at);
    marked.remove_prefix(mark + kMarkText.size());
  }
  if (offsets.size() > kCacheMarksMax) {
    offsets.erase(offsets.begin(), offsets.end() - kCacheMarksMax);
  }
  return offsets;
}

std::vector<std::int64_t> token_positions(std::span<const std::int32_t> token_ids,
                                          const std::string& prompt,
                                          const std::vector<std::size_t>& offsets,
                                          const Tokenizer& tokenizer) {
  std::vector<std::int64_t> positions;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < token_ids.size(); ++i) {
    const std::size_t end = bytes + tokenizer.token_bytes(token_ids[i]).size();
    while (positions.size() < offsets.size() && offsets[positions.size()] < end) {
      positions.push_back(static_cast<std::int64_t>(i));
    }
    bytes = end;
  }
  positions.resize(offsets.size(), std::ssize(token_ids));
  return bytes == prompt.size() ? positions : std::vector<std::int64_t>{};
}

}  // namespace sluice
