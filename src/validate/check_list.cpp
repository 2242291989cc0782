#include "validate/check_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace sluice::validate {
namespace {

bool holds(const std::vector<std::string>& ids, std::string_view id) {
  return std::ranges::find(ids, id) != ids.end();
}

const CheckInfo* find_check(std::string_view id) {
  const auto at = std::ranges::find(all_checks(), id, &CheckInfo::id);
  return at == all_checks().end() ? nullptr : &*at;
}

Result<void> refuse_unknown(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    if (find_check(id) == nullptr) {
      std::vector<std::string_view> known;
      for (const CheckInfo& info : all_checks()) {
        known.push_back(info.id);
      }
      return fail(ErrorCode::invalid_argument,
                  fmt::format("check '{}': there are {}", id, fmt::join(known, ", ")));
    }
  }
  return {};
}

}  // namespace

const std::vector<CheckInfo>& all_checks() {
  static const std::vector<CheckInfo> checks{
      {"artifact", "model files",
       "Every tensor the configuration expects is there, whole, with finite and plausible values."},
      {"isa", "instruction sets",
       "Every kernel set this machine has computes the same logits, bit for bit."},
      {"cuts", "prompts in pieces",
       "However a prompt is cut into steps, its logits are the same, bit for bit."},
      {"batch", "exactness",
       "Mixed, cancelled, preempted and cached requests get the answer they would get alone, bit "
       "for "
       "bit."},
      {"reset", "state reset", "A long sequence leaves nothing behind for the next one."},
      {"golden", "stored answers",
       "Greedy tokens are those of an independent implementation (--golden, or stored beside the "
       "weights)."},
      {"reference", "quality",
       "Next tokens are as likely as for another model, normally the one this was quantised from "
       "(--reference)."},
      {"needles", "facts in long texts",
       "A fact is found in a long prompt, and a second question to the same text is answered from "
       "the "
       "cache as it would be without.",
       true},
      {"cache", "prefix cache",
       "What is reused is what the design promises, and answers with it equal answers without it.",
       true},
      {"rates", "rates",
       "How fast prompts are read and answers written here. Measured, not judged.", true},
      {"gaps", "a long prompt beside an answer",
       "How long a running answer waits for its next token while a prompt is read. Measured, not "
       "judged.",
       true},
  };
  return checks;
}

Result<std::vector<std::string>> choose_checks(const std::vector<std::string>& only,
                                               const std::vector<std::string>& skip) {
  SLUICE_TRY(refuse_unknown(only));
  SLUICE_TRY(refuse_unknown(skip));
  std::vector<std::string> chosen;
  for (const CheckInfo& info : all_checks()) {
    const bool wanted = only.empty() || holds(only, info.id);
    if (wanted && !holds(skip, info.id)) {
      chosen.emplace_back(info.id);
    }
  }
  if (chosen.empty()) {
    return fail(ErrorCode::invalid_argument, "--only and --skip leave no check");
  }
  return chosen;
}

bool CheckRun::wants(std::string_view id) const {
  return holds(chosen_, id);
}

bool CheckRun::wants_any(const std::vector<std::string_view>& ids) const {
  return std::ranges::any_of(ids, [this](std::string_view id) { return wants(id); });
}

void CheckRun::run(std::string_view id, const Body& body) {
  if (!wants(id)) {
    return;
  }
  const CheckInfo* info = find_check(id);
  SLUICE_CHECK(info != nullptr);
  Check check{.id = std::string(id),
              .title = std::string(info->title),
              .proves = std::string(info->proves),
              .summary = ""};
  const Clock::TimePoint begin = clock_.now();
  if (const Result<void> done = body(check); !done) {
    check.add_finding(done.error().message);
    if (check.summary.empty()) {
      check.summary = "could not be finished";
    }
  }
  check.seconds = seconds_between(begin, clock_.now());
  listener_(check);
  report_.checks.push_back(std::move(check));
}

void CheckRun::skip(std::string_view id, const std::string& why) {
  run(id, [&why](Check& check) -> Result<void> {
    check.skip(why);
    return {};
  });
}

}  // namespace sluice::validate
