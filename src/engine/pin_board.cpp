#include "engine/pin_board.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice {
namespace {

std::optional<Clock::TimePoint> end_of(const PinLabel& label, Clock::TimePoint now) {
  if (!label.seconds) {
    return std::nullopt;
  }
  const std::chrono::duration<double> seconds(*label.seconds);
  return now + std::chrono::duration_cast<Clock::TimePoint::duration>(seconds);
}

}  // namespace

Result<std::optional<PromptPinned>> PinBoard::pin(std::string_view salt,
                                                  std::span<const TokenId> tokens,
                                                  const PinLabel& label, Clock::TimePoint now) {
  const auto node = cache_.pin(salt, tokens);
  if (!node && node.error().over_budget) {
    return fail(ErrorCode::resource_exhausted,
                "pinning these " + std::to_string(tokens.size()) + " tokens takes " +
                    std::to_string(node.error().bytes_wanted) + " bytes more; " +
                    std::to_string(cache_.pinned_bytes()) + " of the " +
                    std::to_string(cache_.pinned_bytes_max()) + " bytes for pins are taken",
                "pin");
  }
  const auto known = node ? std::ranges::find(pins_, *node, &Pin::node) : pins_.end();
  if (known != pins_.end()) {
    known->prefix.name = label.name;
    known->prefix.ends_at = end_of(label, now);
    return PromptPinned{.prefix = known->prefix, .is_new = false};
  }
  if (count() >= kPinsMax) {
    if (node) {
      cache_.unpin(*node);
    }
    return fail(ErrorCode::resource_exhausted,
                std::to_string(kPinsMax) + " prefixes are pinned, which is the limit", "pin");
  }
  if (!node) {
    return std::nullopt;
  }
  pins_.push_back({.prefix = {.id = label.id,
                              .name = label.name,
                              .tokens = std::ssize(tokens),
                              .bytes = cache_.pin_bytes(*node),
                              .ends_at = end_of(label, now)},
                   .salt = std::string(salt),
                   .node = *node});
  return PromptPinned{.prefix = pins_.back().prefix};
}

bool PinBoard::restore(const LoadedPin& loaded, Clock::TimePoint now) {
  const PinLabel label{.id = loaded.label.id,
                       .name = loaded.label.name,
                       .seconds = loaded.label.seconds_left.transform(
                           [](double seconds) { return std::min(seconds, kPinSecondsMax); })};
  const auto is_known = [&](const Pin& pin) { return pin.prefix.id == label.id; };
  if (std::ranges::any_of(pins_, is_known)) {
    return false;
  }
  const auto node = cache_.pin(loaded.salt, loaded.tokens);
  if (node && std::ranges::find(pins_, *node, &Pin::node) != pins_.end()) {
    return false;
  }
  const auto pinned = node ? pin(loaded.salt, loaded.tokens, label, now) : std::nullopt;
  return pinned && *pinned;
}

std::vector<CacheFilePin> PinBoard::labels(Clock::TimePoint now) const {
  std::vector<CacheFilePin> labels;
  labels.reserve(pins_.size());
  for (const Pin& pin : pins_) {
    labels.push_back({.node = pin.node,
                      .id = pin.prefix.id,
                      .name = pin.prefix.name,
                      .seconds_left = pin.prefix.ends_at.transform(
                          [now](Clock::TimePoint end) { return seconds_between(now, end); })});
  }
  return labels;
}

template <class Condition>
std::size_t PinBoard::unpin_if(Condition condition) {
  return std::erase_if(pins_, [&](const Pin& pin) {
    if (!condition(pin)) {
      return false;
    }
    cache_.unpin(pin.node);
    return true;
  });
}

bool PinBoard::unpin(std::string_view id) {
  return unpin_if([id](const Pin& pin) { return pin.prefix.id == id; }) > 0;
}

void PinBoard::unpin_all() {
  unpin_if([](const Pin&) { return true; });
}

void PinBoard::unpin_all_of(std::string_view salt) {
  unpin_if([salt](const Pin& pin) { return pin.salt == salt; });
}

void PinBoard::end_expired(Clock::TimePoint now) {
  unpin_if([now](const Pin& pin) { return pin.prefix.ends_at && *pin.prefix.ends_at <= now; });
}

std::optional<Clock::TimePoint> PinBoard::next_end() const {
  std::optional<Clock::TimePoint> next;
  for (const Pin& pin : pins_) {
    if (pin.prefix.ends_at && (!next || *pin.prefix.ends_at < *next)) {
      next = pin.prefix.ends_at;
    }
  }
  return next;
}

void PinBoard::count_hits(const SequenceCache& sequence, Clock::TimePoint now) {
  if (pins_.empty()) {
    return;
  }
  for (const NodeId node : cache_.pinned_on_path(sequence)) {
    PinnedPrefix& hit = std::ranges::find(pins_, node, &Pin::node)->prefix;
    ++hit.hits;
    hit.last_hit_at = now;
  }
}

std::vector<PinnedPrefix> PinBoard::list() const {
  std::vector<PinnedPrefix> list;
  list.reserve(pins_.size());
  for (const Pin& pin : pins_) {
    list.push_back(pin.prefix);
  }
  return list;
}

}  // namespace sluice
