#pragma once
// Says how to write a word that is no action, in hand-typed schedules and in those of programs whose words differ.

#include <string>
#include <string_view>

namespace plumb { inline namespace schedules {

/// Returns one clause that says what is wrong with the word and how it is written here, or `usual` where nothing is
/// known of it.
///   action_remedy("F0", ...)   "has no stage: write it in front, as in 0F0"
///   action_remedy("0bw3", ...) "...: write 0B3"
std::string action_remedy(std::string_view word, std::string_view usual);

}}  // namespace plumb::schedules
