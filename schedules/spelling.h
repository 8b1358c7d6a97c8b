#pragma once
// Names as people spell them: "Llama 3.1 8B" and "llama-3.1-8b", "ScheduleInterleaved1F1B" and "interleaved-1f1b".

#include <span>
#include <string>
#include <string_view>

namespace plumb { inline namespace schedules {

/// Of `text`, in lower case, the letters and digits of ASCII alone.
std::string letters_and_digits(std::string_view text);

struct Spelling {
  std::string_view text;  ///< letters and digits only, in lower case
  std::string_view means;
};

/// What the first of `spellings` with that text means; empty if there is none.
std::string_view meaning(std::span<const Spelling> spellings, std::string_view text);

}}  // namespace plumb::schedules
