#include "planner/score/fit_error_bars.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

constexpr double kCovered = 0.8;
constexpr double kRounding = 0.003;  // printed times have three digits: no residual is sharper
constexpr double kFewGroups = 1;     // so many groups of no error are added to a framework's own

using ResidualGroup = std::pair<std::string, FrameworkKnown>;

ResidualGroup residual_group(const Residual& residual) {
  return {residual.source, residual.traits.framework};
}

/// A residual with its weight.
struct Weighed {
  const Residual* residual = nullptr;
  double weight = 0;
};

/// Returns the residuals of one quantity, each group with the weight 1 in all.
std::vector<Weighed> weighed(const std::vector<const Residual*>& residuals) {
  std::map<ResidualGroup, int> counts;
  for (const Residual* residual : residuals) ++counts[residual_group(*residual)];
  std::vector<Weighed> result;
  for (const Residual* residual : residuals) result.push_back({residual, 1.0 / counts[residual_group(*residual)]});
  return result;
}

/// Returns the value below which that share of the weight lies; `values` are value and weight, and not empty.
double weighed_quantile(std::vector<std::pair<double, double>> values, double share) {
  std::ranges::sort(values);
  const double all = std::accumulate(values.begin(), values.end(), 0.0,
                                     [](double sum, const auto& value) { return sum + value.second; });
  double below = 0;
  for (const auto& [value, weight] : values) {
    below += weight;
    if (below >= share * all) return value;
  }
  return values.back().first;
}

std::vector<Weighed> of_framework(const std::vector<Weighed>& all, FrameworkKnown framework) {
  std::vector<Weighed> own;
  std::ranges::copy_if(all, std::back_inserter(own),
                       [&](const Weighed& one) { return one.residual->traits.framework == framework; });
  return own;
}

double shift_of(const std::vector<Weighed>& rows) {
  if (rows.empty()) return 0;
  std::vector<std::pair<double, double>> values;
  std::set<std::string> sources;
  for (const auto& [residual, weight] : rows) {
    values.emplace_back(residual->log_error, weight);
    sources.insert(residual->source);
  }
  const auto groups = static_cast<double>(sources.size());
  return weighed_quantile(std::move(values), 0.5) * groups / (groups + kFewGroups);
}

/// The terms of log_scale_of() in the order of the fit: a base for named, assumed and unknown frameworks, and the rest.
constexpr int kTerms = 7;
using Terms = std::array<double, kTerms>;

Terms terms_of(const ErrorScale& scale) {
  return {scale.log_scale[0], scale.log_scale[1],     scale.log_scale[2], scale.fp8,
          scale.experts,      scale.tenfold_doubling, scale.new_device};
}

void set_terms(ErrorScale& scale, const Terms& terms) {
  for (std::size_t i = 0; i < 3; ++i) scale.log_scale[i] = terms[i];
  std::tie(scale.fp8, scale.experts, scale.tenfold_doubling, scale.new_device) =
      std::tuple(terms[3], terms[4], terms[5], terms[6]);
}

/// Returns by how much each term enters the logarithm of the scale.
Terms features_of(const ErrorTraits& traits, bool seen_device) {
  Terms features{};
  for (std::size_t term = 0; term < features.size(); ++term) {
    ErrorScale one;
    Terms only{};
    only[term] = 1;
    set_terms(one, only);
    features[term] = log_scale_of(one, traits, seen_device);
  }
  return features;
}

/// Raises the likelihood of a Laplace distribution, whose scale is the exponential of the terms' sum, by its gradient.
void fit_scale(ErrorScale& scale, const std::vector<Weighed>& rows, const std::set<std::string>& seen) {
  constexpr int kSteps = 600;
  constexpr double kStep = 0.15, kPenalty = 0.02;
  std::vector<std::pair<Terms, double>> points;
  double all = 0;
  for (const auto& [residual, weight] : rows) {
    points.emplace_back(features_of(residual->traits, seen.contains(residual->traits.device)), weight);
    all += weight;
  }
  Terms terms = terms_of(scale);
  for (std::size_t i = 0; i < 3; ++i) terms[i] = std::log(0.1);
  for (int step = 0; step < kSteps; ++step) {
    Terms gradient{};
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto& [features, weight] = points[row];
      const Residual& residual = *rows[row].residual;
      const double size =
          std::abs(residual.log_error - scale.shift[static_cast<std::size_t>(residual.traits.framework)]) + kRounding;
      const double log_scale = std::inner_product(features.begin(), features.end(), terms.begin(), 0.0);
      const double slope = weight / all * (1 - size / std::exp(log_scale));
      for (std::size_t i = 0; i < terms.size(); ++i) gradient[i] += slope * features[i];
    }
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const double middle = i < 3 ? (terms[0] + terms[1] + terms[2]) / 3 : 0;  // frameworks are drawn to each other
      terms[i] -= kStep * (gradient[i] + kPenalty * (terms[i] - middle));
    }
  }
  set_terms(scale, terms);
}

ErrorScale fitted_scale(const std::vector<const Residual*>& residuals, const std::set<std::string>& seen) {
  ErrorScale scale;
  const std::vector<Weighed> all = weighed(residuals);
  std::vector<Weighed> rows;
  std::set<std::string> sources;
  for (int i = 0; i < kFrameworkKnownCount; ++i) {
    const auto framework = static_cast<FrameworkKnown>(i);
    const std::vector<Weighed> own = of_framework(all, framework);
    scale.shift[static_cast<std::size_t>(i)] = shift_of(own);
    if (framework != FrameworkKnown::kOwn) rows.insert(rows.end(), own.begin(), own.end());
  }
  if (rows.empty()) return scale;
  fit_scale(scale, rows, seen);
  std::vector<std::pair<double, double>> sizes;
  for (const auto& [residual, weight] : rows) {
    const double size =
        std::abs(residual->log_error - scale.shift[static_cast<std::size_t>(residual->traits.framework)]);
    const double log_scale = log_scale_of(scale, residual->traits, seen.contains(residual->traits.device));
    sizes.emplace_back(size / std::exp(log_scale), weight);
    sources.insert(residual->source);
  }
  scale.factor = weighed_quantile(std::move(sizes), kCovered);
  scale.rows = static_cast<int>(rows.size());
  scale.sources = static_cast<int>(sources.size());

  constexpr auto kOwn = static_cast<std::size_t>(FrameworkKnown::kOwn);
  std::vector<std::pair<double, double>> own;
  for (const auto& [residual, weight] : of_framework(all, FrameworkKnown::kOwn)) {
    own.emplace_back(std::abs(residual->log_error - scale.shift[kOwn]) + kRounding, weight);
  }
  scale.log_scale[kOwn] = own.empty() ? scale.log_scale[static_cast<std::size_t>(FrameworkKnown::kUnknown)]
                                      : std::log(weighed_quantile(std::move(own), kCovered) / scale.factor);
  return scale;
}

std::set<std::string> seen_devices(const std::vector<const Residual*>& residuals) {
  std::map<std::string, std::set<std::string>> sources;
  for (const Residual* residual : residuals) {
    if (!residual->of_memory) sources[residual->traits.device].insert(residual->source);
  }
  std::set<std::string> seen;
  for (const auto& [device, of_device] : sources) {
    if (of_device.size() >= 2) seen.insert(device);
  }
  return seen;
}

ErrorBars fitted_bars(const std::vector<const Residual*>& residuals) {
  const std::set<std::string> seen = seen_devices(residuals);
  std::vector<const Residual*> times, memory;
  for (const Residual* residual : residuals) (residual->of_memory ? memory : times).push_back(residual);
  return {.step_time = fitted_scale(times, seen),
          .memory = fitted_scale(memory, seen),
          .seen_devices = {seen.begin(), seen.end()}};
}

const std::string& key_of(const Residual& residual, LeftOutBy by) {
  if (by == LeftOutBy::kSource) return residual.source;
  return by == LeftOutBy::kFramework ? residual.stack : residual.traits.device;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

LeftOutGroup judged(const ErrorBars& bars, const std::vector<const Residual*>& rows, const std::string& left_out) {
  LeftOutGroup group{.left_out = left_out,
                     .source = rows.front()->source,
                     .framework = rows.front()->traits.framework,
                     .of_memory = rows.front()->of_memory};
  std::vector<double> errors, half_widths;
  int covered = 0;
  for (const Residual* residual : rows) {
    const PredictionIntervals intervals = intervals_of(bars, residual->traits, 1, 1);
    const PredictionInterval& interval = residual->of_memory ? intervals.memory : intervals.step_time;
    const double ratio = std::exp(residual->log_error);
    covered += interval.low <= ratio && ratio <= interval.high ? 1 : 0;
    half_widths.push_back(100 * (interval.high - interval.low) / 2);
    errors.push_back(100 * (1 / ratio - 1));
  }
  group.errors = error_statistics(errors);
  group.coverage_ratio = covered / static_cast<double>(rows.size());
  group.median_half_width_pct = median_of(std::move(half_widths));
  return group;
}

}  // namespace

std::vector<Residual> residuals_of(const std::vector<SourceScore>& scores) {
  std::vector<Residual> residuals;
  for (const SourceScore& score : scores) {
    for (const ScoredQuantity& scored : score.quantities) {
      const bool of_memory = scored.quantity == Quantity::kMemory;
      if ((!of_memory && scored.quantity != Quantity::kStepTime) || !(scored.predicted > 0 && scored.measured > 0)) {
        continue;
      }
      residuals.push_back({.source = scored.source,
                           .stack = scored.stack,
                           .traits = scored.traits,
                           .of_memory = of_memory,
                           .log_error = std::log(scored.measured / scored.predicted)});
    }
  }
  return residuals;
}

ErrorBars fit_error_bars(const std::vector<Residual>& residuals) {
  std::vector<const Residual*> all;
  for (const Residual& residual : residuals) all.push_back(&residual);
  return fitted_bars(all);
}

LeftOutBy parse_left_out_by(std::string_view text) {
  if (text == "each-source") return LeftOutBy::kSource;
  if (text == "each-framework") return LeftOutBy::kFramework;
  if (text == "each-device") return LeftOutBy::kDevice;
  throw SpecError(fmt::format("holdout \"{}\": give each-source, each-framework or each-device", text));
}

std::vector<LeftOutGroup> judge_error_bars(const std::vector<Residual>& residuals, LeftOutBy by) {
  std::set<std::string> keys;
  for (const Residual& residual : residuals) keys.insert(key_of(residual, by));
  std::vector<LeftOutGroup> groups;
  for (const std::string& key : keys) {
    std::vector<const Residual*> others;
    std::map<std::pair<bool, ResidualGroup>, std::vector<const Residual*>> left_out;
    for (const Residual& residual : residuals) {
      if (key_of(residual, by) == key) {
        left_out[{residual.of_memory, residual_group(residual)}].push_back(&residual);
      } else {
        others.push_back(&residual);
      }
    }
    const ErrorBars bars = fitted_bars(others);
    for (const auto& [group, rows] : left_out) groups.push_back(judged(bars, rows, key));
  }
  std::ranges::stable_sort(groups, {}, [](const LeftOutGroup& group) {
    return std::tuple(group.of_memory, group.framework, group.left_out);
  });
  return groups;
}

LeftOutSummary summary_of(const std::vector<LeftOutGroup>& groups) {
  LeftOutSummary summary{.groups = static_cast<int>(groups.size())};
  if (groups.empty()) return summary;
  std::vector<double> half_widths, errors;
  for (const LeftOutGroup& group : groups) {
    summary.mean_pct += group.errors.mean_pct;
    summary.bias_pct += group.errors.bias_pct;
    summary.coverage_ratio += group.coverage_ratio;
    half_widths.push_back(group.median_half_width_pct);
    errors.push_back(group.errors.median_pct);
  }
  const auto count = static_cast<double>(groups.size());
  summary.mean_pct /= count;
  summary.bias_pct /= count;
  summary.coverage_ratio /= count;
  summary.median_half_width_pct = median_of(std::move(half_widths));
  summary.median_error_pct = median_of(std::move(errors));
  return summary;
}

}}  // namespace plumb::planner
