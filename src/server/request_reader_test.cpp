#include "server/request_reader.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice {
namespace {

struct ReadRequest {
  std::string path;
  std::string body;
  bool operator==(const ReadRequest&) const = default;
};

// All requests in `bytes`, which arrive in pieces of `step`.
std::vector<ReadRequest> read(std::string_view bytes, std::size_t step) {
  BodyBudget budget(1024);
  RequestReader reader({.header_bytes_max = 1024, .body_bytes_max = 1024}, budget);
  std::vector<ReadRequest> requests;
  while (true) {
    switch (reader.advance()) {
      case RequestReader::Step::headers:
        break;
      case RequestReader::Step::done:
        requests.push_back({reader.request().path, reader.request().body});
        reader.next();
        break;
      case RequestReader::Step::failed:
        ADD_FAILURE() << reader.error().message;
        return requests;
      case RequestReader::Step::more:
        if (bytes.empty()) {
          return requests;
        }
        const std::size_t size = std::min(step, bytes.size());
        reader.append(bytes.data(), size);
        bytes.remove_prefix(size);
    }
  }
}

TEST(RequestReader, AnySplitGivesTheSameRequests) {
  const std::string head = "POST /x HTTP/1.1\r\nHost: a\r\n";
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string bytes = head + "Content-Length: 3\r\n\r\nabc\r\n" +                 //
                            chunked + "0\r\n\r\n" +                                     //
                            chunked + "0\r\nTrailer: y\r\n\r\n" +                       //
                            chunked + "2;a=b\r\nhi\r\nA\r\n0123456789\r\n00\r\n\r\n" +  //
                            "GET /y?z HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::vector<ReadRequest> expected{
      {"/x", "abc"}, {"/x", ""}, {"/x", ""}, {"/x", "hi0123456789"}, {"/y", ""}};
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    EXPECT_EQ(read(bytes, step), expected) << step;
  }
}

TEST(RequestReader, HeadsThatCanBeReadInTwoWaysAreRefused) {
  const std::string start = "POST /x HTTP/1.1\r\nHost: a\r\n";
  for (const std::string fields :
       {"Host: b\r\n", "Transfer-Encoding: identity\r\nContent-Length: 1\r\n",
        "Transfer-Encoding: gzip, chunked\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "Content-Length: +1\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"}) {
    BodyBudget budget(1024);
    RequestReader reader({.header_bytes_max = 1024, .body_bytes_max = 1024}, budget);
    const std::string head = start + fields + "\r\n";
    reader.append(head.data(), head.size());
    EXPECT_EQ(reader.advance(), RequestReader::Step::failed) << fields;
    EXPECT_EQ(reader.error().kind, ApiErrorKind::bad_http) << fields;
  }
}

TEST(RequestReader, FramingWithoutEndIsRefused) {
  const std::string head = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string endless(3000, '0');
  for (const std::string& body :
       {"1;" + endless, endless, "1;a=\"" + endless, "1\r\nx\r\n0\r\nX: " + endless}) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{700}, std::size_t{4000}}) {
      BodyBudget budget(1024);
      RequestReader reader({.header_bytes_max = 1024, .body_bytes_max = 1024}, budget);
      std::string_view rest = body;
      reader.append(head.data(), head.size());
      EXPECT_EQ(reader.advance(), RequestReader::Step::headers);
      RequestReader::Step state = reader.advance();
      while (state == RequestReader::Step::more && !rest.empty()) {
        const std::size_t size = std::min(step, rest.size());
        reader.append(rest.data(), size);
        rest.remove_prefix(size);
        state = reader.advance();
      }
      ASSERT_EQ(state, RequestReader::Step::failed) << body.substr(0, 12) << " by " << step;
      EXPECT_EQ(reader.error().kind, ApiErrorKind::headers_too_large);
    }
  }
}

}  // namespace
}  // namespace sluice
