#pragma once
// A prediction held against measurements of the same schedule: how far off it is, and what makes it so.
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

/// One operation of one stage: the mean over its actions; measured, of each action's median over the steps.
struct OpComparison {
  Op op = Op::kForward;
  int stage = 0;
  std::int64_t count = 0;  ///< actions a step
  ComparedTime mean;
  MedianInterval interval;  ///< measured, of the mean over a step's actions
};

struct RankComparison {
  ComparedTime busy;
  ComparedTime idle;
  ComparedTime overhead;  ///< of idle: between compute actions although all that the next one needs is there
                          ///< (idle_causes.h): the replay loop's own time, and how late its rank is woken
  std::int64_t predicted_peak_bytes = 0;
  std::int64_t measured_peak_bytes = 0;  ///< 0 where memory was not measured
};

/// A cause of the step-time error: what the chain of actions that fixes the predicted step spends on it.
struct ErrorCause {
  enum class Kind : std::uint8_t {
    kOperation,   ///< compute actions of `op` on `stage`
    kTransfer,    ///< messages of `op`, start to delivery
    kCollective,  ///< UNSHARD or REDUCE_GRAD
    kWaiting,     ///< for inputs or channels that are late
    kOverhead,    ///< between an action and the next although all that it needs is there
  };
  Kind kind = Kind::kOperation;
  Op op = Op::kForward;  ///< of the first three
  int stage = -1;        ///< of kOperation
  ComparedTime time;
};

struct Comparison {
  int steps = 0;      ///< measured
  ComparedTime step;  ///< measured: the median step's (of an even number, the faster of the two in the middle)
  MedianInterval step_interval;  ///< measured
  SimTime fastest_step{0};
  SimTime slowest_step{0};
  double predicted_bubble_ratio = 0;
  double measured_bubble_ratio = 0;  ///< of the median step, as all that follows but `ops`
  double predicted_span_bubble_ratio = 0;
  double measured_span_bubble_ratio = 0;
  std::vector<OpComparison> ops;      ///< compute, by op, then stage
  std::vector<RankComparison> ranks;  ///< [rank]
  std::vector<ErrorCause> causes;     ///< their differences sum exactly to the step's; the largest first
};

/// The causes are found along latest_chain(predicted): its actions' durations and the time between them, as predicted
/// and as measured, each add up to their step's time. Actions that the measurement has no span for (messages, say)
/// count there as waiting. Throws InputError if there is no measured step, or if a timeline is not of the predicted
/// schedule.
Comparison compare(const Timeline& predicted, const std::vector<Timeline>& measured_steps);

/// Tables of all of it, at most 100 columns wide. `timeline` gives the stages' names.
std::string to_text(const Comparison& comparison, const Timeline& timeline);

}}  // namespace plumb::traces
