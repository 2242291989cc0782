// What the engine remembers of pictures: a name for each, and the rows of the last ones encoded.
//
// The name is a negative token id. It stands for the placeholders of the picture in the tokens of a
// sequence, so that whatever compares tokens (the prefix tree, followers, pins) compares pictures
// too, exactly: two pictures never have the same name, and a picture keeps its name until
// kNamesMax others came after it. Then what is stored under the old name is never found again.
//
// Thread rule: one owner (the engine thread).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/token_names.h"
#include "request/request.h"

namespace sluice {

// Rows of one picture as the text model takes them: [token_count][hidden_size] fp32.
using PictureRows = std::vector<float>;

class PictureShelf final : public TokenNames {
 public:
  static constexpr std::int64_t kNamesMax = 1 << 16;

  // rows_bytes_max: of the rows that are kept for later requests.
  explicit PictureShelf(std::size_t rows_bytes_max) : rows_bytes_max_(rows_bytes_max) {}

  // At most 2^31 new names in the life of a shelf.
  TokenId name_of(const VisionDigest& digest);

  // The digest as the content of a name.
  std::optional<std::string> content_of(std::int32_t name) const override;
  std::optional<std::int32_t> name_of(std::string_view content) override;

  // The rows of a picture; null when they are not here (any more).
  std::shared_ptr<const PictureRows> find(TokenId name);
  // Whoever holds the rows keeps them alive: dropping them here only forgets them.
  void keep(TokenId name, std::shared_ptr<const PictureRows> rows);
  void forget_rows();
  // Drops the rows used longest ago of those that nobody else holds. False: there are none.
  bool drop_unused_rows();

  std::size_t rows_bytes() const { return rows_bytes_; }

  void check_invariants() const;

 private:
  struct Entry {
    VisionDigest digest{};
    TokenId name = 0;
    std::shared_ptr<const PictureRows> rows;
  };
  using Entries = std::list<Entry>;

  void use(Entries::iterator entry) { entries_.splice(entries_.begin(), entries_, entry); }
  void drop_rows(Entry& entry);

  std::size_t rows_bytes_max_;
  std::size_t rows_bytes_ = 0;
  Entries entries_;  // last used first
  std::map<VisionDigest, Entries::iterator> by_digest_;
  std::map<TokenId, Entries::iterator> by_name_;
  TokenId last_name_ = 0;  // names descend
};

}  // namespace sluice
