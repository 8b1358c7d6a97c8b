#pragma once
// Finds names as people spell them: "Llama 3.1 8B" is "llama-3.1-8b", "ScheduleInterleaved1F1B" is "interleaved-1f1b".

#include <span>
#include <string>
#include <string_view>

namespace plumb { inline namespace schedules {

/// Returns the ASCII letters and digits of `text` alone, in lower case.
std::string letters_and_digits(std::string_view text);

/// Returns the text with its ASCII letters in lower case.
std::string lower_case(std::string_view text);

struct Spelling {
  std::string_view text;  ///< letters and digits only, in lower case
  std::string_view means;
};

/// Returns the meaning of the first of `spellings` with that text, or an empty string if there is none.
std::string_view meaning(std::span<const Spelling> spellings, std::string_view text);

}}  // namespace plumb::schedules
