#pragma once
// Facts that follow from those of a run, in the way in which trainers put them: the number of devices instead of the
// replicas, micro-batches instead of the batch, the two degrees of FSDP instead of a stage of ZeRO. Each can be derived
// from a run, and solved for what a trainer's settings leave out.
//
//   add_derived(facts);        // {dp: 4, tp: 2, pp: 2, ...} -> devices: 16, ...
//   solve(facts, "run.sh");    // {devices: 16, tp: 2, pp: 2, cp: 1} -> dp: 4

#include <string>
#include <string_view>

#include "planner/exchange/facts/facts.h"

namespace plumb { inline namespace planner {

/// Adds every derived fact that the others determine. One that cannot be expressed for this run stays unknown.
void add_derived(Facts& facts);

/// Returns the fact, or what it follows to be from the others; null if neither is known.
nlohmann::json known_or_derived(const Facts& facts, std::string_view name);

/// Returns what a user may change in a run that does not have this derived fact, or not as it is wanted; empty for
/// facts that every run has, and for others.
std::string_view remedy_of(std::string_view name);

/// Returns the fact of a run that decides whether it has this derived fact; the name itself for other facts.
std::string_view decider_of(std::string_view name);

/// Learns every fact that the derived ones determine. Throws SpecError "PLACE: ..." where they contradict each other.
void solve(Facts& facts, const std::string& place);

}}  // namespace plumb::planner
