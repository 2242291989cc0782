// Codex refuses a catalog whose entries lack one of these fields, and takes its own guesses for a
// model that no catalog has (checked with codex-cli 0.171.0).
#include "api/responses/codex_catalog.h"

#include <boost/json/array.hpp>

namespace sluice {
namespace {

namespace json = boost::json;

// Stands in the place of the instructions Codex has for models it knows; it does not take an empty
// text for "none".
constexpr const char* kInstructions =
    "You are a coding agent. You work in a terminal on the user's own computer, inside Codex CLI, "
    "and you reach files and programs only through the tools you are given.\n\n"
    "Work like this:\n"
    "- Look before you act: read the files that matter and the instructions of the repository "
    "(AGENTS.md) first.\n"
    "- Do what was asked, completely, and nothing beside it. Keep to the style of the code around "
    "you, and fix causes rather than symptoms.\n"
    "- Never undo changes that are not yours. Do not commit or push unless you are asked to.\n"
    "- Check your work: run the tests or the program where you can, and read what they print.\n"
    "- When a command fails, find out why before you try something else.\n"
    "- Never claim to have done, read or tested what you have not.\n\n"
    "Before the first command of a new step say in one sentence what you are about to do. When the "
    "task is done, say briefly what you changed, where, and how you checked it; name files by "
    "their "
    "paths.";

json::array reasoning_levels() {
  return {json::object{{"effort", "low"}, {"description", "Thinks briefly"}},
          json::object{{"effort", "medium"}, {"description", "Thinks as long as most tasks need"}},
          json::object{{"effort", "high"}, {"description", "Thinks as long as it likes"}}};
}

}  // namespace

json::object codex_model_json(const CodexModel& model) {
  return json::object{
      {"slug", model.name},
      {"display_name", model.name},
      {"description", nullptr},
      {"default_reasoning_level", "medium"},
      {"supported_reasoning_levels", reasoning_levels()},
      {"shell_type", "shell_command"},
      {"visibility", "list"},
      {"supported_in_api", true},
      {"priority", model.rank},
      {"availability_nux", nullptr},
      {"upgrade", nullptr},
      {"base_instructions", kInstructions},
      {"supports_reasoning_summaries", true},
      {"default_reasoning_summary", "auto"},
      {"support_verbosity", false},
      {"default_verbosity", nullptr},
      {"apply_patch_tool_type", nullptr},
      {"web_search_tool_type", "text"},
      {"truncation_policy", json::object{{"mode", "bytes"}, {"limit", 10000}}},
      {"supports_parallel_tool_calls", true},
      {"supports_image_detail_original", false},
      {"context_window", model.context_tokens},
      {"max_context_window", model.context_tokens},
      {"auto_compact_token_limit", nullptr},
      {"effective_context_window_percent", 95},
      {"experimental_supported_tools", json::array()},
      {"input_modalities", model.sees ? json::array{"text", "image"} : json::array{"text"}},
      {"supports_search_tool", false}};
}

}  // namespace sluice
