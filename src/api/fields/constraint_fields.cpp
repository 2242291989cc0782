#include "api/fields/constraint_fields.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "api/fields/generation_fields.h"
#include "api/fields/json_text.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::string_view kAnyObject = R"({"type":"object"})";

using Grammar = std::shared_ptr<const CompiledGrammar>;

// Compiles for the field at `path`. Null after an error.
Grammar compile(const GrammarSource& source, const std::string& path, const RequestLimits& limits,
                FieldReport& report) {
  if (report.failed()) {
    return nullptr;  // the request is refused anyway
  }
  if (limits.grammars == nullptr) {
    report.fail(ApiErrorKind::unsupported_parameter,
                path + " is not supported: output cannot be constrained", path);
    return nullptr;
  }
  auto grammar = limits.grammars->compile(source);
  if (grammar) {
    return std::move(*grammar);
  }
  const Error& error = grammar.error();
  const bool internal =
      error.code != ErrorCode::invalid_argument && error.code != ErrorCode::resource_exhausted;
  report.fail(internal ? ApiErrorKind::internal : ApiErrorKind::invalid_json_schema,
              fmt::format("{}: {}", path, error.message), path);
  return nullptr;
}

Grammar compile_schema(const json::value& schema, const std::string& path,
                       const RequestLimits& limits, FieldReport& report) {
  // Some clients send the schema as a JSON text.
  const std::string text = schema.is_string() ? std::string(schema.get_string()) : to_json(schema);
  return compile({.kind = GrammarKind::json_schema, .text = text}, path, limits, report);
}

// A schema the client would like to see kept: when it cannot be, any object will do.
Grammar compile_wished_schema(const json::value& schema, const std::string& path,
                              const RequestLimits& limits, FieldReport& report) {
  FieldReport attempt;
  if (Grammar grammar = compile_schema(schema, path, limits, attempt)) {
    return grammar;
  }
  if (attempt.error().kind != ApiErrorKind::invalid_json_schema) {
    report.fail(attempt.error().kind, attempt.error().message, attempt.error().param);
    return nullptr;
  }
  report.ignore(path);
  return compile({.kind = GrammarKind::json_schema, .text = kAnyObject}, path, limits, report);
}

// The regular expression for exactly one of some texts.
std::string any_of(const std::vector<std::string>& texts) {
  constexpr std::string_view kMeta = R"(\.+*?()|[]{}^$#&-~)";
  std::string pattern;
  for (const std::string& text : texts) {
    pattern += pattern.empty() ? "(" : "|";
    for (const char c : text) {
      if (kMeta.contains(c)) {
        pattern += '\\';
      }
      pattern += c;
    }
  }
  return pattern + ")";
}

Grammar read_choice(JsonFields& fields, std::string_view key, const RequestLimits& limits) {
  const json::array* choices = fields.array(key);
  if (choices == nullptr) {
    return nullptr;
  }
  FieldReport& report = fields.report();
  const std::string path = fields.path_of(key);
  if (choices->empty() || std::ssize(*choices) > kChoiceTextsMax) {
    report.fail(
        ApiErrorKind::invalid_value,
        fmt::format("{} has {} texts, want 1 to {}", path, choices->size(), kChoiceTextsMax), path);
    return nullptr;
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < choices->size(); ++i) {
    const json::value& choice = (*choices)[i];
    const std::string element = fmt::format("{}[{}]", path, i);
    if (!choice.is_string() || choice.get_string().empty()) {
      report.fail(choice.is_string() ? ApiErrorKind::invalid_value : ApiErrorKind::invalid_type,
                  fmt::format("{} wants a string that is not empty", element), element);
      return nullptr;
    }
    texts.emplace_back(choice.get_string());
  }
  return compile({.kind = GrammarKind::regex, .text = any_of(texts)}, path, limits, report);
}

Grammar read_text_grammar(JsonFields& fields, std::string_view key, GrammarKind kind,
                          const RequestLimits& limits) {
  const auto text = fields.string(key);
  if (!text) {
    return nullptr;
  }
  return compile({.kind = kind, .text = *text}, fields.path_of(key), limits, fields.report());
}

Grammar read_schema(JsonFields& fields, std::string_view key, const RequestLimits& limits) {
  const json::value* schema = fields.find(key);
  if (schema == nullptr) {
    return nullptr;
  }
  return compile_schema(*schema, fields.path_of(key), limits, fields.report());
}

// The keys of one object of which at most one may be given.
struct GrammarKeys {
  std::string_view schema;
  std::string_view regex;
  std::string_view choice;
  std::string_view grammar;
};

// `seen` is the path of the one given so far.
void take_one(Grammar grammar, const std::string& path, ConstraintFields& fields,
              std::optional<std::string>& seen, FieldReport& report) {
  if (grammar == nullptr) {
    return;
  }
  if (seen) {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("{} and {} both say what the answer must be", *seen, path), path);
    return;
  }
  fields.grammar = std::move(grammar);
  seen = path;
}

void read_grammar_keys(JsonFields& fields, const GrammarKeys& keys, const RequestLimits& limits,
                       ConstraintFields& result, std::optional<std::string>& seen) {
  FieldReport& report = fields.report();
  take_one(read_schema(fields, keys.schema, limits), fields.path_of(keys.schema), result, seen,
           report);
  take_one(read_text_grammar(fields, keys.regex, GrammarKind::regex, limits),
           fields.path_of(keys.regex), result, seen, report);
  take_one(read_choice(fields, keys.choice, limits), fields.path_of(keys.choice), result, seen,
           report);
  take_one(read_text_grammar(fields, keys.grammar, GrammarKind::lark, limits),
           fields.path_of(keys.grammar), result, seen, report);
}

void read_grammars(JsonFields& body, const RequestLimits& limits, ConstraintFields& result) {
  std::optional<std::string> seen;
  if (auto format = body.object("response_format")) {
    take_one(read_text_format(*format, limits), format->path(), result, seen, body.report());
  }
  if (auto outputs = body.object("structured_outputs")) {
    read_grammar_keys(*outputs, {"json", "regex", "choice", "grammar"}, limits, result, seen);
    if (outputs->boolean("json_object").value_or(false)) {
      const std::string path = outputs->path_of("json_object");
      take_one(compile({.kind = GrammarKind::json_schema, .text = kAnyObject}, path, limits,
                       body.report()),
               path, result, seen, body.report());
    }
    outputs->reject("structural_tag", "use tools or a grammar");
    outputs->ignore_rest();
  }
  read_grammar_keys(body, {"guided_json", "guided_regex", "guided_choice", "guided_grammar"},
                    limits, result, seen);
  take_one(read_schema(body, "json_schema", limits), "json_schema", result, seen, body.report());
}

// A word counts as such at the start of a text and after a blank, where it is another token.
void add_bad_word(const std::string& word, const Tokenizer& tokenizer,
                  std::vector<std::vector<TokenId>>& bad_words) {
  const std::size_t begin = word.find_first_not_of(' ');
  const std::string bare = begin == std::string::npos ? word : word.substr(begin);
  for (const std::string& spelling : {bare, " " + bare}) {
    auto ids = tokenizer.encode(spelling, ControlTokens::literal);
    if (ids && !ids->empty()) {
      bad_words.push_back(std::move(*ids));
    }
  }
}

void read_bad_words(JsonFields& body, const RequestLimits& limits, ConstraintFields& result) {
  const json::array* words = body.array("bad_words");
  if (words == nullptr || words->empty()) {
    return;
  }
  FieldReport& report = body.report();
  const std::string path = body.path_of("bad_words");
  if (limits.grammars == nullptr) {
    body.reject("bad_words", "output cannot be constrained");
    return;
  }
  if (std::ssize(*words) > kBadWordsMax) {
    report.fail(
        ApiErrorKind::invalid_value,
        fmt::format("{} has {} words, at most {} are allowed", path, words->size(), kBadWordsMax),
        path);
    return;
  }
  for (std::size_t i = 0; i < words->size(); ++i) {
    const std::string element = fmt::format("{}[{}]", path, i);
    const json::value& word = (*words)[i];
    if (!word.is_string()) {
      report.fail(ApiErrorKind::invalid_type,
                  fmt::format("{} is {}, want a string", element, json_type_name(word)), element);
      return;
    }
    const std::size_t size = word.get_string().size();
    if (size == 0 || static_cast<std::int64_t>(size) > kBadWordBytesMax) {
      report.fail(ApiErrorKind::invalid_value,
                  fmt::format("{} has {} bytes, want 1 to {}", element, size, kBadWordBytesMax),
                  element);
      return;
    }
    add_bad_word(std::string(word.get_string()), limits.grammars->tokenizer(), result.bad_words);
  }
}

void read_allowed_ids(JsonFields& body, const RequestLimits& limits, ConstraintFields& result) {
  const json::array* ids = body.array("allowed_token_ids");
  if (ids == nullptr) {
    return;
  }
  const std::string path = body.path_of("allowed_token_ids");
  if (std::ssize(*ids) > limits.vocab_size) {
    body.report().fail(
        ApiErrorKind::invalid_value,
        fmt::format("{} has {} ids, the vocabulary has {}", path, ids->size(), limits.vocab_size),
        path);
    return;
  }
  result.allowed_token_ids = read_token_ids(*ids, path, limits, body.report());
}

}  // namespace

ConstraintFields read_constraint_fields(JsonFields& body, const RequestLimits& limits) {
  ConstraintFields result;
  result.tokens_min = body.integer("min_tokens", {0, kTokensMaxMax}).value_or(0);
  read_bad_words(body, limits, result);
  read_allowed_ids(body, limits, result);
  read_grammars(body, limits, result);
  return result;
}

std::shared_ptr<const CompiledGrammar> read_text_format(JsonFields& format,
                                                        const RequestLimits& limits) {
  FieldReport& report = format.report();
  const std::string type = format.string("type").value_or("text");
  const std::string type_path = format.path_of("type");
  if (type == "text") {
    format.ignore_rest();
    return nullptr;
  }
  if (type != "json_object" && type != "json_schema") {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("{} is '{}', want text, json_object or json_schema", type_path,
                            type.substr(0, 64)),
                type_path);
    return nullptr;
  }
  auto nested = format.find("json_schema") != nullptr ? format.object("json_schema") : std::nullopt;
  JsonFields& holder = nested ? *nested : format;
  const json::value* schema = holder.find("schema");
  const bool strict = holder.boolean("strict").value_or(false);
  for (const std::string_view annotation : {"name", "description"}) {
    (void)holder.find(annotation);  // for the model's maker to read, not for us
  }
  const std::string path = holder.path_of("schema");
  if (nested) {
    nested->ignore_rest();
  }
  format.ignore_rest();
  if (schema == nullptr && type == "json_schema") {
    report.fail(ApiErrorKind::missing_parameter, path + " is required", path);
    return nullptr;
  }
  if (schema == nullptr) {
    return compile({.kind = GrammarKind::json_schema, .text = kAnyObject}, format.path(), limits,
                   report);
  }
  return strict ? compile_schema(*schema, path, limits, report)
                : compile_wished_schema(*schema, path, limits, report);
}

}  // namespace sluice
