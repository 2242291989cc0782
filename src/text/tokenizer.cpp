// Tokenizer: reads the files, then asks the Rust crate. No text logic lives here.
#include "text/tokenizer.h"

#include <optional>
#include <string>

#include "platform/mapped_file.h"
#include "text/rust_call.h"
#include "text/text_files.h"

namespace sluice {
namespace {

std::optional<std::int32_t> id_or_none(std::int32_t id) {
  return id < 0 ? std::nullopt : std::optional(id);
}

Result<std::vector<std::int32_t>> encode_input(const sluice_tokenizer* handle,
                                               const sluice_encode_input& input) {
  sluice_ids ids{};
  SLUICE_TRY(rust_call("", sluice_tokenizer_encode, handle, &input, &ids));
  return take_rust_ids(ids);
}

}  // namespace

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& model_directory) {
  const std::filesystem::path json_path = model_directory / "tokenizer.json";
  const std::filesystem::path config_path = model_directory / "tokenizer_config.json";
  const std::string json = SLUICE_TRY(read_text_file(json_path, SLUICE_TOKENIZER_BYTES_MAX));
  const std::optional<std::string> config =
      SLUICE_TRY(read_optional_text_file(config_path, SLUICE_TOKENIZER_BYTES_MAX));

  sluice_tokenizer_source source{};
  source.struct_size = sizeof(source);
  source.tokenizer_json = rust_data(json);
  source.tokenizer_json_len = json.size();
  if (config) {
    source.tokenizer_config_json = rust_data(*config);
    source.tokenizer_config_json_len = config->size();
  }
  sluice_tokenizer* handle = nullptr;
  SLUICE_TRY(rust_call(model_directory.string(), sluice_tokenizer_new, &source, &handle));
  return Tokenizer(handle);
}

Tokenizer::Tokenizer(sluice_tokenizer* handle) : handle_(handle) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

void Tokenizer::Deleter::operator()(sluice_tokenizer* handle) const {
  sluice_tokenizer_free(handle);
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text,
                                                    ControlTokens control) const {
  sluice_encode_input input{};
  input.struct_size = sizeof(input);
  input.text = rust_data(text);
  input.text_len = text.size();
  input.all_literal = control == ControlTokens::literal;
  return encode_input(handle_.get(), input);
}

Result<std::vector<std::int32_t>> Tokenizer::encode(const PromptText& prompt) const {
  std::vector<sluice_range> ranges;
  ranges.reserve(prompt.literal_ranges.size());
  for (const auto& [begin, end] : prompt.literal_ranges) {
    ranges.push_back({begin, end});
  }
  sluice_encode_input input{};
  input.struct_size = sizeof(input);
  input.text = rust_data(prompt.text);
  input.text_len = prompt.text.size();
  input.literal_ranges = ranges.data();
  input.literal_ranges_len = ranges.size();
  if (prompt.owner) {
    input.owner = rust_data(*prompt.owner);
    input.owner_len = prompt.owner->size();
  }
  return encode_input(handle_.get(), input);
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids,
                                      bool skip_special_tokens) const {
  sluice_bytes text{};
  SLUICE_TRY(rust_call("", sluice_tokenizer_decode, handle_.get(), ids.data(), ids.size(),
                       skip_special_tokens, &text));
  return take_rust_bytes(text);
}

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  const std::uint8_t* data = nullptr;
  const std::size_t size = sluice_tokenizer_token_bytes(handle_.get(), id, &data);
  return {reinterpret_cast<const char*>(data), size};
}

bool Tokenizer::is_special(std::int32_t id) const {
  return sluice_tokenizer_is_special(handle_.get(), id);
}

std::optional<std::int32_t> Tokenizer::token_id(std::string_view token) const {
  return id_or_none(sluice_tokenizer_token_id(handle_.get(), rust_data(token), token.size()));
}

std::int32_t Tokenizer::vocab_size() const {
  return sluice_tokenizer_vocab_size(handle_.get());
}

std::optional<std::int32_t> Tokenizer::eos_token_id() const {
  return id_or_none(sluice_tokenizer_eos_token_id(handle_.get()));
}

}  // namespace sluice
