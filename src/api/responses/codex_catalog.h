// A model in the form in which Codex reads catalogs of models (`model_catalog_json`, and the
// replies of some providers): what it can do, and what Codex should know of it.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>

namespace sluice {

// `rank`: 0 is the first choice.
boost::json::object codex_model_json(const std::string& name, std::int64_t context_tokens,
                                     std::int64_t rank);

}  // namespace sluice
