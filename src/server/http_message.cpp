#include "server/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <random>

namespace sluice {
namespace {

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned byte = 0;
    if (text[at] == '%' && at + 2 < text.size()) {
      const char* digits = text.data() + at + 1;
      const auto [end, failure] = std::from_chars(digits, digits + 2, byte, 16);
      if (failure == std::errc() && end == digits + 2) {
        decoded += static_cast<char>(byte);
        at += 2;
        continue;
      }
    }
    decoded += text[at];
  }
  return decoded;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found = headers.find(boost::beast::string_view(name.data(), name.size()));
  if (found == headers.end()) {
    return {};
  }
  return {found->value().data(), found->value().size()};
}

std::string path_of_target(std::string_view target) {
  if (!target.starts_with('/')) {  // "http://host/path", as proxies send it
    const std::size_t scheme = target.find("://");
    const std::size_t slash =
        scheme == std::string_view::npos ? scheme : target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  target = target.substr(0, target.find_first_of("?#"));
  while (target.size() > 1 && target.ends_with('/')) {
    target.remove_suffix(1);
  }
  return percent_decoded(target);
}

std::string request_id_from(std::string_view value) {
  constexpr std::size_t kRequestIdBytesMax = 128;
  const bool printable =
      std::all_of(value.begin(), value.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!value.empty() && value.size() <= kRequestIdBytesMax && printable) {
    return std::string(value);
  }
  return random_id("req_");
}

std::string random_id(std::string_view prefix) {
  thread_local std::random_device device;
  return fmt::format("{}{:08x}{:08x}{:08x}{:08x}", prefix, device(), device(), device(), device());
}

std::string head_text(const HttpResponse& response, int http_version, bool keep_alive,
                      std::string_view framing_header) {
  std::string text = fmt::format("HTTP/1.{} {} {}\r\n", http_version % 10, response.status,
                                 reason_phrase(response.status));
  const auto add = [&](std::string_view name, std::string_view value) {
    text += name;
    text += ": ";
    std::transform(value.begin(), value.end(), std::back_inserter(text), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    });
    text += "\r\n";
  };
  if (!response.content_type.empty()) {
    add("Content-Type", response.content_type);
  }
  for (const auto& [name, value] : response.headers) {
    add(name, value);
  }
  text += framing_header;
  if (!keep_alive) {
    add("Connection", "close");
  } else if (http_version == 10) {
    add("Connection", "keep-alive");
  }
  text += "\r\n";
  return text;
}

std::string_view reason_phrase(int status) {
  const auto phrase =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  return {phrase.data(), phrase.size()};
}

bool is_gzip(std::string_view encoding) {
  return equal_ignoring_case(encoding, "gzip") || equal_ignoring_case(encoding, "x-gzip");
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace sluice
