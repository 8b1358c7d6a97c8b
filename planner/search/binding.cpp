#include "planner/search/binding.h"

#include <algorithm>
#include <cmath>

namespace plumb { inline namespace planner {

std::optional<double> unbound_from(std::vector<std::pair<double, double>> steps) {
  if (steps.size() < 2) return std::nullopt;
  std::ranges::sort(steps);
  const double last = steps.back().second;
  auto first = steps.end() - 1;
  while (first != steps.begin() && std::abs((first - 1)->second - last) <= kBindingShare * last) --first;
  return first == steps.end() - 1 ? std::nullopt : std::optional(first->first);
}

}}  // namespace plumb::planner
