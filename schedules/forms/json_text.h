#pragma once
// Writes JSON as text. This is the one place where documents are written, so that no other file compiles nlohmann's
// writer.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace plumb { inline namespace schedules {

/// Returns the value on one line. Bytes that are no UTF-8 become U+FFFD.
std::string json_line(const nlohmann::json& value);
std::string json_line(const nlohmann::ordered_json& value);

/// Returns the text that `--json` prints: the document, indented by two blanks a level, and a line end.
std::string json_answer(const nlohmann::ordered_json& document);

/// Returns the text of a file of ours: the document, indented by one blank a level, and a line end.
std::string json_file_text(const nlohmann::ordered_json& document);

}}  // namespace plumb::schedules
