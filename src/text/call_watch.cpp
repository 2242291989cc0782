#include "text/call_watch.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kFunctionTag = "<function";

}  // namespace

Result<void> CallWatch::open(const CompiledGrammar& calls, std::int32_t call_token) {
  close();
  matcher_ = SLUICE_TRY(calls.start());
  return matcher_->accept(call_token);
}

Result<CallWatch::Verdict> CallWatch::watch(std::int32_t token, std::string_view bytes) {
  if (opening_.empty()) {
    bytes.remove_prefix(std::min(bytes.find_first_not_of(kSpace), bytes.size()));
  }
  opening_ += bytes;
  if (opening_.starts_with('{')) {
    close();
    return Verdict::other_form;
  }
  // What the grammar refuses here is something else. (So is a function nobody declared, if its name
  // began in the token that completed the tag.)
  if (!matcher_->accept(token)) {
    close();
    return Verdict::no_call;
  }
  inside_ = opening_.starts_with(kFunctionTag);
  return inside_ ? Verdict::call : Verdict::undecided;
}

void CallWatch::close() {
  matcher_.reset();
  inside_ = false;
  opening_.clear();
}

std::optional<GrammarMatcher> CallWatch::take_matcher() {
  std::optional<GrammarMatcher> matcher = std::move(matcher_);
  close();
  return matcher;
}

}  // namespace sluice
