#include "planner/search/break_even.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/whole_number.h"

namespace plumb { inline namespace planner {
namespace {

/// Both plans at one value of the figure.
struct ComparedPair {
  double value = 0;
  std::size_t faster = 0;
};

class PairComparison {
 public:
  PairComparison(const Plan& plan, const Variation& two, const FigureRange& range, const WhatIfOptions& options)
      : plan_(plan), two_(two), range_(range), options_(options) {}

  /// Returns the faster of both; nothing if one is infeasible.
  std::optional<ComparedPair> at(double value) const {
    const nlohmann::json number =
        range_.whole ? nlohmann::json(static_cast<std::int64_t>(value)) : nlohmann::json(value);
    const std::vector<WhatIfRow> rows = whatif(plan_, {{.key = range_.key, .values = {number}}, two_}, options_);
    if (!rows[0].prediction || !rows[1].prediction) return std::nullopt;
    const bool second = rows[1].prediction->step.makespan < rows[0].prediction->step.makespan;
    return ComparedPair{.value = value, .faster = second ? std::size_t{1} : std::size_t{0}};
  }

  /// Returns the least value found above `below` at which the order is that of `above`.
  Crossing crossing(ComparedPair below, ComparedPair above) const {
    constexpr double kRelative = 1e-3;
    const auto is_apart = [&] {
      return range_.whole ? above.value - below.value > 1 : above.value - below.value > kRelative * above.value;
    };
    while (is_apart()) {
      const double middle = middle_of(below.value, above.value);
      const std::optional<ComparedPair> between = at(middle);
      if (!between) break;  // one of both runs on either side of a gap: the crossing is in the gap
      (between->faster == below.faster ? below : above) = *between;
    }
    return {.below = below.value, .value = above.value, .faster_below = below.faster, .faster_above = above.faster};
  }

 private:
  double middle_of(double low, double high) const {
    return range_.whole ? std::floor((low + high) / 2) : (low + high) / 2;
  }

  const Plan& plan_;
  const Variation& two_;
  const FigureRange& range_;
  const WhatIfOptions& options_;
};

std::vector<double> sampled_values(const FigureRange& range) {
  constexpr int kSamples = 9;
  std::vector<double> values;
  for (int i = 0; i < kSamples; ++i) {
    const double share = static_cast<double>(i) / (kSamples - 1);
    const double value = range.low > 0 ? range.low * std::pow(range.high / range.low, share)
                                       : range.low + share * (range.high - range.low);
    values.push_back(range.whole ? std::round(value) : value);
  }
  values.back() = range.high;
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

FigureRange parse_figure_range(std::string_view text) {
  const std::size_t equals = text.find('='), dots = text.find("..", equals);
  const bool shaped = equals != std::string_view::npos && equals > 0 && dots != std::string_view::npos;
  const std::string_view low = shaped ? text.substr(equals + 1, dots - equals - 1) : "";
  const std::string_view high = shaped ? text.substr(dots + 2) : "";
  const auto least = whole_number<double>(low), most = whole_number<double>(high);
  if (!least || !most || *least >= *most) {
    throw SpecError(fmt::format(
        "break-even \"{}\": write KEY=LOW..HIGH with LOW below HIGH, such as network.bandwidth_gb_per_s=5.0..100.0",
        text));
  }
  const bool whole =
      low.find_first_of(".eE") == std::string_view::npos && high.find_first_of(".eE") == std::string_view::npos;
  return {.key = std::string(text.substr(0, equals)), .low = *least, .high = *most, .whole = whole};
}

BreakEven break_even(const Plan& plan, const Variation& two, const FigureRange& range, const WhatIfOptions& options) {
  if (two.values.size() != 2)
    throw SpecError(fmt::format("vary {}: a break-even is between two values, and there are {}: give two", two.key,
                                two.values.size()));
  const PairComparison pair(plan, two, range, options);
  std::vector<ComparedPair> compared;
  for (const double value : sampled_values(range))
    if (const auto one = pair.at(value)) compared.push_back(*one);
  if (compared.empty())
    throw SpecError(
        fmt::format("{} from {} to {}: at no value do both plans of {} run: give another range, or search "
                    "the layout of each anew",
                    range.key, range.low, range.high, two.key));
  BreakEven answer{.compared = compared.size(), .faster_at_low = compared.front().faster};
  for (std::size_t i = 1; i < compared.size(); ++i)
    if (compared[i].faster != compared[i - 1].faster)
      answer.crossings.push_back(pair.crossing(compared[i - 1], compared[i]));
  return answer;
}

}}  // namespace plumb::planner
