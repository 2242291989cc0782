#include "server/media_fetch.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/vector_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>
#include <charconv>
#include <exception>
#include <optional>
#include <utility>

namespace sluice {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr std::size_t kHeaderBytesMax = std::size_t{32} << 10;
constexpr std::size_t kUrlBytesMax = std::size_t{8} << 10;

// What one hop answered: a body, or where to go on.
struct Answer {
  std::vector<std::byte> body;
  std::optional<std::string> location;
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  }
  return result;
}

// Where one hop goes.
struct Target {
  bool tls = false;
  std::string host;  // lower case, without brackets
  std::string port;
  std::string host_header;
  std::string path;
};

Result<Target> target_of(const boost::urls::url& url) {
  Target target;
  target.tls = url.scheme_id() == boost::urls::scheme::https;
  if (!target.tls && url.scheme_id() != boost::urls::scheme::http) {
    return fail(ErrorCode::unsupported, "only http and https URLs are fetched");
  }
  if (url.has_userinfo() || url.encoded_host().empty() ||
      std::string_view(url.encoded_host()).find('%') != std::string_view::npos) {
    return fail(ErrorCode::unsupported, "this kind of URL is not fetched");
  }
  target.host =
      lower(url.host_type() == boost::urls::host_type::ipv6 ? url.host_address() : url.host());
  if (target.host.ends_with('.')) {
    target.host.pop_back();
  }
  target.port = url.has_port() ? std::string(url.port()) : target.tls ? "443" : "80";
  target.host_header = url.encoded_host_and_port();
  target.path = url.encoded_target();
  if (target.path.empty() || target.path.front() != '/') {
    target.path.insert(0, "/");
  }
  return target;
}

// One hop: an I/O context of its own, every step under the time limit of the whole.
class Hop {
 public:
  Hop(const Target& target, const FetchRules& rules, steady_clock::time_point deadline)
      : target_(target), rules_(rules), deadline_(deadline) {}

  Result<Answer> run() {
    const auto addresses = SLUICE_TRY(resolve());
    SLUICE_TRY(connect(addresses));
    if (!target_.tls) {
      return ask(socket_);
    }
    asio::ssl::context context(asio::ssl::context::tls_client);
    context.set_default_verify_paths();
    asio::ssl::stream<tcp::socket&> stream(socket_, context);
    SSL_set_min_proto_version(stream.native_handle(), TLS1_2_VERSION);
    SSL_set_tlsext_host_name(stream.native_handle(), target_.host.c_str());
    stream.set_verify_mode(asio::ssl::verify_peer);
    stream.set_verify_callback(asio::ssl::host_name_verification(target_.host));
    SLUICE_TRY(step([&](auto done) {
      stream.async_handshake(asio::ssl::stream_base::client, std::move(done));
    }));
    return ask(stream);
  }

 private:
  // Runs one operation to its end, or gives it up.
  template <typename Start>
  Result<void> step(Start start) {
    std::optional<error_code> outcome;
    start([&outcome](const error_code& error, const auto&...) { outcome = error; });
    io_.restart();
    while (!outcome) {
      const bool stopped = rules_.gives_up && rules_.gives_up();
      const auto left = deadline_ - steady_clock::now();
      if (stopped || left <= steady_clock::duration::zero()) {
        error_code ignored;
        socket_.close(ignored);
        resolver_.cancel();
        io_.run();  // of a name that is being resolved: until the system gives up
        return fail(stopped ? ErrorCode::cancelled : ErrorCode::deadline,
                    stopped ? "nobody waits for it any more"
                            : fmt::format("{} took more than {} ms", target_.host,
                                          rules_.time_max.count()));
      }
      constexpr std::chrono::milliseconds kLook{100};
      io_.run_one_for(std::min<steady_clock::duration>(left, kLook));
    }
    if (*outcome == http::error::body_limit) {
      return fail(ErrorCode::resource_exhausted,
                  fmt::format("it has more than {} bytes", rules_.bytes_max));
    }
    return *outcome ? Result<void>(fail(ErrorCode::io,
                                        fmt::format("{}: {}", target_.host, outcome->message())))
                    : Result<void>();
  }

  Result<std::vector<asio::ip::address>> resolve() {
    std::vector<asio::ip::address> addresses;
    if (rules_.resolve) {
      addresses = rules_.resolve(target_.host);
    } else {
      SLUICE_TRY(step([&](auto done) {
        resolver_.async_resolve(target_.host, target_.port,
                                [&addresses, done](const error_code& error, const auto& found) {
                                  for (const auto& entry : found) {
                                    addresses.push_back(entry.endpoint().address());
                                  }
                                  done(error);
                                });
      }));
    }
    if (addresses.empty()) {
      return fail(ErrorCode::io, target_.host + " has no address");
    }
    if (!std::ranges::all_of(addresses, rules_.may_dial)) {
      return fail(ErrorCode::unsupported, target_.host + " is not on the public Internet");
    }
    return addresses;
  }

  Result<void> connect(const std::vector<asio::ip::address>& addresses) {
    std::uint16_t port = 0;
    const auto [end, failure] =
        std::from_chars(target_.port.data(), target_.port.data() + target_.port.size(), port);
    if (failure != std::errc() || end != target_.port.data() + target_.port.size() || port == 0) {
      return fail(ErrorCode::unsupported, "the URL has no valid port");
    }
    std::vector<tcp::endpoint> endpoints;
    endpoints.reserve(addresses.size());
    for (const asio::ip::address& address : addresses) {
      endpoints.emplace_back(address, port);
    }
    return step([&](auto done) { asio::async_connect(socket_, endpoints, std::move(done)); });
  }

  template <typename Stream>
  Result<Answer> ask(Stream& stream) {
    http::request<http::empty_body> request(http::verb::get, target_.path, 11);
    request.set(http::field::host, target_.host_header);
    request.set(http::field::user_agent, "sluice");
    request.set(http::field::accept, "image/*, video/*");
    request.set(http::field::accept_encoding, "identity");
    request.set(http::field::connection, "close");
    SLUICE_TRY(step([&](auto done) { http::async_write(stream, request, std::move(done)); }));
    boost::beast::flat_buffer buffer;
    http::response_parser<http::vector_body<unsigned char>> parser;
    parser.header_limit(kHeaderBytesMax);
    parser.body_limit(rules_.bytes_max);
    SLUICE_TRY(
        step([&](auto done) { http::async_read_header(stream, buffer, parser, std::move(done)); }));
    const unsigned status = parser.get().result_int();
    constexpr unsigned kOk = 200;
    if (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) {
      return Answer{.body = {}, .location = std::string(parser.get()[http::field::location])};
    }
    if (status != kOk) {
      return fail(ErrorCode::io, fmt::format("{} answers with status {}", target_.host, status));
    }
    SLUICE_TRY(step([&](auto done) { http::async_read(stream, buffer, parser, std::move(done)); }));
    const auto bytes = std::as_bytes(std::span(parser.get().body()));
    return Answer{.body = {bytes.begin(), bytes.end()}, .location = {}};
  }

  const Target& target_;
  const FetchRules& rules_;
  const steady_clock::time_point deadline_;
  asio::io_context io_;
  tcp::resolver resolver_{io_};
  tcp::socket socket_{io_};
};

Result<boost::urls::url> parse_url(std::string_view text) {
  const auto parsed = text.size() <= kUrlBytesMax
                          ? boost::urls::parse_uri_reference({text.data(), text.size()})
                          : boost::urls::result<boost::urls::url_view>(
                                boost::urls::make_error_code(boost::urls::error::not_a_base));
  if (!parsed) {
    return fail(ErrorCode::unsupported, "it is not a URL");
  }
  return boost::urls::url(*parsed);
}

bool is_named(std::span<const std::string> domains, std::string_view host) {
  return std::ranges::any_of(domains,
                             [host](const std::string& domain) { return lower(domain) == host; });
}

Result<boost::urls::url> redirected(const boost::urls::url& from, const std::string& location) {
  const boost::urls::url reference = SLUICE_TRY(parse_url(location));
  boost::urls::url to;
  if (!boost::urls::resolve(from, reference, to)) {
    return fail(ErrorCode::unsupported, "it leads to what is not a URL");
  }
  if (from.scheme_id() == boost::urls::scheme::https &&
      to.scheme_id() != boost::urls::scheme::https) {
    return fail(ErrorCode::unsupported, "it leads away from https");
  }
  return to;
}

Result<std::vector<std::byte>> follow(boost::urls::url url, const FetchRules& rules) {
  const auto deadline = steady_clock::now() + rules.time_max;
  for (int hop = 0; hop <= kRedirectsMax; ++hop) {
    const Target target = SLUICE_TRY(target_of(url));
    if (!is_named(rules.domains, target.host)) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{}host '{}' is not one of --media-domains",
                              hop > 0 ? "it leads elsewhere: " : "", target.host.substr(0, 64)));
    }
    Answer answer = SLUICE_TRY(Hop(target, rules, deadline).run());
    if (!answer.location) {
      return std::move(answer.body);
    }
    url = SLUICE_TRY(redirected(url, *answer.location));
  }
  return fail(ErrorCode::unsupported, fmt::format("it leads on more than {} times", kRedirectsMax));
}

}  // namespace

bool is_web_url(std::string_view text) {
  const std::string head = lower(text.substr(0, std::string_view("https://").size()));
  return head.starts_with("http://") || head.starts_with("https://");
}

Result<std::vector<std::byte>> fetch_media(const std::string& url, const FetchRules& rules) {
  try {
    return follow(SLUICE_TRY(parse_url(url)), rules);
  } catch (const std::exception& error) {  // of Asio and Boost.URL: out of memory or descriptors
    return fail(ErrorCode::io, fmt::format("it cannot be fetched: {}", error.what()));
  }
}

}  // namespace sluice
