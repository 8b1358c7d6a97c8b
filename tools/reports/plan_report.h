#pragma once
// `plumb plan` prints the verdict first, then the ranking, what lost, and what to ask next.

#include <string>

#include "planner/search/plan.h"
#include "tools/inputs/plan_input.h"

namespace plumb { inline namespace tools {

/// Returns the setting of the best row, and the evaluation of a row.
const PlannedQuestion& setting_of_best(const PlannedSettings& planned);
const Evaluation& evaluation_of(const PlannedSettings& planned, const SettingRow& row);

/// True if the row's step is no longer than runs of the best may be.
bool is_within(const PlannedSettings& planned, const SettingRow& row, const Plan& best);

/// Returns the counts of all settings together.
SearchCounts total_counts(const PlannedSettings& planned);

/// Returns the verdict: "CP2 DP8 ZeRO-1: 6.29 s a step, ...".
std::string plan_verdict(const Plan& best);

/// Returns "llama-3-8b (8.03 B parameters) on 16 x H100-SXM, 128 sequences of 8192 tokens a step, bf16; stack nemo".
std::string question_text(const Plan& plan);

/// Returns why no other layout is the answer, in a sentence: how many are too large, slower or cannot exist. Of a search
/// that was stopped it says how far the answer may be from the best.
std::string losers_text(const PlannedSettings& planned);

/// Returns the commands that go on with the plan, which stands in `file` if that is not empty.
std::string next_text(const Plan& best, const std::string& file);

/// Returns all that is printed of an answer with rows. `best` has its prediction with intervals.
std::string plan_text(const PlannedSettings& planned, const Plan& best, const std::string& file);

/// Returns what --explain adds: the variants of rows, what other values of each key cost, and why layouts lost.
std::string explanation_text(const PlannedQuestion& planned);

}}  // namespace plumb::tools
