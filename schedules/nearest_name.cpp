#include "schedules/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plumb { inline namespace schedules {
namespace {

constexpr std::size_t kLongestWord = 200;  // longer words are no slips of the hand
constexpr std::size_t kShortestPart = 3;
constexpr std::size_t kMostListed = 24;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// Counts insertions, removals, substitutions and exchanges of neighbours (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j + 1] + 1, next[j] + 1, row[j] + (a[i] == b[j] ? 0 : 1)});
      const bool exchanged = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (exchanged) next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row.back();
}

/// True if one may have been meant by the other: at most a third of the letters differ, or one is a part of the other.
bool is_near(std::string_view word, std::string_view candidate, std::size_t distance) {
  const std::size_t shorter = std::min(word.size(), candidate.size());
  const std::size_t longer = std::max(word.size(), candidate.size());
  if (distance <= std::max<std::size_t>(1, longer / 3) && distance < shorter) return true;
  return shorter >= kShortestPart && (candidate.find(word) != std::string_view::npos || word.starts_with(candidate));
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  std::string nearest;
  if (word.size() > kLongestWord) return nearest;
  const std::string wanted = lower_case(word);
  std::size_t smallest = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : candidates) {
    const std::string known = lower_case(candidate);
    const std::size_t distance = edit_distance(wanted, known);
    if (distance < smallest && is_near(wanted, known, distance)) {
      smallest = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_name(word, candidates);
  if (!nearest.empty()) return fmt::format("did you mean \"{}\"?", nearest);
  if (candidates.empty()) return "there are none";
  const auto listed = static_cast<std::ptrdiff_t>(std::min(candidates.size(), kMostListed));
  return fmt::format(
      "give one of {}{}", fmt::join(candidates.begin(), candidates.begin() + listed, ", "),
      candidates.size() > kMostListed ? fmt::format(" and {} more", candidates.size() - kMostListed) : "");
}

}}  // namespace plumb::schedules
