#pragma once
// Finds the candidate nearest to a word that somebody typed, for "did you mean".

#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace schedules {

/// Returns the candidate with the smallest edit distance to `word` (Levenshtein 1966; exchanged neighbours count as one
/// edit), case ignored, and the first of equals. Returns an empty string if none is near, that is where more than a
/// third of the letters differ and neither word is a part of the other.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// Returns `did you mean "NEAREST"?` or, where none is near, "give one of" the candidates.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}}  // namespace plumb::schedules
