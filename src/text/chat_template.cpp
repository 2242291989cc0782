// ChatTemplate: finds the template's source, then asks the Rust crate (rust/src/template.rs).
#include "text/chat_template.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "text/rust_call.h"
#include "text/text_files.h"

namespace sluice {
namespace {

// "chat_template" of tokenizer_config.json: the text itself, or a list of {name, template} of which
// "default" counts.
Result<std::string> template_of_config(const boost::json::value& entry, const std::string& where) {
  if (entry.is_string()) {
    return std::string(entry.get_string());
  }
  if (entry.is_array()) {
    for (const boost::json::value& item : entry.get_array()) {
      const boost::json::object* named = item.if_object();
      const boost::json::value* name = named ? named->if_contains("name") : nullptr;
      const boost::json::value* text = named ? named->if_contains("template") : nullptr;
      if (name && text && text->is_string() && name->is_string() &&
          name->get_string() == "default") {
        return std::string(text->get_string());
      }
    }
  }
  return fail(ErrorCode::corrupt_data,
              where + ": chat_template: want a string, or a list with a template named default",
              where);
}

Result<std::string> read_source(const std::filesystem::path& model_directory, std::string* where) {
  const std::filesystem::path jinja = model_directory / "chat_template.jinja";
  *where = jinja.string();
  std::optional<std::string> source =
      SLUICE_TRY(read_optional_text_file(jinja, SLUICE_TEMPLATE_BYTES_MAX));
  if (source) {
    return std::move(*source);
  }
  const std::filesystem::path config_path = model_directory / "tokenizer_config.json";
  const std::optional<boost::json::object> config =
      SLUICE_TRY(read_optional_json_object(config_path, SLUICE_TOKENIZER_BYTES_MAX));
  const boost::json::value* entry = config ? config->if_contains("chat_template") : nullptr;
  if (entry == nullptr || entry->is_null()) {
    return fail(ErrorCode::not_found,
                jinja.string() + ": no such file, and tokenizer_config.json has no chat_template",
                *where);
  }
  *where = config_path.string();
  return template_of_config(*entry, *where);
}

}  // namespace

static_assert(ChatTemplate::kSourceBytesMax == SLUICE_TEMPLATE_BYTES_MAX);

Result<ChatTemplate> ChatTemplate::load(const std::filesystem::path& model_directory) {
  std::string where;
  std::string source = SLUICE_TRY(read_source(model_directory, &where));
  return compile(std::move(source), where);
}

Result<ChatTemplate> ChatTemplate::compile(std::string source, const std::string& where) {
  sluice_chat_template* handle = nullptr;
  SLUICE_TRY(rust_call(where, sluice_chat_template_new, rust_data(source), source.size(), &handle));
  return ChatTemplate(std::move(source), handle);
}

ChatTemplate::ChatTemplate(std::string source, sluice_chat_template* handle)
    : source_(std::move(source)), handle_(handle) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

void ChatTemplate::Deleter::operator()(sluice_chat_template* handle) const {
  sluice_chat_template_free(handle);
}

Result<PromptText> ChatTemplate::render(std::string_view variables_json,
                                        const Tokenizer& tokenizer) const {
  sluice_bytes text{};
  sluice_ranges ranges{};
  SLUICE_TRY(rust_call("", sluice_chat_template_render, handle_.get(), tokenizer.handle(),
                       rust_data(variables_json), variables_json.size(), &text, &ranges));
  PromptText prompt;
  prompt.text = take_rust_bytes(text);
  prompt.literal_ranges = take_rust_ranges(ranges);
  return prompt;
}

}  // namespace sluice
