#include "planner/score/minimise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plumb { inline namespace planner {
namespace {

struct Best {
  double at = 0;
  double value = 0;
};

/// Minimises along one coordinate, with the others fixed.
Best along(const std::function<double(double)>& function, Interval interval, Best best) {
  constexpr int kCells = 8;
  constexpr int kSections = 12;
  const auto try_at = [&](double at) {
    const double value = function(at);
    if (value < best.value) best = {.at = at, .value = value};
    return value;
  };
  const double cell = (interval.high - interval.low) / kCells;
  for (int i = 0; i <= kCells; ++i) try_at(i == kCells ? interval.high : interval.low + i * cell);
  double low = std::max(interval.low, best.at - cell), high = std::min(interval.high, best.at + cell);
  constexpr double kGolden = 1 / std::numbers::phi;
  double left = high - kGolden * (high - low), right = low + kGolden * (high - low);
  double left_value = try_at(left), right_value = try_at(right);
  for (int i = 0; i < kSections; ++i) {
    if (left_value <= right_value) {
      high = right;
      right = left;
      right_value = left_value;
      left = high - kGolden * (high - low);
      left_value = try_at(left);
    } else {
      low = left;
      left = right;
      left_value = right_value;
      right = low + kGolden * (high - low);
      right_value = try_at(right);
    }
  }
  return best;
}

}  // namespace

std::vector<double> minimise(const std::function<double(const std::vector<double>&)>& function,
                             const std::vector<Interval>& box, std::vector<double> start, double tolerance) {
  constexpr int kRounds = 8;
  double value = function(start);
  for (int round = 0; round < kRounds; ++round) {
    const double before = value;
    for (std::size_t i = 0; i < box.size(); ++i) {
      const auto line = [&](double at) {
        std::vector<double> point = start;
        point[i] = at;
        return function(point);
      };
      const Best best = along(line, box[i], {.at = start[i], .value = value});
      start[i] = best.at;
      value = best.value;
    }
    if (!(before - value > tolerance * std::abs(before))) break;
  }
  return start;
}

}}  // namespace plumb::planner
