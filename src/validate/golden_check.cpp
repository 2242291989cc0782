#include "validate/golden_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "model/lone_sequence.h"
#include "model/qwen3_5.h"
#include "platform/mapped_file.h"
#include "weights/model_config.h"

namespace sluice::validate {
namespace {

namespace json = boost::json;

constexpr std::size_t kGoldenBytesMax = std::size_t{256} << 20;
constexpr std::size_t kGoldenTokensMax = std::size_t{1} << 18;  // of one case

std::unexpected<Error> refuse(const std::string& where, std::string_view what) {
  return fail(ErrorCode::corrupt_data, fmt::format("{}: {}", where, what), where);
}

const json::array* array_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_array();
}

Result<std::vector<TokenId>> read_ids(const json::object& object, std::string_view name,
                                      std::int64_t vocab_size, const std::string& where) {
  const json::array* list = array_of(object, name);
  if (list == nullptr || list->empty() || list->size() > kGoldenTokensMax) {
    return refuse(where,
                  fmt::format("{}: want a list of 1 to {} token ids", name, kGoldenTokensMax));
  }
  std::vector<TokenId> ids;
  for (const json::value& value : *list) {
    const std::int64_t* id = value.if_int64();
    if (id == nullptr || *id < 0 || *id >= vocab_size) {
      return refuse(
          where, fmt::format("{}[{}]: want an id from 0 to {}", name, ids.size(), vocab_size - 1));
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

std::optional<double> number_of(const json::value& value) {
  boost::system::error_code error;
  const auto number = value.to_number<double>(error);
  return error ? std::nullopt : std::optional(number);
}

Result<GoldenCase> read_case(const json::value& value, const ModelConfig& config,
                             const std::string& where) {
  const json::object* object = value.if_object();
  if (object == nullptr) {
    return refuse(where, "want an object");
  }
  const std::int64_t vocab_size = config.vocab_size;
  GoldenCase golden{.prompt_ids = SLUICE_TRY(read_ids(*object, "prompt_ids", vocab_size, where)),
                    .greedy_ids = SLUICE_TRY(read_ids(*object, "greedy_ids", vocab_size, where)),
                    .margins = {}};
  const std::size_t tokens = golden.prompt_ids.size() + golden.greedy_ids.size();
  if (std::cmp_greater(tokens, config.max_position_embeddings)) {
    return refuse(where, fmt::format("{} tokens, the model was made for at most {}", tokens,
                                     config.max_position_embeddings));
  }
  if (object->contains("margins")) {
    const json::array* margins = array_of(*object, "margins");
    if (margins == nullptr || margins->size() != golden.greedy_ids.size()) {
      return refuse(where, "margins: want one number per greedy token");
    }
    for (const json::value& margin : *margins) {
      const std::optional<double> number = number_of(margin);
      if (!number) {
        return refuse(where, "margins: want numbers");
      }
      golden.margins.push_back(*number);
    }
  }
  return golden;
}

// The largest, the first of equals.
TokenId likeliest(std::span<const float> logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

// The likeliest token at the end of the prompt and after each stored token but the last.
Result<std::vector<TokenId>> predict(Qwen3_5& model, const GoldenCase& golden) {
  std::vector<TokenId> ids = golden.prompt_ids;
  ids.insert(ids.end(), golden.greedy_ids.begin(), golden.greedy_ids.end() - 1);
  const std::size_t first = golden.prompt_ids.size() - 1;
  const auto step = static_cast<std::size_t>(
      std::min(model.options().step_tokens_max, model.options().step_logit_rows_max));
  const auto vocab_size = static_cast<std::size_t>(model.config().vocab_size);
  LoneSequence sequence =
      SLUICE_TRY(LoneSequence::create(model, static_cast<std::int64_t>(ids.size())));
  std::vector<TokenId> predicted;
  std::vector<std::int32_t> rows;
  std::vector<float> logits;
  for (std::size_t begin = 0; begin < ids.size(); begin += step) {
    const std::size_t count = std::min(step, ids.size() - begin);
    rows.clear();
    for (std::size_t i = 0; i < count; ++i) {
      if (begin + i >= first) {
        rows.push_back(static_cast<std::int32_t>(i));
      }
    }
    logits.resize(rows.size() * vocab_size);
    sequence.forward(std::span(ids).subspan(begin, count), rows, logits);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      predicted.push_back(likeliest(std::span(logits).subspan(row * vocab_size, vocab_size)));
    }
  }
  return predicted;
}

}  // namespace

Result<Golden> load_golden(const std::filesystem::path& path, const ModelConfig& config) {
  const std::string text = SLUICE_TRY(read_text_file(path, kGoldenBytesMax));
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  const json::object* object = value.if_object();
  if (error || object == nullptr) {
    return refuse(path.string(), "is no JSON object");
  }
  Golden golden;
  if (const json::value* model = object->if_contains("model"); model && model->is_string()) {
    golden.model = model->get_string();
  }
  if (const json::value* least = object->if_contains("margin_min")) {
    const std::optional<double> number = number_of(*least);
    if (!number || !(*number >= 0)) {
      return refuse(path.string(), "margin_min: want a number from 0");
    }
    golden.margin_min = *number;
  }
  const json::array* cases = array_of(*object, "cases");
  if (cases == nullptr || cases->empty()) {
    return refuse(path.string(), "cases: want a list of at least one");
  }
  for (std::size_t i = 0; i < cases->size(); ++i) {
    golden.cases.push_back(
        SLUICE_TRY(read_case((*cases)[i], config, fmt::format("{}: cases[{}]", path.string(), i))));
  }
  return golden;
}

Result<void> check_golden(Qwen3_5& model, const Golden& golden, Check& check) {
  check.table =
      Table{.columns = {"case", "prompt tokens", "compared", "unclear", "different"}, .rows = {}};
  std::int64_t compared_total = 0;
  for (std::size_t at = 0; at < golden.cases.size(); ++at) {
    const GoldenCase& one = golden.cases[at];
    const std::vector<TokenId> predicted = SLUICE_TRY(predict(model, one));
    std::int64_t compared = 0;
    std::int64_t different = 0;
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      if (!one.margins.empty() && one.margins[i] < golden.margin_min) {
        continue;
      }
      ++compared;
      if (predicted[i] != one.greedy_ids[i]) {
        ++different;
        check.add_finding(fmt::format("case {}: token {} of the answer is {}, want {}", at, i,
                                      predicted[i], one.greedy_ids[i]));
      }
    }
    compared_total += compared;
    const std::int64_t unclear = static_cast<std::int64_t>(predicted.size()) - compared;
    check.table->rows.push_back({std::to_string(at), std::to_string(one.prompt_ids.size()),
                                 std::to_string(compared), std::to_string(unclear),
                                 std::to_string(different)});
  }
  check.counts.push_back({"compared", compared_total});
  check.summary = fmt::format("{} tokens of {} cases{}{} compared, {} differ", compared_total,
                              golden.cases.size(), golden.model.empty() ? "" : " of ", golden.model,
                              check.finding_count);
  if (compared_total == 0) {
    check.skip("no token of the file is clear enough to compare");
  }
  return {};
}

}  // namespace sluice::validate
