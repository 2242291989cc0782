// What an OpenAI-compatible server says it serves.
#pragma once

#include <boost/json/object.hpp>

#include "base/result.h"
#include "client/http_client.h"

namespace sluice {

// The first entry of /v1/models; its `id` is a string. Errors: those of HttpClient, not_found.
Result<boost::json::object> first_model(HttpClient& client);

}  // namespace sluice
