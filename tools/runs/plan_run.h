#pragma once
// A plan is checked to be runnable on this machine, and gets the text that it trains on.

#include <string>

#include "planner/evaluate/evaluation.h"
#include "planner/search/plan.h"
#include "tools/inputs/arguments.h"
#include "tools/runs/lower_plan.h"

namespace plumb { inline namespace tools {

/// Throws UsageError if the cpu backend is given no plan.
void require_cpu_arguments(const ReplayArguments& arguments);

/// A plan as Plumb's own executor trains it.
struct OwnPlan {
  Plan plan;          ///< without a stack; without the prediction for one
  std::string title;  ///< model and layout, and the framework for which it was priced, if that was another
};

/// Returns the plan in a file, on the meshes that are asked for. Throws as plan_input and on_meshes.
OwnPlan own_plan_input(const std::string& path, const std::string& meshes);

/// Returns the plan of a step that is launched as one graph, so that the host's time for each kernel does not count.
Plan launched_at_once(Plan plan);

/// Returns the plan's evaluation with its timeline, its messages between meshes of different shape as they are asked for
/// or as the executor sends them. Throws SpecError if the layout cannot exist.
Evaluation runnable_evaluation(const Plan& plan, const std::string& reshard = "");

/// Throws SpecError if `bytes`, the sum over all ranks, are more than this machine's memory.
void require_room(double bytes);

/// Returns runnable_evaluation() for the cpu backend. Throws SpecError if all ranks together would take more than this
/// machine's memory.
Evaluation cpu_evaluation(const Plan& plan, const std::string& reshard = "");

/// Returns the contents of the file, or the text that is built into the tool if the path is empty.
std::string training_text(const std::string& path);

/// Returns the path, or the name of the built-in text if the path is empty.
std::string text_name(const std::string& path);

/// Returns the settings of a training of so many steps on a backend, with its text read. Throws InputError if the file cannot be
/// read, and UsageError if the context attention has an unknown name.
RunSettings training_settings(const TrainingArguments& training, const std::string& backend, int steps);

}}  // namespace plumb::tools
