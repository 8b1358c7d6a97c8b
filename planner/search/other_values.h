#pragma once
// The cost of every other value of a key is told by the best layout with it, all other keys free.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

class Candidates;

/// The best layout with a value of a key that the best of all has not.
struct OtherValue {
  std::string key;
  std::string value;
  std::optional<Evaluation> best;  ///< without its lowered schedule; nothing: none fits
  std::int64_t missing_bytes = 0;  ///< on the fullest rank of the closest layout, where none fits
};

/// Returns the answers by key and value. `best` is the index of the best of all.
std::vector<OtherValue> other_values(Candidates& candidates, std::size_t best);

/// Returns the index of the candidate of that kind that is kOut and lacks least memory; nothing if there is none.
std::optional<std::size_t> closest_of(const Candidates& candidates, const std::function<bool(const Layout&)>& counts);

}}  // namespace plumb::planner
