#pragma once
// What to write instead of a word that is no action: hand-typed schedules, and those of programs whose words differ.

#include <string>
#include <string_view>

namespace plumb { inline namespace schedules {

/// One clause: what is wrong with the word and how it is written here. `usual` where nothing is known of it.
///   action_remedy("F0", ...)   "has no stage: write it in front, as in 0F0"
///   action_remedy("0bw3", ...) "...: write 0B3"
std::string action_remedy(std::string_view word, std::string_view usual);

}}  // namespace plumb::schedules
