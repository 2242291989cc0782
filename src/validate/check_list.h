// Which checks there are, which were asked for, and how one is run into a report. The only place
// that knows ids, titles and what each proves.
//
// Thread rule: one owner.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "validate/validation_report.h"

namespace sluice::validate {

struct CheckInfo {
  std::string_view id;
  std::string_view title;
  std::string_view proves;
  bool needs_server = false;  // asked over HTTP: possible with --url
};

// In the order in which they run.
const std::vector<CheckInfo>& all_checks();

// Ids chosen by --only (none: all) without those of --skip. Error invalid_argument: an unknown id,
// or nothing is left.
Result<std::vector<std::string>> choose_checks(const std::vector<std::string>& only,
                                               const std::vector<std::string>& skip);

// Runs checks, keeps what they found and tells the listener of each.
class CheckRun {
 public:
  using Listener = std::function<void(const Check& check)>;
  using Body = std::function<Result<void>(Check& check)>;

  CheckRun(Report& report, std::vector<std::string> chosen, const Clock& clock, Listener listener)
      : report_(report),
        chosen_(std::move(chosen)),
        clock_(clock),
        listener_(std::move(listener)) {}

  bool wants(std::string_view id) const;
  bool wants_any(const std::vector<std::string_view>& ids) const;

  // Nothing when the check was not chosen. An Error of the body is something wrong: the check fails
  // with it.
  void run(std::string_view id, const Body& body);
  void skip(std::string_view id, const std::string& why);

  Report& report() { return report_; }
  const Clock& clock() const { return clock_; }

 private:
  Report& report_;
  std::vector<std::string> chosen_;
  const Clock& clock_;
  Listener listener_;
};

}  // namespace sluice::validate
