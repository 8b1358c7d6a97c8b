#pragma once
// Published runs that print the times of their operations. The simulation takes these times and gives the step's time,
// with no model of hardware between them, so that such runs judge only the schedules and the engine.
//
//   MeasuredRun run = *measured_run(row, "zero_bubble_iclr24.json: rows[0]").run;
//   Seconds constant = fitted_action_overhead(even_rows);    // one number for all rows
//   Seconds predicted = predicted_step_time(run, constant);  // against run.measured_step

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "schedules/cost_table.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

/// A run that is ready to be simulated.
struct MeasuredRun {
  std::string id;
  Schedule lowered;
  CostTable costs;
  bool by_span = false;      ///< optimizers are not synchronised: a step lasts as long as the longest span of a rank
  Seconds measured_step{0};  ///< published time
};

/// A run, or the reason why the row is none.
struct MeasuredRunReading {
  std::optional<MeasuredRun> run;
  std::string reason;  ///< empty where there is a run
};

/// Reads a row of the schema of published measurements (pp, n_microbatches, schedule, measured, derived) whose
/// operations were timed; `place` goes into errors. Two kinds of times are known:
///   profiled_ms {TF, TB, TW, Tcomm}                 forward, input gradient, weight gradient and hop of every stage
///   measured.fwd_us_per_rank, .bwd_us_per_rank      forward and whole backward, by stage
/// The known schedules are 1F1B; 1F1B-I, with vpp chunks, or the `interleaved_chunks` given where vpp is not a number;
/// ZB-1p and ZB-2p, made for the row's own times within the activations of p and 2p micro-batches, by their span (Qi et
/// al. 2024 synchronise no optimizer). The row is no run, with a reason, if it has another schedule, times outside the
/// pipeline's own actions (measured.extra_us_per_rank), no times, or no measured step. Throws SpecError if a key that
/// is there has the wrong type or a number is out of range.
MeasuredRunReading measured_run(const nlohmann::json& row, const std::string& place, int interleaved_chunks);

/// Returns the step's time if each issued compute action (F, I, W, B) takes `action_overhead` besides its own time.
/// Throws SpecError if the overhead is negative.
Seconds predicted_step_time(const MeasuredRun& run, Seconds action_overhead);

/// Returns the one overhead of all runs with the least mean |log(predicted / measured)|, among those that make one run
/// exact (predictions grow all but linearly with it, and a sum of distances along a line is least at one of its
/// points); 0 where every prediction is too long already. Throws SpecError if there is no run.
Seconds fitted_action_overhead(const std::vector<MeasuredRun>& runs);

/// Returns by [run] the signed relative error of its prediction: predicted / measured - 1.
std::vector<double> step_time_errors(const std::vector<MeasuredRun>& runs, Seconds action_overhead);

}}  // namespace plumb::planner
