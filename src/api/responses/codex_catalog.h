// A model in the form in which Codex reads catalogs of models (`model_catalog_json`, and the
// replies of some providers): what it can do, and what Codex should know of it.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>

namespace sluice {

struct CodexModel {
  std::string name;
  std::int64_t context_tokens = 0;
  std::int64_t rank = 0;  // 0 is the first choice
  bool sees = false;      // pictures
};

boost::json::object codex_model_json(const CodexModel& model);

}  // namespace sluice
