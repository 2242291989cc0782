// What tokens below 0 stand for. The owner of a cache gives such names to whatever a model's
// vocabulary has no token for, and only it knows what they mean; in a cache file a name goes with
// its content, and has another number when it is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

class TokenNames {
 public:
  TokenNames() = default;
  TokenNames(const TokenNames&) = delete;
  TokenNames& operator=(const TokenNames&) = delete;
  virtual ~TokenNames() = default;

  // None: the name will never be used again.
  virtual std::optional<std::string> content_of(std::int32_t name) const = 0;
  // Below 0; the same for the same content. None: this is no content of a name.
  virtual std::optional<std::int32_t> name_of(std::string_view content) = 0;
};

}  // namespace sluice
