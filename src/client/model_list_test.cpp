#include "client/model_list.h"

#include <gtest/gtest.h>

#include "base/test_errors.h"
#include "client/test_http_server.h"

namespace sluice {
namespace {

using test::TestHttpServer;

TEST(ModelListTest, FirstModelOfTheList) {
  TestHttpServer server({{{TestHttpServer::reply("200 OK", R"({"data":[{"id":"x"},{"id":"y"}]})")}},
                         {{TestHttpServer::reply("200 OK", R"({"data":[]})")}},
                         {{TestHttpServer::reply("401 No", R"({"error":{"message":"key"}})")}},
                         {{TestHttpServer::reply("200 OK", "?")}}});
  HttpClient client(parse_server_url(server.url()).value(), {});
  EXPECT_EQ(first_model(client).value().at("id"), "x");
  EXPECT_ERROR(first_model(client), ErrorCode::not_found, {"names no model"});
  EXPECT_ERROR(first_model(client), ErrorCode::not_found, {"401", "key"});
  EXPECT_ERROR(first_model(client), ErrorCode::not_found, {"names no model"});
}

}  // namespace
}  // namespace sluice
