#include "planner/score/fit.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/search/whatif.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/spelling.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

constexpr std::size_t kMostConstants = 5;
constexpr double kNoEfficiency = 0.999;  // the best of a box that ends at 1 is at its edge

bool is_efficiency(const std::string& path) {
  return path.ends_with("efficiency");
}

bool leaves_each_out(Holdout holdout) {
  return holdout != Holdout::kModel && holdout != Holdout::kLayout && holdout != Holdout::kHalf;
}

/// Returns the name of the group that stays together when the rows are divided.
std::string group_of(const ReadyRow& row, const RowQuestion& question, Holdout holdout, std::size_t index,
                     std::size_t rows) {
  if (holdout == Holdout::kEachSource) return citation_of(*row.printed);
  if (holdout == Holdout::kEachFramework) return question.training.stack ? question.training.stack->name : "";
  if (holdout == Holdout::kEachDevice) return question.cluster.device.name;
  if (holdout == Holdout::kHalf) return index < rows / 2 ? "first" : "second";
  if (holdout == Holdout::kEachFamily) {
    const std::string& name = question.model.name;
    const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
    return lower_case(std::string(name.begin(), std::ranges::find_if_not(name, letter)));
  }
  if (holdout == Holdout::kLayout) return fmt::format("{} on {}", to_text(question.layout), question.cluster.devices);
  json model = to_json(question.model);
  for (const char* key : {"name", "sequence", "positions"}) model.erase(key);
  return json_line(model);
}

struct Halves {
  std::vector<ReadyRow> seen;
  std::vector<ReadyRow> unseen;
  int seen_groups = 0;
  int unseen_groups = 0;
};

using Groups = std::vector<std::pair<std::string, std::vector<const ReadyRow*>>>;

Groups grouped(const ScoreLibrary& library, const std::vector<ReadyRow>& rows, Holdout holdout) {
  std::vector<std::pair<const ReadyRow*, RowQuestion>> asked;
  for (const ReadyRow& row : rows) {
    MappedRow mapped = map_row(library, *row.read.row, row.mapping);
    if (!mapped.questions.empty() && !row.measured.out_of_memory) asked.emplace_back(&row, mapped.questions.front());
  }
  if (asked.empty()) throw SpecError("fit: no row of these files can be predicted: `plumb score` says why");
  Groups groups;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::string name = group_of(*asked[i].first, asked[i].second, holdout, i, asked.size());
    auto group = std::ranges::find(groups, name, &std::pair<std::string, std::vector<const ReadyRow*>>::first);
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}});
    group->second.push_back(asked[i].first);
  }
  if (groups.size() < 2) {
    throw SpecError("fit: all rows are one group, and nothing is left to judge on: hold out something else");
  }
  if (holdout != Holdout::kHalf) {
    std::ranges::stable_sort(groups, std::ranges::greater{}, [](const auto& group) { return group.second.size(); });
  }
  return groups;
}

/// Divides the groups: each goes, the largest first, to the half that has fewer rows.
Halves divided(const Groups& groups) {
  Halves halves;
  for (const auto& [name, members] : groups) {
    const bool seen = halves.seen.size() <= halves.unseen.size();
    ++(seen ? halves.seen_groups : halves.unseen_groups);
    for (const ReadyRow* row : members) (seen ? halves.seen : halves.unseen).push_back(*row);
  }
  return halves;
}

/// Returns the signed errors in per cent of all times of the rows.
std::vector<double> time_errors(const ScoreLibrary& library, const std::vector<ReadyRow>& rows) {
  std::vector<double> errors;
  for (const ReadyRow& row : rows) {
    const MappedRow mapped = map_row(library, *row.read.row, row.mapping);
    if (mapped.questions.empty()) continue;
    for (const ScoredQuantity& scored :
         compared(row.id, fastest_prediction(mapped.questions, row.measured).prediction, row.measured)) {
      if (scored.quantity != Quantity::kMemory) errors.push_back(error_pct(scored));
    }
  }
  return errors;
}

double mean_log_error(const std::vector<double>& errors_pct) {
  if (errors_pct.empty()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const double error : errors_pct) sum += std::abs(std::log1p(error / 100));
  return sum / static_cast<double>(errors_pct.size());
}

void set_constants(ScoreLibrary& library, std::size_t own_overrides, const std::vector<FitConstant>& constants,
                   const std::vector<double>& values) {
  library.overrides.resize(own_overrides);
  for (std::size_t i = 0; i < constants.size(); ++i) library.overrides.emplace_back(constants[i].path, values[i]);
}

/// Returns the figure of the row's presets.
double preset_value(const RowQuestion& question, const std::string& path) {
  const bool of_cluster = path.starts_with("cluster.");
  const json spec = of_cluster ? json(to_json(question.cluster)) : json(to_json(*question.training.stack));
  const json* value = &value_at(spec, std::string_view(path).substr(path.find('.') + 1));
  if (value->is_object()) value = &value_at(*value, "value");
  if (!value->is_number()) throw SpecError(fmt::format("fit {}: there is no such figure", path));
  return value->get<double>();
}

std::vector<double> preset_values(const ScoreLibrary& library, const ReadyRow& row,
                                  const std::vector<FitConstant>& constants) {
  const RowQuestion question = map_row(library, *row.read.row, row.mapping).questions.front();
  std::vector<double> values;
  for (const FitConstant& constant : constants) values.push_back(preset_value(question, constant.path));
  return values;
}

/// Returns the values with the least mean |log error| of the rows, sought from the preset's values.
std::vector<double> fitted_values(const ScoreLibrary& library, const std::vector<ReadyRow>& rows,
                                  const std::vector<FitConstant>& constants, const std::vector<double>& preset) {
  ScoreLibrary varied = library;
  const std::size_t own = library.overrides.size();
  std::vector<Interval> box;
  std::vector<double> start;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    Interval interval = constants[i].interval;
    if (is_efficiency(constants[i].path)) interval.high = std::min(interval.high, 1.0);
    box.push_back(interval);
    start.push_back(std::clamp(preset[i], interval.low, interval.high));
  }
  const auto objective = [&](const std::vector<double>& values) {
    set_constants(varied, own, constants, values);
    return mean_log_error(time_errors(varied, rows));
  };
  std::vector<double> fitted = minimise(objective, box, start);
  for (std::size_t i = 0; i < constants.size(); ++i) {
    if (is_efficiency(constants[i].path) && constants[i].interval.high >= 1 && fitted[i] > kNoEfficiency) {
      throw SpecError(
          fmt::format("fit {}: the rows want an efficiency of 1 or above, so the mapping is wrong: what these runs "
                      "computed is less "
                      "than what their rows are read as (recomputation, sizes, degrees)",
                      constants[i].path));
    }
  }
  return fitted;
}

/// Errors with the presets and with the fitted constants, on the rows of each side.
struct FoldErrors {
  std::vector<double> zero_seen, zero_unseen, fitted_seen, fitted_unseen;
};

FoldErrors errors_of(const ScoreLibrary& library, const Halves& halves, const std::vector<FitConstant>& constants,
                     const std::vector<double>& fitted) {
  ScoreLibrary varied = library;
  set_constants(varied, library.overrides.size(), constants, fitted);
  return {.zero_seen = time_errors(library, halves.seen),
          .zero_unseen = time_errors(library, halves.unseen),
          .fitted_seen = time_errors(varied, halves.seen),
          .fitted_unseen = time_errors(varied, halves.unseen)};
}

void append(std::vector<double>& to, const std::vector<double>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Returns one fold with every group on one side, or a fold for each group that leaves it out.
std::vector<std::pair<std::string, Halves>> folds_of(const Groups& groups, Holdout holdout) {
  if (!leaves_each_out(holdout)) return {{"", divided(groups)}};
  std::vector<std::pair<std::string, Halves>> folds;
  for (const auto& [left_out, unseen] : groups) {
    Halves halves{.seen_groups = static_cast<int>(groups.size()) - 1, .unseen_groups = 1};
    for (const auto& [name, members] : groups) {
      for (const ReadyRow* row : members) (name == left_out ? halves.unseen : halves.seen).push_back(*row);
    }
    folds.emplace_back(left_out, std::move(halves));
  }
  return folds;
}

}  // namespace

FitConstant parse_fit_constant(std::string_view text) {
  const Variation bounds = parse_variation(text);
  const bool known = bounds.key.starts_with("cluster.") || bounds.key.starts_with("stack.");
  if (!known || bounds.values.size() != 2 || !bounds.values[0].is_number() || !bounds.values[1].is_number() ||
      !(bounds.values[0].get<double>() < bounds.values[1].get<double>())) {
    throw SpecError(
        fmt::format("fit \"{}\": write cluster.PATH=LOW,HIGH or stack.PATH=LOW,HIGH, such as "
                    "cluster.device.gemm_efficiency=0.6,0.9",
                    text));
  }
  return {.path = bounds.key,
          .interval = {.low = bounds.values[0].get<double>(), .high = bounds.values[1].get<double>()}};
}

Holdout parse_holdout(std::string_view text) {
  if (text == "model") return Holdout::kModel;
  if (text == "layout") return Holdout::kLayout;
  if (text == "half") return Holdout::kHalf;
  if (text == "each-family") return Holdout::kEachFamily;
  if (text == "each-source") return Holdout::kEachSource;
  if (text == "each-framework") return Holdout::kEachFramework;
  if (text == "each-device") return Holdout::kEachDevice;
  throw SpecError(fmt::format(
      "holdout \"{}\": give model, layout, half, each-family, each-source, each-framework or each-device", text));
}

FitResult fit_constants(const ScoreLibrary& library, const std::vector<PublishedRows>& files,
                        const std::vector<FitConstant>& constants, Holdout holdout) {
  if (constants.empty() || constants.size() > kMostConstants) {
    throw SpecError(fmt::format("fit: {} constants: give 1 to {}, or the rows say nothing about them", constants.size(),
                                kMostConstants));
  }
  std::vector<ReadyRow> rows;
  for (const PublishedRows& published : files) {
    for (ReadyRow& row : ready_rows(library, published).rows) rows.push_back(std::move(row));
  }
  const auto folds = folds_of(grouped(library, rows, holdout), holdout);
  FitResult result{.constants = constants,
                   .preset = preset_values(library, folds.front().second.seen.front(), constants),
                   .fitted = std::vector<double>(constants.size()),
                   .seen_groups = folds.front().second.seen_groups,
                   .unseen_groups = folds.front().second.unseen_groups};
  FoldErrors all;
  for (const auto& [left_out, halves] : folds) {
    const std::vector<double> fitted = fitted_values(library, halves.seen, constants, result.preset);
    const FoldErrors errors = errors_of(library, halves, constants, fitted);
    append(all.zero_seen, errors.zero_seen);
    append(all.zero_unseen, errors.zero_unseen);
    append(all.fitted_seen, errors.fitted_seen);
    append(all.fitted_unseen, errors.fitted_unseen);
    for (std::size_t i = 0; i < fitted.size(); ++i) result.fitted[i] += fitted[i] / static_cast<double>(folds.size());
    if (!leaves_each_out(holdout)) continue;
    result.folds.push_back({.left_out = left_out,
                            .fitted = fitted,
                            .preset_unseen = error_statistics(errors.zero_unseen),
                            .unseen = error_statistics(errors.fitted_unseen)});
  }
  result.zero_seen = error_statistics(all.zero_seen);
  result.zero_unseen = error_statistics(all.zero_unseen);
  result.fitted_seen = error_statistics(all.fitted_seen);
  result.fitted_unseen = error_statistics(all.fitted_unseen);
  return result;
}

}}  // namespace plumb::planner
