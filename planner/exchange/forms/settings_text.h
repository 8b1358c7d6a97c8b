#pragma once
// Settings as text, in the forms of the trainers' files. Each form has a writer and a reader of what trainers' settings
// are: sections, keys, and values that are numbers, words, true or false, nothing, or lists of these. The readers take
// no more of the language than that, and say the line of what they do not take: settings need neither anchors nor
// expressions, and Plumb no parser for them.
//
//   arguments   --seq-length 8192 --bf16                  words of a shell's command, also over several lines
//   json        {"zero_optimization": {"stage": 2}}
//   python      cfg.model.tensor_model_parallel_size = 2
//   toml        [parallelism] and tensor_parallel_degree = 2
//   yaml        parallelism: and, indented, tp: 2

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/exchange/forms/settings.h"

namespace plumb { inline namespace planner {

enum class SettingsForm : std::uint8_t { kArguments, kJson, kPython, kToml, kYaml };

/// Returns the settings as text that ends a line. `head` are lines of comment.
std::string settings_text(SettingsForm form, const Settings& settings, std::string_view head);

/// Reads such a text. Throws SpecError "FILE:LINE: ..." for what is not in the form.
Settings read_settings(SettingsForm form, std::string_view text, const std::string& file);

}}  // namespace plumb::planner
