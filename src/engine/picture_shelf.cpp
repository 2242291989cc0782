#include "engine/picture_shelf.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

std::size_t bytes_of(const PictureRows& rows) {
  return rows.size() * sizeof(float);
}

}  // namespace

TokenId PictureShelf::name_of(const VisionDigest& digest) {
  if (const auto known = by_digest_.find(digest); known != by_digest_.end()) {
    use(known->second);
    return known->second->name;
  }
  SLUICE_CHECK(last_name_ > std::numeric_limits<TokenId>::min());
  if (std::ssize(entries_) == kNamesMax) {
    Entry& oldest = entries_.back();
    drop_rows(oldest);
    by_digest_.erase(oldest.digest);
    by_name_.erase(oldest.name);
    entries_.pop_back();
  }
  entries_.push_front({.digest = digest, .name = --last_name_, .rows = nullptr});
  by_digest_.emplace(digest, entries_.begin());
  by_name_.emplace(last_name_, entries_.begin());
  return last_name_;
}

std::optional<std::string> PictureShelf::content_of(std::int32_t name) const {
  const auto known = by_name_.find(name);
  if (known == by_name_.end()) {
    return std::nullopt;
  }
  const VisionDigest& digest = known->second->digest;
  return std::string(digest.begin(), digest.end());
}

std::optional<std::int32_t> PictureShelf::name_of(std::string_view content) {
  VisionDigest digest{};
  if (content.size() != digest.size()) {
    return std::nullopt;
  }
  std::ranges::copy(content, digest.begin());
  return name_of(digest);
}

std::shared_ptr<const PictureRows> PictureShelf::find(TokenId name) {
  const auto known = by_name_.find(name);
  if (known == by_name_.end()) {
    return nullptr;
  }
  use(known->second);
  return known->second->rows;
}

void PictureShelf::keep(TokenId name, std::shared_ptr<const PictureRows> rows) {
  const auto known = by_name_.find(name);
  if (known == by_name_.end() || bytes_of(*rows) > rows_bytes_max_) {
    return;
  }
  Entry& entry = *known->second;
  use(known->second);
  drop_rows(entry);
  for (auto other = entries_.rbegin(); rows_bytes_ + bytes_of(*rows) > rows_bytes_max_; ++other) {
    drop_rows(*other);
  }
  rows_bytes_ += bytes_of(*rows);
  entry.rows = std::move(rows);
}

void PictureShelf::forget_rows() {
  for (Entry& entry : entries_) {
    drop_rows(entry);
  }
}

bool PictureShelf::drop_unused_rows() {
  const auto unused = std::find_if(entries_.rbegin(), entries_.rend(),
                                   [](const Entry& entry) { return entry.rows.use_count() == 1; });
  if (unused == entries_.rend()) {
    return false;
  }
  drop_rows(*unused);
  return true;
}

void PictureShelf::drop_rows(Entry& entry) {
  if (entry.rows) {
    rows_bytes_ -= bytes_of(*entry.rows);
    entry.rows.reset();
  }
}

void PictureShelf::check_invariants() const {
  SLUICE_CHECK(entries_.size() == by_digest_.size());
  SLUICE_CHECK(entries_.size() == by_name_.size());
  SLUICE_CHECK(std::ssize(entries_) <= kNamesMax);
  std::size_t bytes = 0;
  for (const Entry& entry : entries_) {
    SLUICE_CHECK(&*by_digest_.at(entry.digest) == &entry);
    SLUICE_CHECK(&*by_name_.at(entry.name) == &entry);
    bytes += entry.rows ? bytes_of(*entry.rows) : 0;
  }
  SLUICE_CHECK(bytes == rows_bytes_);
  SLUICE_CHECK(bytes <= rows_bytes_max_);
}

}  // namespace sluice
