// Who may administer the cache, and what reaches the engine.
#include "api/cache_admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/access.h"
#include "server/test_server.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;

class CacheAdmin : public ServerTest {};

TEST_F(CacheAdmin, FlushesEverythingByAnyOfItsNames) {
  start();
  for (const std::string path : {"/v1/cache/flush", "/cache/flush", "/flush_cache",
                                 "/reset_prefix_cache", "/v1/reset_prefix_cache/"}) {
    const TestReply reply = post(path, "");
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_EQ(reply.body, R"({"freed_tokens":64,"freed_bytes":64})");
  }
  EXPECT_EQ(post("/v1/cache/flush", R"({"scope":"all"})").status, 200);
  EXPECT_EQ(post("/v1/cache/flush", R"({"scope":"unpinned","extra":1})").status, 200);
  EXPECT_EQ(engine_.flushes().size(), 7U);
  EXPECT_FALSE(engine_.flushes().front().salts);
  EXPECT_FALSE(engine_.flushes()[5].keep_pins);
  EXPECT_TRUE(engine_.flushes()[6].keep_pins);
}

TEST_F(CacheAdmin, ASaltIsFlushedUnderEveryKey) {
  config_.api_keys = {"one", "two"};
  start();
  const TestReply reply = post("/v1/cache/flush", R"({"scope":"salt","cache_salt":"s"})",
                               "Authorization: Bearer two\r\n");
  EXPECT_EQ(reply.body, R"({"freed_tokens":3,"freed_bytes":3})");
  EXPECT_THAT(*engine_.flushes().front().salts, ElementsAre("\0s"s, "one\0s"s, "two\0s"s));
}

TEST_F(CacheAdmin, BadRequestsNameTheField) {
  start();
  const auto refused = [this](const std::string& body) {
    const TestReply reply = post("/v1/cache/flush", body);
    EXPECT_EQ(reply.status, 400) << body;
    return reply.body;
  };
  EXPECT_THAT(refused(R"({"scope":"some"})"), HasSubstr(R"("param":"scope")"));
  EXPECT_THAT(refused(R"({"scope":"salt"})"), HasSubstr(R"("param":"cache_salt")"));
  EXPECT_THAT(refused(R"({"cache_salt":"s"})"), HasSubstr(R"("param":"cache_salt")"));
  EXPECT_THAT(refused(R"({"scope":1})"), HasSubstr("invalid_type"));
  EXPECT_THAT(refused("{"), HasSubstr("invalid_json"));
  EXPECT_TRUE(engine_.flushes().empty());
}

TEST_F(CacheAdmin, WhatTheEngineRefusesMayBeRepeated) {
  start();
  engine_.refuse_with(Error{ErrorCode::resource_exhausted, "64 commands wait", ""});
  const TestReply reply = post("/v1/cache/flush", "");
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.header("x-should-retry"), "true");
}

TEST_F(CacheAdmin, WithAnAdminKeyNothingElseWillDo) {
  config_.api_keys = {"user"};
  config_.admin_keys = {"admin", "root"};
  start();
  EXPECT_EQ(get("/v1/cache").status, 403);
  EXPECT_EQ(get("/v1/cache", "x-api-key: user\r\n").status, 403);
  EXPECT_EQ(get("/v1/cache", "x-api-key: admin\r\n").status, 200);
  EXPECT_EQ(get("/v1/cache", "Authorization: Bearer root\r\n").status, 200);
  EXPECT_THAT(get("/v1/cache").body, HasSubstr("permission_error"));
}

TEST_F(CacheAdmin, WithoutAnAdminKeyOnlyThisMachineItself) {
  start();
  EXPECT_EQ(get("/v1/cache").status, 200);
  EXPECT_EQ(get("/v1/cache", "X-Forwarded-For: 198.51.100.7\r\n").status, 403);
  EXPECT_EQ(get("/v1/cache", "Forwarded: for=198.51.100.7\r\n").status, 403);
  EXPECT_EQ(post("/v1/cache/flush", "", "Origin: https://example.org\r\n").status, 403);
  EXPECT_EQ(post("/v1/cache/flush", "", "Origin: http://localhost:3000\r\n").status, 200);
  EXPECT_EQ(engine_.flushes().size(), 1U);
}

TEST_F(CacheAdmin, ApiKeysCountWhereThereIsNoAdminKey) {
  config_.api_keys = {"user"};
  start();
  EXPECT_EQ(get("/v1/cache").status, 401);
  EXPECT_EQ(get("/v1/cache", "api-key: user\r\n").status, 200);
}

TEST(Access, AdministrationFromAnotherMachineIsRefused) {
  const ServerConfig config;
  const auto access = Access::create(config, false);
  ASSERT_TRUE(access);
  HttpRequest request;
  const auto error = access->check_admin(request);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ApiErrorKind::forbidden);
  request.from_loopback = true;
  EXPECT_FALSE(access->check_admin(request));
}

TEST(CacheReport, HasEveryKeyFromTheStart) {
  EXPECT_EQ(cache_report_json({}),
            R"({"entries":0,"tokens":0,"bytes":{"device":0,"host":0,"disk":0},)"
            R"("limit_bytes":{"device":0,"host":0,"disk":0},"hit_rate":0E0,"hit_tokens":0,)"
            R"("query_tokens":0,"pinned":[]})");
  EXPECT_THAT(cache_report_json({.hit_tokens = 1, .query_tokens = 4}),
              HasSubstr(R"("hit_rate":2.5E-1)"));
}

}  // namespace
}  // namespace sluice
