// Messages with arbitrary text through the model's template and tokenizer: whatever a user writes,
// in however many parts, the turns and tags of the prompt are those the template writes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace {

constexpr std::int32_t kFirstControl = 600;  // of src/text/testdata

struct Fixture {
  sluice::Tokenizer tokenizer;
  sluice::ChatTemplate chat_template;
};

template <typename T>
T value_or_abort(sluice::Result<T> result) {
  if (!result) {
    std::abort();
  }
  return std::move(*result);
}

const Fixture& fixture() {
  static const std::string root = SLUICE_SOURCE_DIR;
  static const Fixture instance{
      value_or_abort(sluice::Tokenizer::load(root + "/src/text/testdata")),
      value_or_abort(sluice::ChatTemplate::load(root + "/models/tiny"))};
  return instance;
}

std::string control_tokens(const std::vector<std::int32_t>& ids) {
  std::string result;
  for (const std::int32_t id : ids) {
    if (id >= kFirstControl) {
      result += fixture().tokenizer.token_bytes(id);
    }
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  boost::json::array parts;
  for (std::size_t begin = 0; begin <= input.size();) {  // a zero byte ends a part
    const std::size_t end = std::min(input.find('\0', begin), input.size());
    parts.push_back(
        boost::json::object{{"type", "text"}, {"text", input.substr(begin, end - begin)}});
    begin = end + 1;
  }
  const boost::json::object variables{
      {"messages",
       boost::json::array{boost::json::object{{"role", "user"}, {"content", "question"}},
                          boost::json::object{{"role", "user"}, {"content", parts}}}},
      {"add_generation_prompt", true}};
  const auto prompt =
      fixture().chat_template.render(boost::json::serialize(variables), fixture().tokenizer);
  if (!prompt) {
    return 0;  // not UTF-8
  }
  const auto ids = fixture().tokenizer.encode(*prompt);
  const std::string want = "<|im_start|><|im_end|><|im_start|><|im_end|><|im_start|><think>";
  if (!ids || control_tokens(*ids) != want) {
    std::abort();
  }
  return 0;
}
