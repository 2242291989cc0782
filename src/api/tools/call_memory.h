// The exact tokens of the calls that this server's answers contained, by the call's id.
//
// A client sends a call back as an id, a name and arguments; the template writes it anew, and that
// need not be what the model wrote: a closing tag that was missing, a number like 5.0, a string
// split into other tokens. The next prompt would then leave the computed prefix at the call. With
// the tokens of the call put in its place the prompt stays what the model saw.
//
// Thread rule: all methods from any thread.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/answer/answer_parser.h"
#include "request/request.h"

namespace sluice {

inline constexpr std::size_t kCallMemoryBytesMax = std::size_t{32} << 20;  // of a server

class CallMemory {
 public:
  // The least recently used calls are forgotten beyond that many bytes.
  explicit CallMemory(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // owner: only the same one finds the call again. Calls without exact tokens are not kept.
  void remember(std::string_view owner, const FinishedCall& call);

  // The tokens, when the call has that name and equal arguments.
  std::optional<std::vector<TokenId>> find(std::string_view owner, std::string_view id,
                                           std::string_view name,
                                           const boost::json::object& arguments);

 private:
  struct Entry {
    std::string key;  // owner and id
    std::string name;
    boost::json::object arguments;
    std::vector<TokenId> token_ids;
    std::size_t bytes = 0;
  };

  const std::size_t bytes_max_;
  std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;                                                 // last used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;  // views into entries_
};

}  // namespace sluice
