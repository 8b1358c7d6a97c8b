#pragma once
// A plan made runnable on this machine, and the text that it trains on.

#include <string>

#include "planner/evaluate/evaluation.h"
#include "planner/search/plan.h"
#include "tools/inputs/arguments.h"
#include "tools/runs/lower_plan.h"

namespace plumb { inline namespace tools {

/// Throws InputError if the cpu backend is given no plan, or options that are the timed backend's alone.
void require_cpu_arguments(const ReplayArguments& arguments);

/// The plan's evaluation with its timeline. Throws SpecError if the layout cannot exist.
Evaluation runnable_evaluation(const Plan& plan);

/// Throws SpecError if so many bytes, of all ranks together, are more than this machine's memory.
void require_room(double bytes);

/// Returns it for the cpu backend. Throws SpecError if all ranks together would take more than this machine's memory.
Evaluation cpu_evaluation(const Plan& plan);

/// The file's contents, or the text that the tool carries for an empty path.
std::string training_text(const std::string& path);

/// The path, or what the text that the tool carries is called.
std::string text_name(const std::string& path);

/// The settings of a training of so many steps, its text read. Throws InputError if the file cannot be read, UsageError
/// if the context attention has another name.
RunSettings training_settings(const TrainingArguments& training, int steps);

}}  // namespace plumb::tools
