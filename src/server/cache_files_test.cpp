// Cache files over HTTP: which names reach the engine, and what operators are told.
#include "api/cache_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/test_server.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CacheFiles : public ServerTest {
 protected:
  CacheFiles() { config_.cache_dir = "/folder"; }
};

TEST_F(CacheFiles, AreFilesOfTheFolder) {
  start();
  for (const std::string path : {"/v1/cache/save", "/cache/load"}) {
    const TestReply reply = post(path, R"({"name":"a.b_c-9"})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, R"({"tokens":128,"bytes":128,"ms":1.5E0})");
    EXPECT_EQ(engine_.moved_files().back().path, "/folder/a.b_c-9");
    EXPECT_EQ(engine_.moved_files().back().identity, model().cache_identity);
  }
  EXPECT_EQ(post("/v1/cache/save", R"({"name":"a","more":1})").header("x-ignored-params"), "more");
}

TEST_F(CacheFiles, BadNamesNeverReachTheEngine) {
  start();
  const std::string longest(64, 'x');
  for (const std::string path : {"/v1/cache/save", "/v1/cache/load"}) {
    for (const std::string name : {"", ".", "..", "../a", "a/b", "/etc/passwd", "a\\\\b", "a b",
                                   "\\u0000", "a\\u0000", "%2e", "\u00e4", "~", "a\\n"}) {
      const TestReply reply = post(path, R"({"name":")" + name + "\"}");
      EXPECT_EQ(reply.status, 400) << name;
      EXPECT_THAT(reply.body, HasSubstr(R"("param":"name")"));
      EXPECT_THAT(reply.body, HasSubstr("A-Z a-z 0-9 . _ -")) << name;
    }
    EXPECT_EQ(post(path, R"({"name":")" + longest + "x\"}").status, 400);
    EXPECT_THAT(post(path, "{}").body, HasSubstr("missing_required_parameter"));
    EXPECT_THAT(post(path, R"({"name":7})").body, HasSubstr("invalid_type"));
    EXPECT_THAT(post(path, "").body, HasSubstr("invalid_json"));
    EXPECT_EQ(post(path, R"({"name":")" + longest + "\"}").status, 200);
    EXPECT_EQ(post(path, R"({"name":"..."})").status, 200);
  }
  EXPECT_EQ(engine_.moved_files().size(), 4U);
}

TEST_F(CacheFiles, WithoutAFolderThereAreNone) {
  config_.cache_dir.clear();
  start();
  for (const std::string path : {"/v1/cache/save", "/v1/cache/load"}) {
    const TestReply reply = post(path, R"({"name":"a"})");
    EXPECT_EQ(reply.status, 404);
    EXPECT_THAT(reply.body, HasSubstr("--cache-dir"));
  }
  EXPECT_TRUE(engine_.moved_files().empty());
}

TEST_F(CacheFiles, RefusalsSayWhy) {
  start();
  const auto refused = [this](ErrorCode code, int status, const std::string& word) {
    engine_.move_fails_with(Error{code, "the reason", ""});
    const TestReply reply = post("/v1/cache/load", R"({"name":"a"})");
    EXPECT_EQ(reply.status, status);
    EXPECT_THAT(reply.body, HasSubstr("\"code\":\"" + word + "\""));
    EXPECT_THAT(reply.body, HasSubstr("the reason"));
    EXPECT_EQ(reply.header("x-should-retry"), "false");
  };
  refused(ErrorCode::not_found, 404, "not_found");
  refused(ErrorCode::invalid_argument, 400, "invalid_value");
  refused(ErrorCode::unsupported, 409, "cache_file_mismatch");
  refused(ErrorCode::corrupt_data, 409, "cache_file_damaged");
  refused(ErrorCode::io, 500, "cache_file_io");
  engine_.refuse_with(Error{ErrorCode::resource_exhausted, "64 commands wait", ""});
  EXPECT_EQ(post("/v1/cache/save", R"({"name":"a"})").status, 429);
}

TEST_F(CacheFiles, ErrorsSayTheNameAndNotWhereTheFolderLies) {
  start();
  for (const std::string path : {"/v1/cache/save", "/v1/cache/load"}) {
    engine_.move_fails_with(Error{ErrorCode::io,
                                  "cannot create /folder/a.partial-1: no space, nor for /folder/a",
                                  "/folder/a"});
    const TestReply reply = post(path, R"({"name":"a"})");
    EXPECT_THAT(reply.body, HasSubstr("cannot create a.partial-1: no space, nor for a\""));
    EXPECT_THAT(reply.body, Not(HasSubstr("/folder")));
  }
}

TEST_F(CacheFiles, AreForAdministrators) {
  config_.admin_keys = {"root"};
  start();
  EXPECT_EQ(post("/v1/cache/save", R"({"name":"a"})").status, 403);
  EXPECT_EQ(post("/v1/cache/load", R"({"name":"a"})").status, 403);
  EXPECT_EQ(post("/v1/cache/load", R"({"name":"a"})", "x-api-key: root\r\n").status, 200);
  EXPECT_EQ(get("/v1/cache/save", "x-api-key: root\r\n").status, 405);
}

}  // namespace
}  // namespace sluice
