#include "text/rust_call.h"

namespace sluice {
namespace {

ErrorCode to_error_code(sluice_text_code code) {
  switch (code) {
    case SLUICE_TEXT_INVALID_ARGUMENT:
      return ErrorCode::invalid_argument;
    case SLUICE_TEXT_CORRUPT_DATA:
      return ErrorCode::corrupt_data;
    case SLUICE_TEXT_UNSUPPORTED:
      return ErrorCode::unsupported;
    case SLUICE_TEXT_RESOURCE_EXHAUSTED:
      return ErrorCode::resource_exhausted;
    case SLUICE_TEXT_OK:
    case SLUICE_TEXT_INTERNAL:
      break;
  }
  return ErrorCode::internal;
}

}  // namespace

Error take_rust_error(sluice_text_code code, sluice_text_error* error, std::string where) {
  const std::uint8_t* data = nullptr;
  const std::size_t size = sluice_text_error_message(error, &data);
  std::string message(reinterpret_cast<const char*>(data), size);
  sluice_text_error_free(error);
  return Error{to_error_code(code), std::move(message), std::move(where)};
}

std::string take_rust_bytes(sluice_bytes bytes) {
  std::string result;
  if (bytes.data != nullptr) {
    result.assign(reinterpret_cast<const char*>(bytes.data), bytes.len);
  }
  sluice_bytes_free(bytes);
  return result;
}

std::vector<std::int32_t> take_rust_ids(sluice_ids ids) {
  std::vector<std::int32_t> result;
  if (ids.data != nullptr) {
    result.assign(ids.data, ids.data + ids.len);
  }
  sluice_ids_free(ids);
  return result;
}

std::vector<std::pair<std::size_t, std::size_t>> take_rust_ranges(sluice_ranges ranges) {
  std::vector<std::pair<std::size_t, std::size_t>> result;
  result.reserve(ranges.len);
  for (const sluice_range& range : std::span(ranges.data, ranges.len)) {
    result.emplace_back(range.begin, range.end);
  }
  sluice_ranges_free(ranges);
  return result;
}

}  // namespace sluice
