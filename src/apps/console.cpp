#include "apps/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sluice::apps {

void open_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
      // open() takes the lowest free number, which is this one.
      (void)open("/dev/null", descriptor == 0 ? O_RDONLY : O_WRONLY);
    }
  }
}

Result<void> flush_stdout() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) != 0 || failed_before) {
    const std::string reason = errno == 0 ? "write error" : std::strerror(errno);
    return fail(ErrorCode::io, "cannot write to standard output: " + reason);
  }
  return {};
}

}  // namespace sluice::apps
