#pragma once
// A run as somebody measured it, beside what its plan predicts.
//
//   const ComparedRun compared = compare_run(pricing, evaluation, observed);
//   compared.step.predicted / compared.step.measured - 1       // above 0: the prediction is too slow

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/evaluate/time_components.h"
#include "planner/logs/median_estimate.h"
#include "schedules/action.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// The time that a timer of the run added up for these operations in a step.
struct ObservedOperations {
  std::string name;  ///< the timer's
  std::vector<Op> ops;
  MedianEstimate least;  ///< seconds a step on the rank with the least of them
  MedianEstimate most;   ///< seconds a step on the rank with the most
};

/// The time of these parts of a step in a profile, in the mean over its ranks.
struct ObservedComponent {
  std::string name;
  std::vector<TimeComponent> components;
  double seconds = 0;
};

struct ObservedRun {
  std::string framework;                   ///< the program that printed it
  MedianEstimate step;                     ///< seconds
  std::optional<std::int64_t> peak_bytes;  ///< the largest memory that any rank reserved
  std::vector<ObservedOperations> operations;
  std::vector<ObservedComponent> components;
};

struct PredictedAndMeasured {
  double predicted = 0;
  double measured = 0;
};

/// Returns predicted / measured - 1.
double error_ratio(const PredictedAndMeasured& quantity);

/// Seconds a step of operations or components; `least` and `most` are the same for components.
struct ComparedPart {
  std::string name;
  PredictedAndMeasured least;
  PredictedAndMeasured most;
};

struct ComparedRun {
  PredictedAndMeasured step;                   ///< seconds
  std::optional<PredictedAndMeasured> memory;  ///< bytes of the fullest rank; nothing: the run says nothing of memory
  std::vector<ComparedPart> parts;             ///< the first is the one whose `most` is off by most seconds
};

/// `evaluation` has a timeline where the run has operations.
ComparedRun compare_run(const Pricing& pricing, const Evaluation& evaluation, const ObservedRun& run);

}}  // namespace plumb::planner
