// The text/ folder as a program, for the tests in this folder: one JSON request per line on stdin,
// one JSON answer per line on stdout. Not part of the product.
//
//   text_tool MODEL_DIRECTORY [CHAT_TEMPLATE_DIRECTORY]
//
//   {"op": "encode", "text": T}                     -> {"ids": [...]}
//   {"op": "encode_literal", "text": T}             -> {"ids": [...]}
//   {"op": "encode_owned", "text": T}               -> {"ids": [...]}
//   {"op": "decode", "ids": [...], "skip": bool}    -> {"text": T, "streamed": T}
//   {"op": "render", "variables_json": JSON text}   -> {"text": T, "literal": [[b, e]...], "ids":
//   [...]} any of them                                     -> {"error": code, "message": M}
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "text/chat_template.h"
#include "text/incremental_decoder.h"
#include "text/tokenizer.h"

namespace {

namespace json = boost::json;

json::object to_json(const sluice::Error& error) {
  return {{"error", sluice::to_string(error.code)}, {"message", error.message}};
}

json::array ids_to_json(const std::vector<std::int32_t>& ids) {
  return json::array(ids.begin(), ids.end());
}

json::object encode(const sluice::Tokenizer& tokenizer, std::string_view text,
                    sluice::ControlTokens control) {
  const auto ids = tokenizer.encode(text, control);
  return ids ? json::object{{"ids", ids_to_json(*ids)}} : to_json(ids.error());
}

json::object decode(const sluice::Tokenizer& tokenizer, const json::object& request) {
  const auto ids = json::value_to<std::vector<std::int32_t>>(request.at("ids"));
  const bool skip = request.at("skip").as_bool();
  const auto text = tokenizer.decode(ids, skip);
  if (!text) {
    return to_json(text.error());
  }
  sluice::IncrementalDecoder decoder(tokenizer, skip);
  std::string streamed;
  for (const std::int32_t id : ids) {
    streamed += decoder.append(id);
  }
  streamed += decoder.finish();
  return {{"text", *text}, {"streamed", streamed}};
}

json::object render(const sluice::ChatTemplate& chat_template, const sluice::Tokenizer& tokenizer,
                    std::string_view variables_json) {
  const auto prompt = chat_template.render(variables_json, tokenizer);
  if (!prompt) {
    return to_json(prompt.error());
  }
  const auto ids = tokenizer.encode(*prompt);
  if (!ids) {
    return to_json(ids.error());
  }
  json::array ranges;
  for (const auto& [begin, end] : prompt->literal_ranges) {
    ranges.push_back(json::array{begin, end});
  }
  return {{"text", prompt->text}, {"literal", ranges}, {"ids", ids_to_json(*ids)}};
}

json::object answer(const sluice::Tokenizer& tokenizer, const sluice::ChatTemplate* chat_template,
                    const json::object& request) {
  const std::string op = json::value_to<std::string>(request.at("op"));
  if (op == "encode" || op == "encode_literal") {
    const auto control =
        op == "encode" ? sluice::ControlTokens::parse : sluice::ControlTokens::literal;
    return encode(tokenizer, request.at("text").as_string(), control);
  }
  if (op == "encode_owned") {
    const std::string text = json::value_to<std::string>(request.at("text"));
    const auto ids = tokenizer.encode({.text = text, .literal_ranges = {}, .owner = ""});
    return ids ? json::object{{"ids", ids_to_json(*ids)}} : to_json(ids.error());
  }
  if (op == "decode") {
    return decode(tokenizer, request);
  }
  if (op == "render" && chat_template != nullptr) {
    return render(*chat_template, tokenizer, request.at("variables_json").as_string());
  }
  return {{"error", "unknown op"}, {"message", op}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: text_tool MODEL_DIRECTORY [CHAT_TEMPLATE_DIRECTORY]\n");
    return 2;
  }
  const auto tokenizer = sluice::Tokenizer::load(argv[1]);
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  const auto chat_template = sluice::ChatTemplate::load(argc > 2 ? argv[2] : argv[1]);
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    const json::value request = json::parse(line);
    const sluice::ChatTemplate* loaded = chat_template ? &*chat_template : nullptr;
    std::cout << json::serialize(answer(*tokenizer, loaded, request.as_object())) << std::endl;
  }
  return 0;
}
