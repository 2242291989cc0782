// Which URLs are fetched, and every way in which a stranger's URL could lead elsewhere.
#include "server/media_fetch.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "server/test_web_server.h"

namespace sluice {
namespace {

namespace asio = boost::asio;
using asio::ip::make_address;

class MediaFetchTest : public testing::Test {
 protected:
  MediaFetchTest() {
    // The one host that is allowed lives here; its network counts as public, 127.0.0.2 does not.
    rules_.domains = domains_;
    rules_.bytes_max = 1000;
    rules_.time_max = std::chrono::milliseconds(1500);
    rules_.may_dial = [](const asio::ip::address& address) {
      return address == make_address("127.0.0.1");
    };
    rules_.resolve = [this](const std::string& host) {
      resolved_.push_back(host);
      if (host == "inside.test") {
        return std::vector{make_address("127.0.0.1"), make_address("127.0.0.2")};
      }
      return std::vector{make_address("127.0.0.1")};
    };
  }

  std::string url(const std::string& path) const {
    return "http://pictures.test:" + web_.port() + path;
  }

  // The body, or the code of the error.
  std::string fetch(const std::string& from) const {
    const auto bytes = fetch_media(from, rules_);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
                 : "error " + std::string(to_string(bytes.error().code));
  }

  static std::string error(ErrorCode code) { return "error " + std::string(to_string(code)); }

  std::vector<std::string> domains_{"Pictures.test", "inside.test"};
  std::vector<std::string> resolved_;
  TestWebServer web_;
  FetchRules rules_;
};

TEST_F(MediaFetchTest, WhatAnAllowedHostHas) {
  web_.answer_with_body("/a.png?size=1", "picture");
  EXPECT_EQ(fetch(url("/a.png?size=1")), "picture");
  EXPECT_EQ(fetch("HTTP://PICTURES.TEST.:" + web_.port() + "/a.png?size=1#part"), "picture");
  web_.answer("/chunked",
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(fetch(url("/chunked")), "abc");
  web_.answer("/open", "HTTP/1.1 200 OK\r\n\r\nabc");
  EXPECT_EQ(fetch(url("/open")), "abc");
}

TEST_F(MediaFetchTest, OtherHostsAreNotEvenLookedUp) {
  for (const std::string& other :
       {"http://127.0.0.1:" + web_.port() + "/a", std::string("http://evil.test/a"),
        std::string("http://pictures.test.evil.test/"), std::string("http://[::1]/a"),
        std::string("http://notpictures.test/"), "http://pictures.test@127.0.0.1:" + web_.port(),
        "http://user:secret@pictures.test:" + web_.port() + "/a",
        std::string("ftp://pictures.test/a"), std::string("gopher://pictures.test/a"),
        std::string("http:///a"), std::string("http://picture%73.test/"), std::string("http://"),
        std::string("http://pictures.test:99999/"), std::string("http://pictures.test:0/"),
        std::string(9000, 'a')}) {
    EXPECT_EQ(fetch(other), error(ErrorCode::unsupported)) << other;
  }
  EXPECT_EQ(web_.asked(), 0);
  rules_.domains = {};
  EXPECT_EQ(fetch(url("/a")), error(ErrorCode::unsupported));
}

TEST_F(MediaFetchTest, OneAddressThatIsNotPublicIsOneTooMany) {
  web_.answer_with_body("/a", "secret");
  EXPECT_EQ(fetch("http://inside.test:" + web_.port() + "/a"), error(ErrorCode::unsupported));
  rules_.may_dial = is_public_address;  // as outside of tests
  EXPECT_EQ(fetch(url("/a")), error(ErrorCode::unsupported));
  EXPECT_EQ(web_.asked(), 0);
}

TEST_F(MediaFetchTest, RedirectsAreHopsLikeTheFirst) {
  web_.answer_with_body("/a", "picture");
  web_.redirect("/1", "/a");
  web_.redirect("/2", url("/1"));
  web_.redirect("/3", "2");
  web_.redirect("/4", "/3");
  EXPECT_EQ(fetch(url("/1")), "picture");
  EXPECT_EQ(fetch(url("/3")), "picture");
  EXPECT_EQ(fetch(url("/4")), error(ErrorCode::unsupported));
  const int asked = web_.asked();
  const std::string port = web_.port();
  for (const std::string& location :
       {"http://127.0.0.1:" + port + "/a", "http://inside.test:" + port + "/a",
        "//127.0.0.1:" + port + "/a", std::string("file:///etc/passwd"),
        std::string("http://evil.test/"), std::string()}) {
    web_.redirect("/away", location);
    if (!location.empty()) {
      EXPECT_EQ(fetch(url("/away")), error(ErrorCode::unsupported)) << location;
    }
  }
  EXPECT_EQ(web_.asked(), asked + 5);  // none of the targets was
}

TEST_F(MediaFetchTest, LimitsOfBytesAndTime) {
  web_.answer_with_body("/exact", std::string(1000, 'a'));
  web_.answer_with_body("/more", std::string(1001, 'a'));
  web_.answer("/endless", "HTTP/1.1 200 OK\r\n\r\n" + std::string(5000, 'a'));
  web_.answer("/head", "HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'a') + "\r\n\r\n");
  EXPECT_EQ(fetch(url("/exact")).size(), 1000U);
  EXPECT_EQ(fetch(url("/more")), error(ErrorCode::resource_exhausted));
  EXPECT_EQ(fetch(url("/endless")), error(ErrorCode::resource_exhausted));
  EXPECT_EQ(fetch(url("/head")), error(ErrorCode::io));
  rules_.time_max = std::chrono::milliseconds(200);
  EXPECT_EQ(fetch(url("/silent")), error(ErrorCode::deadline));
  const std::atomic<bool> stop{true};
  rules_.gives_up = [&stop] { return stop.load(); };
  EXPECT_EQ(fetch(url("/exact")), error(ErrorCode::cancelled));
}

TEST_F(MediaFetchTest, WhatIsNoAnswerIsAnError) {
  web_.answer("/404", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  web_.answer("/partial", "HTTP/1.1 206 Partial\r\nContent-Length: 1\r\n\r\na");
  web_.answer("/cut", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
  web_.answer("/noise", "noise\r\n\r\n");
  for (const char* path : {"/404", "/partial", "/cut", "/noise"}) {
    EXPECT_EQ(fetch(url(path)), error(ErrorCode::io)) << path;
  }
  rules_.resolve = [](const std::string&) { return std::vector<asio::ip::address>{}; };
  EXPECT_EQ(fetch(url("/a")), error(ErrorCode::io));
}

TEST_F(MediaFetchTest, CertificatesAreVerified) {
  const auto certificate = TestCertificate::of("pictures.test");
  TestWebServer safe(certificate);
  safe.answer_with_body("/a", "picture");
  safe.redirect("/down", url("/a"));
  const std::string at = ":" + safe.port() + "/a";
  EXPECT_EQ(fetch("https://pictures.test" + at), error(ErrorCode::io));  // nobody signed it

  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("media_fetch_" + safe.port() + ".pem");
  std::ofstream(file) << certificate.certificate;
  const char* const before = ::getenv("SSL_CERT_FILE");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("SSL_CERT_FILE", file.c_str(), 1);
  EXPECT_EQ(fetch("https://pictures.test" + at), "picture");
  EXPECT_EQ(fetch("https://pictures.test:" + safe.port() + "/down"), error(ErrorCode::unsupported));
  domains_[1] = "other.test";
  EXPECT_EQ(fetch("https://other.test" + at), error(ErrorCode::io));  // another name
  if (before != nullptr) {
    ::setenv("SSL_CERT_FILE", kept.c_str(), 1);
  } else {
    ::unsetenv("SSL_CERT_FILE");
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace sluice
