#pragma once
// A simulation as `plumb simulate` prints it: one JSON document, or the verdict with its reasons.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/search/plan.h"
#include "planner/search/resource_sensitivity.h"
#include "simulator/memory/memory_holders.h"
#include "simulator/network/conditioning.h"
#include "simulator/path/exposed.h"
#include "simulator/path/sensitivity.h"
#include "simulator/simulate.h"
#include "tools/inputs/costs_option.h"
#include "tools/reports/noise_report.h"
#include "traces/idle_causes.h"

namespace plumb { inline namespace tools {

/// A rank that was said to be slow.
struct SlowRankOnPath {
  int world_rank = 0;
  double speed = 1;
  SimTime on_path{0};  ///< that the critical path spends computing on it, or on a rank that keeps step with it
};

/// Facts that a simulation alone does not have; they are empty where there is no model.
struct ReportContext {
  std::optional<double> samples_per_step;
  std::optional<double> tokens_per_step;  ///< where samples are sequences
  std::optional<double> mfu_ratio;
  bool has_memory = false;                       ///< the costs came with bytes
  std::vector<MemoryPeak> memory_peaks;          ///< [rank]; empty without bytes or without a timeline
  int optimizer_steps = 1;                       ///< that the schedule takes: an asynchronous run has many
  std::vector<IdleByCause> idle;                 ///< [rank]; empty without a timeline
  std::vector<ExposedTime> exposed;              ///< [rank]; empty without a timeline
  std::vector<ExposedTime> exposed_on_path;      ///< [rank]; empty where transfers share links
  std::vector<ResourceSensitivity> by_resource;  ///< of a plan, where `sensitivity` is known
  std::optional<Sensitivity> sensitivity;        ///< with a critical path, of a step that is not ill-conditioned
  std::optional<Conditioning> conditioning;      ///< where derivatives are known
  std::string no_sensitivity;                    ///< why derivatives cannot be told; empty: they can, or none are asked
  std::vector<SlowRankOnPath> slow_ranks;        ///< those that were asked for, in that order; with a critical path
  std::optional<NoiseReport> noise;              ///< where it was asked for
  TimeUnit unit;                                 ///< of printed tables
  bool unit_given = false;                       ///< false: the unit that suits each time
};

/// Keys as docs/commands.md lists them for `simulate --json`; what is not known is null. step_time_s is the
/// makespan: of one step, or of an asynchronous schedule's whole run between flushes.
nlohmann::ordered_json simulation_json(const Simulation& simulation, const ReportContext& context);

/// Returns the verdict: the step's time and rates, and the memory of the fullest rank beside its limit. `plan` is null
/// for a schedule without a model, of which both bubbles and the activations are told.
std::string simulation_verdict(const Simulation& simulation, const ReportContext& context, const Plan* plan);

/// Returns where the time goes, what binds it, and what was asked for besides: noise, slow ranks.
std::string simulation_text(const Simulation& simulation, const ReportContext& context);

/// Returns the rest: tables by rank of what it does and why it idles, what the critical path is made of, and all
/// sensitivities.
std::string simulation_details(const Simulation& simulation, const ReportContext& context);

/// OPTIMIZER_STEPs that each stage takes, at least 1.
int optimizer_steps_of(const Schedule& schedule);

}}  // namespace plumb::tools
