#pragma once
// The values of a figure at which one of two plans overtakes the other.
//
//   break_even(plan, parse_variation("layout.pp=4,8"), {.key = "network.bandwidth_gb_per_s", .low = 5, .high = 100})
//   // [{.value = 23.4, .faster_below = 0, .faster_above = 1}]: from 23.4 GB/s on pp=8 is faster

#include <string>
#include <string_view>
#include <vector>

#include "planner/search/whatif.h"

namespace plumb { inline namespace planner {

/// A figure and its range.
struct FigureRange {
  std::string key;
  double low = 0;
  double high = 0;
  bool whole = false;  ///< only whole numbers between them are tried
};

/// "KEY=LOW..HIGH"; if both are written without a point, whole numbers are tried. Throws SpecError if that cannot be
/// read or LOW is not below HIGH.
FigureRange parse_figure_range(std::string_view text);

struct Crossing {
  double below = 0;              ///< largest value found at which the order is still that of below
  double value = 0;              ///< least value found at which the order of the two is another
  std::size_t faster_below = 0;  ///< index of the variation's value
  std::size_t faster_above = 0;
};

struct BreakEven {
  std::size_t compared = 0;         ///< values at which both plans run, of those that were tried first
  std::size_t faster_at_low = 0;    ///< index of the variation's value; of the first value that both run at
  std::vector<Crossing> crossings;  ///< ascending
};

/// Compares the plans of both values of `two` at values from low to high, evenly spaced (by factors where low is above
/// 0), and halves the distance between neighbours whose order differs, down to a thousandth of the value or to the next
/// whole number. Crossings that come in pairs between neighbours are not seen. Values at which one of both plans is
/// infeasible are passed over. Throws SpecError if `two` has not two values, if no value lets both run, and as whatif()
/// does.
BreakEven break_even(const Plan& plan, const Variation& two, const FigureRange& range,
                     const WhatIfOptions& options = {});

}}  // namespace plumb::planner
