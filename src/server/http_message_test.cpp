#include "server/http_message.h"

#include <gtest/gtest.h>

#include "server/access.h"
#include "server/error_map.h"
#include "server/sse.h"

namespace sluice {
namespace {

TEST(PathOfTarget, WithoutQuerySlashAndHost) {
  EXPECT_EQ(path_of_target("/v1/models"), "/v1/models");
  EXPECT_EQ(path_of_target("/v1/models//?a=/b/"), "/v1/models");
  EXPECT_EQ(path_of_target("http://h:1/live?x"), "/live");
  EXPECT_EQ(path_of_target("http://h"), "/");
  EXPECT_EQ(path_of_target("/"), "/");
  EXPECT_EQ(path_of_target("*"), "/");
  EXPECT_EQ(path_of_target(""), "/");
  EXPECT_EQ(path_of_target("/models/a%2Fb%"), "/models/a/b%");
}

TEST(HeadText, NoValueEndsItsHeader) {
  HttpResponse response{.status = 200, .headers = {{"x-a", "1\r\nx-evil: 2"}}};
  EXPECT_EQ(head_text(response, 11, true, "Content-Length: 0\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-a: 1  x-evil: 2\r\n"
            "Content-Length: 0\r\n\r\n");
}

TEST(RequestId, EchoedOnlyWhenHarmless) {
  EXPECT_EQ(request_id_from("abc-1"), "abc-1");
  for (const std::string bad : {"", "a b", "a\r\nb", "\x80"}) {
    EXPECT_EQ(request_id_from(bad).rfind("req_", 0), 0U) << bad;
  }
  EXPECT_NE(random_id("x"), random_id("x"));
}

TEST(Hosts, LoopbackNames) {
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1", "127.9.9.9:1", "[::1]:80"}) {
    EXPECT_TRUE(is_loopback_host(host_without_port(host))) << host;
  }
  for (const char* host :
       {"localhost.evil.example", "128.0.0.1", "[::2]", "", "127.0.0.1.nip.io"}) {
    EXPECT_FALSE(is_loopback_host(host_without_port(host))) << host;
  }
}

TEST(Keys, OnlyTheWholeKeyIsRight) {
  EXPECT_TRUE(equal_in_constant_time("secret", "secret"));
  for (const char* wrong : {"", "s", "secre", "secrets", "secretsecret", "Secret"}) {
    EXPECT_FALSE(equal_in_constant_time("secret", wrong)) << wrong;
  }
}

TEST(ErrorMap, EveryKindIsAClientErrorOrAskedToRetry) {
  for (int kind = 0; kind <= static_cast<int>(ApiErrorKind::internal); ++kind) {
    const HttpResponse response =
        openai_error_response({static_cast<ApiErrorKind>(kind), "why", "field"});
    const bool retry = response.status == 429 || response.status == 503;
    EXPECT_GE(response.status, 400);
    EXPECT_EQ(response.headers.at(0).second, retry ? "true" : "false") << response.status;
  }
  EXPECT_EQ(error_json(ApiDialect::openai, {ApiErrorKind::forbidden, "why", ""}, "r1"),
            R"({"error":{"message":"why","type":"permission_error","param":null,"code":null}})");
  EXPECT_EQ(prompt_error({ErrorCode::io, "/etc/secret", ""}, "").message, "internal error");
}

TEST(ErrorMap, WhatIsRepeatedOfTheClientIsText) {
  const ApiError cut{ApiErrorKind::invalid_value, "a is 'caf\xC3'", "p\xC3"};
  EXPECT_EQ(error_json(ApiDialect::openai, cut, "r1"),
            R"({"error":{"message":"a is 'caf�'","type":"invalid_request_error",)"
            R"("param":"p�","code":"invalid_value"}})");
}

TEST(ErrorMap, ALostThreadIsNamedToItsClient) {
  const ApiError lost{ApiErrorKind::thread_not_found, "why", "thread"};
  EXPECT_EQ(error_json(ApiDialect::anthropic, lost, "r1"),
            R"({"type":"error","error":{"type":"not_found_error","message":"why",)"
            R"("details":{"error_code":"thread_not_found"}},"request_id":"r1"})");
}

TEST(ErrorMap, OnlyAFullQueueIsWorthAnotherTry) {
  const Error exhausted{ErrorCode::resource_exhausted, "too much", "messages"};
  EXPECT_EQ(prompt_error(exhausted, "messages").kind, ApiErrorKind::context_length_exceeded);
  EXPECT_EQ(prompt_error(exhausted, "messages").message, "prompt is too long: too much");
  EXPECT_EQ(submit_error(exhausted).kind, ApiErrorKind::queue_full);
}

TEST(Sse, NamesAndData) {
  EXPECT_EQ(sse_text({{"", "{}"}, {"ping", "1"}}), "data: {}\n\nevent: ping\ndata: 1\n\n");
}

}  // namespace
}  // namespace sluice
