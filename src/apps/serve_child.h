// This program once more, as `sluice serve` on a free port of this machine: for commands that ask a
// server. It ends with the object, and with this process however that ends.
//
// Thread rule: one owner, the thread that made it (the child is told when that thread ends).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace sluice::apps {

class ServeChild {
 public:
  // arguments: what stands after `sluice serve` (the port is added). Returns when it listens and
  // the model is there. Errors: io (no process), internal (it ended, or said nothing for long).
  static Result<std::unique_ptr<ServeChild>> start(const std::vector<std::string>& arguments);
  ~ServeChild();
  ServeChild(const ServeChild&) = delete;
  ServeChild& operator=(const ServeChild&) = delete;

  const std::string& url() const { return url_; }  // "http://127.0.0.1:40001"

 private:
  ServeChild(pid_t process, int output) : process_(process), output_(output) {}
  Result<void> wait_until_listening();

  pid_t process_;
  int output_;  // its stdout
  std::string url_;
};

}  // namespace sluice::apps
