#include "server/media_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace sluice {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? std::optional(lower - 'a' + 10) : std::nullopt;
}

// Percent-encoding taken away; none when it is broken or hides a zero byte.
std::optional<std::string> decoded_path(std::string_view text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const auto high = i + 2 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
      const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
      if (!high || !low) {
        return std::nullopt;
      }
      c = static_cast<char>(*high * 16 + *low);
      i += 2;
    }
    if (c == '\0') {
      return std::nullopt;
    }
    path += c;
  }
  return path;
}

// "file:///a", "file://localhost/a" and "file:/a" name /a.
std::optional<std::string> path_of(std::string_view url) {
  constexpr std::string_view kScheme = "file:";
  url.remove_prefix(std::min(url.size(), kScheme.size()));
  if (url.starts_with("//")) {
    url.remove_prefix(2);
    constexpr std::string_view kHost = "localhost";
    if (url.starts_with(kHost)) {
      url.remove_prefix(kHost.size());
    }
  }
  return url.starts_with('/') ? decoded_path(url) : std::nullopt;
}

std::unexpected<Error> refuse() {
  return fail(ErrorCode::unsupported, "this file: URL is not below the server's media folder");
}

int open_beneath(int directory, const char* path) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // a pipe must not hold us up
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, directory, path, &how, sizeof(how)));
}

Result<std::vector<std::byte>> read_all(int file, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file, bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return fail(ErrorCode::io, "the media file cannot be read to its end");
    }
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace

Result<std::vector<std::byte>> read_media_file(std::string_view url,
                                               const std::filesystem::path& root,
                                               std::size_t bytes_max) {
  if (root.empty()) {
    return fail(ErrorCode::unsupported, "this server reads no files");
  }
  const auto path = path_of(url);
  if (!path) {
    return refuse();
  }
  const std::filesystem::path inside =
      std::filesystem::path(*path).lexically_normal().lexically_relative(root.lexically_normal());
  if (inside.empty() || *inside.begin() == "..") {
    return refuse();
  }
  const Descriptor folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Descriptor file(folder.number() < 0 ? -1 : open_beneath(folder.number(), inside.c_str()));
  if (file.number() < 0) {
    const int error = errno;
    if (error == EXDEV || error == ELOOP) {
      return refuse();
    }
    return fail(
        error == ENOENT || error == ENOTDIR ? ErrorCode::not_found : ErrorCode::io,
        fmt::format("the media file cannot be opened: {}", std::generic_category().message(error)));
  }
  struct stat facts{};
  if (::fstat(file.number(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return fail(ErrorCode::invalid_argument, "this file: URL names something else than a file");
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size > bytes_max) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("the media file has {} bytes, want at most {}", size, bytes_max));
  }
  return read_all(file.number(), size);
}

}  // namespace sluice
