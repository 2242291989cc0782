#include "cache/cache_file_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace sluice {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored as they are here");

class IndexWriter {
 public:
  template <class Number>
  void number(Number value) {
    static_assert(std::is_arithmetic_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void count(std::size_t value) { number(static_cast<std::uint32_t>(value)); }
  void text(std::string_view value) {
    count(value.size());
    bytes_.append(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads on after an error, which is asked for at the end: what it returns from then on is zero.
class IndexReader {
 public:
  explicit IndexReader(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  Number number() {
    Number value{};
    if (rest_.size() < sizeof(value)) {
      fail("it ends within a number");
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(value));
    rest_.remove_prefix(sizeof(value));
    return value;
  }

  std::string text() {
    const auto bytes = count(1);
    std::string value(rest_.substr(0, bytes));
    rest_.remove_prefix(bytes);
    return value;
  }

  // Of a list whose items take at least so many bytes each: no more than there are bytes for.
  std::size_t count(std::size_t item_bytes_min) {
    const auto count = number<std::uint32_t>();
    if (count > rest_.size() / item_bytes_min) {
      fail("it ends within a list");
      return 0;
    }
    return count;
  }

  // An index into a list of `size` items.
  std::int32_t reference(std::size_t size) {
    const auto value = number<std::uint32_t>();
    if (value >= size || value > std::numeric_limits<std::int32_t>::max()) {
      fail("it names an item that is not there");
      return 0;
    }
    return static_cast<std::int32_t>(value);
  }

  // Finite and not negative.
  double quantity() {
    const auto value = number<double>();
    if (!std::isfinite(value) || value < 0.0) {
      fail("a number is out of range");
      return 0.0;
    }
    return value;
  }

  void fail(std::string_view reason) {
    if (problem_.empty()) {
      problem_ = reason;
    }
    rest_ = {};
  }
  bool failed() const { return !problem_.empty(); }
  bool at_end() const { return rest_.empty(); }
  const std::string& problem() const { return problem_; }

 private:
  std::string_view rest_;
  std::string problem_;
};

constexpr std::size_t kTextBytesMin = sizeof(std::uint32_t);
constexpr std::size_t kNodeBytes = (1 + kPrefixBlockTokens) * sizeof(std::int32_t);
constexpr std::size_t kCheckpointBytes = sizeof(std::uint32_t) + 2 * sizeof(double);
constexpr std::size_t kPinBytesMin = sizeof(std::uint32_t) + 2 * kTextBytesMin + sizeof(double);

constexpr auto token_of = &CacheFileIndex::Name::token;

void read_names(IndexReader& reader, CacheFileIndex& index) {
  index.names.resize(reader.count(sizeof(std::int32_t) + kTextBytesMin));
  const CacheFileIndex::Name* last = nullptr;
  for (CacheFileIndex::Name& name : index.names) {
    name = {.token = reader.number<std::int32_t>(), .content = reader.text()};
    if (name.token >= 0 || (last != nullptr && name.token <= last->token)) {
      reader.fail("the names are not in order");
      return;
    }
    last = &name;
  }
}

void read_nodes(IndexReader& reader, CacheFileIndex& index) {
  index.nodes.resize(reader.count(kNodeBytes));
  for (std::size_t i = 0; i < index.nodes.size() && !reader.failed(); ++i) {
    CacheFileIndex::Node& node = index.nodes[i];
    node.parent = reader.number<std::int32_t>();
    const bool known = node.parent >= 0
                           ? static_cast<std::size_t>(node.parent) < i
                           : static_cast<std::size_t>(-1 - node.parent) < index.namespaces.size();
    if (!known) {
      reader.fail("a node has no parent");
    }
    for (std::int32_t& token : node.tokens) {
      token = reader.number<std::int32_t>();
      if (token < 0 && !std::ranges::binary_search(index.names, token, {}, token_of)) {
        reader.fail("a token has no name");
      }
    }
  }
}

void read_checkpoints(IndexReader& reader, CacheFileIndex& index) {
  std::vector<bool> taken(index.nodes.size());
  index.checkpoints.resize(reader.count(kCheckpointBytes));
  for (CacheFileIndex::Checkpoint& checkpoint : index.checkpoints) {
    checkpoint = {.node = reader.reference(index.nodes.size()),
                  .weight = reader.quantity(),
                  .uses = reader.quantity()};
    if (reader.failed()) {
      return;
    }
    if (taken[static_cast<std::size_t>(checkpoint.node)]) {
      reader.fail("a node has two states");
      return;
    }
    taken[static_cast<std::size_t>(checkpoint.node)] = true;
  }
}

void read_pins(IndexReader& reader, CacheFileIndex& index) {
  std::vector<bool> taken(index.checkpoints.size());
  index.pins.resize(reader.count(kPinBytesMin));
  for (CacheFileIndex::Pin& pin : index.pins) {
    pin.checkpoint = reader.reference(index.checkpoints.size());
    pin.id = reader.text();
    pin.name = reader.text();
    const auto seconds = reader.number<double>();
    if (!std::isfinite(seconds)) {
      reader.fail("a number is out of range");
    }
    if (reader.failed()) {
      return;
    }
    if (seconds >= 0.0) {
      pin.seconds_left = seconds;
    }
    if (taken[static_cast<std::size_t>(pin.checkpoint)]) {
      reader.fail("a state is pinned twice");
      return;
    }
    taken[static_cast<std::size_t>(pin.checkpoint)] = true;
  }
}

const std::string* value_of(const CacheIdentity& identity, const std::string& name) {
  for (const CacheFact& fact : identity) {
    if (fact.name == name) {
      return &fact.value;
    }
  }
  return nullptr;
}

}  // namespace

std::string encode_cache_file_index(const CacheFileIndex& index) {
  IndexWriter writer;
  writer.count(index.identity.size());
  for (const CacheFact& fact : index.identity) {
    writer.text(fact.name);
    writer.text(fact.value);
  }
  writer.number(index.block_bytes);
  writer.number(index.slot_bytes);
  writer.count(index.namespaces.size());
  for (const std::string& salt : index.namespaces) {
    writer.text(salt);
  }
  writer.count(index.names.size());
  for (const CacheFileIndex::Name& name : index.names) {
    writer.number(name.token);
    writer.text(name.content);
  }
  writer.count(index.nodes.size());
  for (const CacheFileIndex::Node& node : index.nodes) {
    writer.number(node.parent);
    for (const std::int32_t token : node.tokens) {
      writer.number(token);
    }
  }
  writer.count(index.checkpoints.size());
  for (const CacheFileIndex::Checkpoint& checkpoint : index.checkpoints) {
    writer.number(static_cast<std::uint32_t>(checkpoint.node));
    writer.number(checkpoint.weight);
    writer.number(checkpoint.uses);
  }
  writer.count(index.pins.size());
  for (const CacheFileIndex::Pin& pin : index.pins) {
    writer.number(static_cast<std::uint32_t>(pin.checkpoint));
    writer.text(pin.id);
    writer.text(pin.name);
    writer.number(pin.seconds_left.value_or(-1.0));
  }
  return writer.take();
}

Result<CacheFileIndex> parse_cache_file_index(std::string_view bytes) {
  IndexReader reader(bytes);
  CacheFileIndex index;
  index.identity.resize(reader.count(2 * kTextBytesMin));
  for (CacheFact& fact : index.identity) {
    fact.name = reader.text();
    fact.value = reader.text();
  }
  index.block_bytes = reader.number<std::uint64_t>();
  index.slot_bytes = reader.number<std::uint64_t>();
  index.namespaces.resize(reader.count(kTextBytesMin));
  for (std::string& salt : index.namespaces) {
    salt = reader.text();
  }
  read_names(reader, index);
  read_nodes(reader, index);
  read_checkpoints(reader, index);
  read_pins(reader, index);
  if (!reader.failed() && !reader.at_end()) {
    reader.fail("it goes on after its end");
  }
  if (reader.failed()) {
    return fail(ErrorCode::corrupt_data, "the index is damaged: " + reader.problem());
  }
  return index;
}

Result<void> check_cache_identity(const CacheIdentity& stored, const CacheIdentity& here) {
  for (const CacheFact& fact : here) {
    const std::string* value = value_of(stored, fact.name);
    if (value == nullptr || *value != fact.value) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: saved with {}, here {}", fact.name,
                              value == nullptr ? "none" : *value, fact.value));
    }
  }
  for (const CacheFact& fact : stored) {
    if (value_of(here, fact.name) == nullptr) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: saved with {}, here none", fact.name, fact.value));
    }
  }
  return {};
}

}  // namespace sluice
