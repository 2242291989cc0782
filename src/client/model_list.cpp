#include "client/model_list.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "client/chat_client.h"

namespace sluice {

namespace json = boost::json;

Result<json::object> first_model(HttpClient& client) {
  const HttpClient::Reply reply = SLUICE_TRY(client.get("/v1/models"));
  constexpr int kStatusOk = 200;
  if (reply.status != kStatusOk) {
    return fail(ErrorCode::not_found, fmt::format("/v1/models answers with status {}: {}",
                                                  reply.status, error_message(reply.body)));
  }
  boost::system::error_code error;
  json::value value = json::parse(reply.body, error);
  const json::value* id = error ? nullptr : value.find_pointer("/data/0/id", error);
  if (id == nullptr || !id->is_string()) {
    return fail(ErrorCode::not_found, "/v1/models names no model");
  }
  return std::move(value.find_pointer("/data/0", error)->get_object());
}

}  // namespace sluice
