#pragma once
// The verbs of the command line; each has a file. A verb gets parsed arguments, reads files, calls the library, prints,
// and returns the exit code. A user's mistake leaves it as InputError.

#include <string>

#include "tools/inputs/arguments.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {

int models_verb(const PresetArguments& arguments);
int clusters_verb(const PresetArguments& arguments);
int stacks_verb(const PresetArguments& arguments);
int plan_verb(const PlanArguments& arguments);
int budget_verb(const BudgetArguments& arguments);
int partition_verb(const PartitionArguments& arguments);

/// Prints the partition of measured layers; `text` is the contents of the profile.
int partition_profile(const PartitionArguments& arguments, const std::string& text);

int simulate_verb(const SimulateArguments& arguments);
int schedule_list_verb(const ScheduleVerbArguments& arguments);
int schedule_make_verb(const ScheduleVerbArguments& arguments);
int schedule_show_verb(const ScheduleVerbArguments& arguments);
int schedule_check_verb(const ScheduleVerbArguments& arguments);
int schedule_search_verb(const ScheduleVerbArguments& arguments);
int schedule_convert_verb(const ScheduleVerbArguments& arguments);
int memory_verb(const MemoryArguments& arguments);
int whatif_verb(const WhatifArguments& arguments);
int compare_verb(const CompareArguments& arguments);
int export_verb(const ExportArguments& arguments);
int import_verb(const ImportArguments& arguments);
int score_verb(const ScoreArguments& arguments);
int run_verb(const RunArguments& arguments);
int validate_verb(const ValidateArguments& arguments);
int calibrate_verb(const CalibrateArguments& arguments);
int trace_info_verb(const TraceArguments& arguments);
int trace_compare_verb(const TraceCompareArguments& arguments);

}}  // namespace plumb::tools
