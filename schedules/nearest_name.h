#pragma once
// "Did you mean": the candidate nearest to a word that somebody typed.

#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace schedules {

/// The candidate with the smallest edit distance (Levenshtein 1966) to `word`, case ignored, the first of equals.
/// Empty if there are no candidates.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

}}  // namespace plumb::schedules
