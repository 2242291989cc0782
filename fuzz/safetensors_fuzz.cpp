// safetensors files from strangers: any bytes give tensors inside the file or an Error.
//
// The first byte chooses the frame, since random bytes rarely keep the size field right:
//   even: the rest is a file;
//   odd:  the next two bytes are the length of the data, the rest is the JSON header.
// What parses is written again and must come back equal.
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "tensor/tensor_view.h"
#include "weights/safetensors.h"
#include "weights/safetensors_header.h"

namespace sluice {
namespace {

void check_views(const TensorMap& tensors, std::span<const std::byte> file) {
  std::size_t bytes = 0;
  for (const auto& [name, view] : tensors) {
    SLUICE_CHECK(static_cast<std::size_t>(element_count(view.shape)) * dtype_bytes(view.dtype) ==
                 view.bytes.size());
    if (!view.bytes.empty()) {
      SLUICE_CHECK(view.bytes.data() >= file.data() + sizeof(std::uint64_t));
      SLUICE_CHECK(view.bytes.data() + view.bytes.size() <= file.data() + file.size());
    }
    bytes += view.bytes.size();
  }
  SLUICE_CHECK(bytes <= file.size());
}

void check_round_trip(const TensorMap& tensors) {
  SafetensorsHeader header;
  std::uint64_t offset = 0;
  for (const auto& [name, view] : tensors) {
    header.emplace(name, HeaderEntry{.dtype = view.dtype,
                                     .shape = view.shape,
                                     .begin = offset,
                                     .end = offset + view.bytes.size()});
    offset += view.bytes.size();
  }
  Result<std::string> image = make_safetensors_header(header);
  SLUICE_CHECK(image.has_value());
  SLUICE_CHECK(image->size() % 64 == 0);
  for (const auto& [name, view] : tensors) {
    image->append(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
  }
  const Result<TensorMap> again =
      parse_safetensors(std::as_bytes(std::span(image->data(), image->size())), "again");
  SLUICE_CHECK(again.has_value());
  SLUICE_CHECK(again->size() == tensors.size());
  auto left = tensors.begin();
  for (const auto& [name, view] : *again) {
    SLUICE_CHECK(name == left->first);
    SLUICE_CHECK(view.dtype == left->second.dtype);
    SLUICE_CHECK(view.shape == left->second.shape);
    SLUICE_CHECK(view.bytes.size() == left->second.bytes.size());
    if (!view.bytes.empty()) {
      SLUICE_CHECK(std::memcmp(view.bytes.data(), left->second.bytes.data(), view.bytes.size()) ==
                   0);
    }
    ++left;
  }
}

std::string frame_of(std::string_view input) {
  if (input.empty()) {
    return {};
  }
  const auto mode = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  if (mode % 2 == 0 || input.size() < 2) {
    return std::string(input);
  }
  std::uint16_t data_bytes = 0;
  std::memcpy(&data_bytes, input.data(), sizeof(data_bytes));
  input.remove_prefix(sizeof(data_bytes));
  const std::uint64_t header_bytes = input.size();
  std::string image(sizeof(header_bytes), '\0');
  std::memcpy(image.data(), &header_bytes, sizeof(header_bytes));
  image += input;
  image.append(data_bytes, '\x5a');
  return image;
}

void run(std::string_view input) {
  const std::string image = frame_of(input);
  const auto file = std::as_bytes(std::span(image.data(), image.size()));
  const Result<TensorMap> tensors = parse_safetensors(file, "fuzz");
  if (!tensors) {
    SLUICE_CHECK(!tensors.error().message.empty());
    SLUICE_CHECK(tensors.error().message.size() < 2000);
    return;
  }
  check_views(*tensors, file);
  check_round_trip(*tensors);
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
