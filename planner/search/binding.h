#pragma once
// A resource binds where more of it makes a step shorter.

#include <optional>
#include <utility>
#include <vector>

namespace plumb { inline namespace planner {

/// A difference of the step below which a resource is said not to bind.
inline constexpr double kBindingShare = 1e-3;

/// Returns the least amount from which on all larger ones give the same step, to kBindingShare; nothing if the largest
/// alone does. `steps` is (amount, seconds of the step), in any order.
std::optional<double> unbound_from(std::vector<std::pair<double, double>> steps);

}}  // namespace plumb::planner
