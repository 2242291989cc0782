// Replies that need no engine: a JSON object, and which fields of the request had no effect.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>
#include <vector>

#include "api/api_error.h"
#include "server/exchange.h"

namespace sluice {

struct JsonAnswer {
  boost::json::object body;
  std::vector<std::string> ignored = {};
};

// Replies with the answer, or with its error in the shape of the dialect.
void reply_json(const std::shared_ptr<Exchange>& exchange, const ApiResult<JsonAnswer>& answer,
                ApiDialect dialect = ApiDialect::openai);

// The value of x-ignored-params: the paths, joined by commas, at most 1 KiB of printable ASCII.
std::string ignored_header(const std::vector<std::string>& paths);

// Adds that header, if anything was ignored.
void add_ignored(const std::vector<std::string>& paths, HttpResponse& response);

}  // namespace sluice
