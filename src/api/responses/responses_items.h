// The input items of a Responses request as the messages of a chat request.
//
//   message                        a message of its role; neighbouring assistant items are one
//   reasoning                      reasoning of the assistant message it stands before
//   function_call, custom_tool_call    calls of that message
//   ..._output                     a tool message
//   item_reference                 the stored item
//   additional_tools               no message: further tools
//   anything else                  ignored, and reported so
//
// Agents replay items of many servers: ids, states and phases may be anything.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "api/fields/json_fields.h"
#include "api/fields/path_map.h"
#include "api/responses/response_archive.h"
#include "api/responses/responses_tools.h"

namespace sluice {

class ResponseItemReader {
 public:
  ResponseItemReader(const ResponseArchive& archive, FieldReport& report, PathMap& paths,
                     ResponseTools& tools)
      : archive_(&archive), report_(&report), paths_(&paths), tools_(&tools) {}

  void add_message(std::string_view role, std::string_view text, const std::string& path);
  void add_items(const boost::json::array& items, const std::string& path);

  // The items as they should be kept: as sent, references replaced by what they name.
  static boost::json::array resolved(const boost::json::array& items,
                                     const ResponseArchive& archive);

  boost::json::array take_messages();

 private:
  void add_item(const boost::json::value& value, const std::string& path, bool stored);
  void add_typed(JsonFields& item, std::string_view type, const std::string& path);
  void add_message_item(JsonFields& item);
  void add_assistant_content(const boost::json::value& content, const std::string& path);
  void check_files(const boost::json::value& content, const std::string& path);
  void add_call(JsonFields& item, bool custom);
  void add_output(JsonFields& item);
  void add_reasoning(JsonFields& item);
  void add_reference(JsonFields& item, bool stored);

  void push(boost::json::object message, const std::string& path);
  boost::json::object& assistant(const std::string& path);
  std::string message_path() const;  // of the last one

  const ResponseArchive* archive_;
  FieldReport* report_;
  PathMap* paths_;
  ResponseTools* tools_;
  boost::json::array messages_;
  bool assistant_open_ = false;  // the last message takes further items of the assistant
};

}  // namespace sluice
