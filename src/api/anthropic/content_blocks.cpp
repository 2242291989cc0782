#include "api/anthropic/content_blocks.h"

#include <fmt/format.h>

#include <utility>

#include "api/chat/media_parts.h"
#include "api/fields/json_text.h"

namespace sluice {
namespace {

namespace json = boost::json;

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

std::string document_text(JsonFields& document, BlockContext context) {
  FieldReport& report = document.report();
  std::string text = document.string("title").value_or("");
  join(text, document.string("context").value_or(""), "\n");
  auto source = document.object("source");
  if (!source) {
    if (!report.failed()) {
      report.fail(ApiErrorKind::missing_parameter, document.path_of("source") + " is required",
                  document.path_of("source"));
    }
    return text;
  }
  const std::string type = required_string(*source, "type");
  if (type == "text") {
    source->find("media_type");
    join(text, required_string(*source, "data"), "\n");
  } else if (const json::value* content = source->find("content");
             type == "content" && content != nullptr) {
    join(text, text_of_blocks(*content, source->path_of("content"), context), "\n");
  } else {
    report.fail(ApiErrorKind::unsupported_content,
                fmt::format("{} has a source of type '{}': this server reads documents of type "
                            "'text' or 'content' only",
                            document.path(), type.substr(0, 64)),
                document.path());
  }
  return text;
}

std::string search_result_text(JsonFields& result, BlockContext context) {
  std::string text = result.string("title").value_or("");
  join(text, result.string("source").value_or(""), "\n");
  if (const json::value* content = result.find("content")) {
    join(text, text_of_blocks(*content, result.path_of("content"), context), "\n");
  }
  return text;
}

// The definition of a tool, or its name if the request does not define it.
std::string tool_text(const std::string& name, const ToolTexts& tools) {
  const auto known = tools.find(name);
  return known != tools.end() ? known->second : name;
}

// {"tool": {"type": "tool_reference", "name"}} or {"tool": {"type": "tool_definition",
// "definition"}}.
std::string added_tool_text(JsonFields& addition, BlockContext context) {
  auto tool = addition.object("tool");
  if (!tool) {
    return {};
  }
  tool->find("type");
  const json::value* definition = tool->find("definition");
  if (definition == nullptr || !definition->is_object()) {
    return tool_text(tool->string("name").value_or(""), context.tools);
  }
  const json::value made =
      chat_tool(definition->get_object(), tool->path_of("definition"), context.report);
  return made.is_null() ? std::string() : shown_tool(made);
}

}  // namespace

void for_each_block(const json::value& content, const std::string& path, FieldReport& report,
                    const ReadBlock& read) {
  if (content.is_string()) {
    const json::object block{{"type", "text"}, {"text", content.get_string()}};
    JsonFields fields(block, path, report);
    read(fields, "text", false);
    return;
  }
  if (!content.is_array()) {
    report.fail(
        ApiErrorKind::invalid_type,
        fmt::format("{} is {}, want a string or an array of blocks", path, json_type_name(content)),
        path);
    return;
  }
  const json::array& blocks = content.get_array();
  for (std::size_t i = 0; i < blocks.size() && !report.failed(); ++i) {
    const std::string block_path = fmt::format("{}[{}]", path, i);
    if (!blocks[i].is_object()) {
      report.fail(ApiErrorKind::invalid_type,
                  fmt::format("{} is {}, want an object", block_path, json_type_name(blocks[i])),
                  block_path);
      return;
    }
    JsonFields block(blocks[i].get_object(), block_path, report);
    const auto type = block.string("type");
    if (!type && !report.failed()) {
      report.fail(ApiErrorKind::missing_parameter, block.path_of("type") + " is required",
                  block.path_of("type"));
      return;
    }
    read(block, type.value_or(""), block.has("cache_control"));
    block.ignore_rest();
  }
}

std::optional<std::string> block_text(JsonFields& block, const std::string& type,
                                      BlockContext context) {
  if (type == "text") {
    return required_string(block, "text");
  }
  if (type == "document") {
    return document_text(block, context);
  }
  if (type == "search_result") {
    return search_result_text(block, context);
  }
  if (type == "tool_reference") {
    return tool_text(required_string(block, "tool_name"), context.tools);
  }
  if (type == "tool_addition") {
    return added_tool_text(block, context);
  }
  if (type == "image") {
    refuse_media(block.path(), MediaKind::image,
                 "only messages of users and results of tools can show one", block.report());
    return std::nullopt;
  }
  const json::value* text = block.find("text");
  if (text != nullptr && text->is_string()) {
    return std::string(view(text->get_string()));
  }
  block.report().ignore(block.path());
  return std::nullopt;
}

std::string text_of_blocks(const json::value& content, const std::string& path,
                           BlockContext context) {
  std::string text;
  for_each_block(content, path, context.report,
                 [&](JsonFields& block, const std::string& type, bool) {
                   join(text, block_text(block, type, context).value_or(""), "\n");
                 });
  return text;
}

void add_blocks(const json::value& content, const std::string& path, BlockContext context,
                ChatTurn& turn) {
  bool follows_text = false;
  for_each_block(content, path, context.report,
                 [&](JsonFields& block, const std::string& type, bool) {
                   if (type == "image") {
                     add_media(turn, read_image_source(block));
                     follows_text = false;
                     return;
                   }
                   const std::string text = block_text(block, type, context).value_or("");
                   join(turn.text, text, follows_text ? "\n" : "");
                   follows_text = follows_text || !text.empty();
                 });
}

std::string required_string(JsonFields& fields, std::string_view key) {
  const auto text = fields.string(key);
  if (!text && !fields.report().failed()) {
    fields.report().fail(ApiErrorKind::missing_parameter, fields.path_of(key) + " is required",
                         fields.path_of(key));
  }
  return text.value_or("");
}

void join(std::string& text, std::string_view more, std::string_view between) {
  if (!text.empty() && !more.empty()) {
    text += between;
  }
  text += more;
}

}  // namespace sluice
