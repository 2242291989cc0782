#include "apps/serve_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

namespace sluice::apps {
namespace {

constexpr int kListenSecondsMax = 1800;  // large weights from a slow disk
constexpr int kEndTries = 50;            // of 100 ms, then it is killed
constexpr std::string_view kListening = "listening on ";

// In the child, between fork and exec: only what may be called there.
[[noreturn]] void become(char* const* arguments, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent || dup2(output, STDOUT_FILENO) < 0) {
    _exit(127);
  }
  execv("/proc/self/exe", arguments);
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<ServeChild>> ServeChild::start(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"sluice",  "serve",       "--port", "0",
                                 "--quiet", "--log-level", "error"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::io, fmt::format("pipe: {}", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process == 0) {
    become(pointers.data(), pipe_ends[1], parent);
  }
  close(pipe_ends[1]);
  if (process < 0) {
    close(pipe_ends[0]);
    return fail(ErrorCode::io, fmt::format("fork: {}", std::strerror(errno)));
  }
  std::unique_ptr<ServeChild> child(new ServeChild(process, pipe_ends[0]));
  SLUICE_TRY(child->wait_until_listening());
  return child;
}

Result<void> ServeChild::wait_until_listening() {
  std::string said;
  while (said.find('\n') == std::string::npos) {
    pollfd ready{.fd = output_, .events = POLLIN, .revents = 0};
    const int count = poll(&ready, 1, kListenSecondsMax * 1000);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    std::array<char, 512> bytes{};
    const ssize_t got = count > 0 ? read(output_, bytes.data(), bytes.size()) : -1;
    if (got <= 0) {
      return fail(ErrorCode::internal, got == 0 ? "sluice serve ended before it listened"
                                                : "sluice serve did not listen in time");
    }
    said.append(bytes.data(), static_cast<std::size_t>(got));
  }
  if (!said.starts_with(kListening)) {
    return fail(ErrorCode::internal, fmt::format("sluice serve said: {}", said));
  }
  url_ = said.substr(kListening.size(), said.find('\n') - kListening.size());
  return {};
}

ServeChild::~ServeChild() {
  kill(process_, SIGTERM);
  for (int i = 0; i < kEndTries; ++i) {
    if (waitpid(process_, nullptr, WNOHANG) != 0) {
      close(output_);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  close(output_);
}

}  // namespace sluice::apps
