#pragma once
// "Did you mean": the candidate nearest to a word that somebody typed.

#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace schedules {

/// The candidate with the smallest edit distance (Levenshtein 1966, and exchanged neighbours count as one) to `word`,
/// case ignored, the first of equals. Empty if none is near: more than a third of the letters differ, and neither is a
/// part of the other.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// `did you mean "NEAREST"?`; where none is near, "give one of" the candidates.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}}  // namespace plumb::schedules
