#pragma once
// Plans: read from a file, or found for a question.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/search/plan.h"
#include "planner/search/settings.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// The plan in a file. Throws InputError with file, place and remedy.
Plan plan_input(const std::string& path);

/// A plan that a verb reads, or that answers a question.
struct AskedPlan {
  std::optional<Plan> plan;
  std::string infeasible;  ///< why there is no plan
  std::string switched;    ///< as PlannedQuestion::switched
};

/// Returns the plan of a file or, where the question names a cluster, the best plan of the model on it; what is asked
/// about is told, also where it is tight. Throws as plan_input and plan_question do.
AskedPlan asked_plan(const std::string& plan_or_model, const QuestionArguments& question);

/// Returns the parts of a list A|B|C; an empty text is one empty part.
std::vector<std::string> listed(std::string_view text);

/// Returns the numbers of devices that are tried, ascending. Money, energy and a deadline may want fewer than there
/// are. Throws UsageError if one that is listed is no number.
std::vector<int> device_counts_of(const AimArguments& aim, const ClusterSpec& cluster);

/// Returns the cluster with the price and the powers that the aim gives. Throws UsageError if these cannot be read.
ClusterSpec with_operation(ClusterSpec cluster, const AimArguments& aim);

/// A question and its answer: the prices that the search used, and the layouts that it found. search.ranked is empty
/// where nothing is feasible, and search.infeasible says why.
struct PlannedQuestion : SearchedSetting {
  std::optional<Schedule> order;  ///< the user's own
  std::string switched;           ///< what had to be done although nobody asked for it, as a sentence; empty: nothing
};

/// A question in several settings, and its answer.
struct PlannedSettings {
  Goal goal = Goal::kTime;
  std::vector<PlannedQuestion> settings;
  std::vector<SettingRow> rows;  ///< the best first; empty: nothing is feasible
  std::string infeasible;        ///< why there are no rows
};

/// Searches the keys of the layout that the question leaves open, in each setting of which it lists several clusters,
/// precisions or optimizers, or that `aim` tries. The layout's schedule may be a file. Throws UsageError for an aim that
/// cannot be read, or lacks an option that it needs, and as schedule_input and search_settings do.
PlannedSettings plan_settings(const QuestionArguments& question, const AimArguments& aim, const SearchOptions& options);

/// Searches the keys of the layout that the question leaves open, in one setting.
PlannedQuestion plan_question(const QuestionArguments& question, const SearchOptions& options);

/// The plan of a layout that was found.
Plan plan_of(const PlannedQuestion& planned, const Evaluation& ranked);

}}  // namespace plumb::tools
