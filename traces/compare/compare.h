#pragma once
// Compares a prediction with measurements of the same schedule: how far off it is, and what makes it so.
//
//   Comparison c = compare(predicted, {step_1, step_2, step_3});
//   fmt::print("{}", to_text(c, predicted));

#include <cstdint>
#include <string>
#include <vector>

#include "traces/compare/median_interval.h"
#include "traces/timeline.h"

namespace plumb { inline namespace traces {

/// error_ratio = predicted / measured - 1: above 0 where the prediction is too slow. 0 where both are 0.
struct ComparedTime {
  SimTime predicted{0};
  SimTime measured{0};

  friend bool operator==(const ComparedTime&, const ComparedTime&) = default;
};
double error_ratio(const ComparedTime& time);

/// An operation of a stage: the mean over its actions. The measured side takes each action's median over the steps.
struct OpComparison {
  Op op = Op::kForward;
  int stage = 0;
  std::int64_t count = 0;  ///< actions a step
  ComparedTime mean;
  MedianInterval interval;  ///< measured interval of the mean over a step's actions
};

struct RankComparison {
  ComparedTime busy;
  ComparedTime idle;
  /// The part of `idle` between compute actions although all inputs of the next one are there (idle_causes.h): the
  /// replay loop's own time, and the delay with which its rank is woken.
  ComparedTime overhead;
  std::int64_t predicted_peak_bytes = 0;
  std::int64_t measured_peak_bytes = 0;  ///< 0 where memory was not measured
};

/// A cause of the step-time error: the time that the chain of actions that fixes the predicted step spends on it.
struct ErrorCause {
  enum class Kind : std::uint8_t {
    kOperation,   ///< compute actions of `op` on `stage`
    kTransfer,    ///< messages of `op`, from start to delivery
    kCollective,  ///< UNSHARD or REDUCE_GRAD
    kWaiting,     ///< waiting for inputs or channels that are late
    kOverhead,    ///< time between an action and the next although all inputs of the next are there
  };
  Kind kind = Kind::kOperation;
  Op op = Op::kForward;  ///< for the first three kinds
  int stage = -1;        ///< for kOperation
  ComparedTime time;
};

struct Comparison {
  int steps = 0;  ///< number of measured steps
  /// Measured: the median step's time (of an even number of steps, the faster of the two in the middle).
  ComparedTime step;
  MedianInterval step_interval;  ///< of the measured steps
  SimTime fastest_step{0};
  SimTime slowest_step{0};
  double predicted_bubble_ratio = 0;
  double measured_bubble_ratio = 0;  ///< of the median step, as are all fields below but `ops`
  double predicted_span_bubble_ratio = 0;
  double measured_span_bubble_ratio = 0;
  std::vector<OpComparison> ops;      ///< compute operations, by op, then stage
  std::vector<RankComparison> ranks;  ///< [rank]
  std::vector<ErrorCause> causes;     ///< their differences sum exactly to the step's; the largest first
};

/// Compares the steps. The causes are found along latest_chain(predicted): its actions' durations and the time between
/// them, as predicted and as measured, each add up to their step's time. Actions that the measurement has no span for
/// (messages, say) count there as waiting. Throws InputError if there is no measured step, or if a timeline is not of
/// the predicted schedule.
Comparison compare(const Timeline& predicted, const std::vector<Timeline>& measured_steps);

}}  // namespace plumb::traces
