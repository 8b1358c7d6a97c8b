#pragma once
// The prediction of one published row.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/time_components.h"
#include "planner/score/measured_quantities.h"
#include "planner/score/row_mapping.h"

namespace plumb { inline namespace planner {

struct RowPrediction {
  std::optional<double> step_seconds;
  std::optional<TimeComponents> components;          ///< components of the step
  std::vector<std::int64_t> bytes_by_pipeline_rank;  ///< tensors, and the memory of the stack's context
  bool fits = true;  ///< true: it fits the device less the memory that driver and runtime reserve
  std::optional<double> layer_forward_seconds;  ///< one transformer layer and micro-batch
  std::optional<double> layer_backward_seconds;
  std::string failure;  ///< reason why nothing is predicted; empty: something is
};

/// Predicts the step, or where the row measured one layer, a layer of the middle of the model on a rank of the first
/// stage. Faults of the question become a failure. Components are worked out only if asked for.
RowPrediction predict_row(const RowQuestion& question, const MeasuredQuantities& measured,
                          bool with_components = false);

/// The question among several that fits and is predicted fastest; the fastest where none fits. Questions that fail are
/// left out. The list is not empty.
struct ChosenPrediction {
  std::size_t index = 0;
  RowPrediction prediction;
};
ChosenPrediction fastest_prediction(const std::vector<RowQuestion>& questions, const MeasuredQuantities& measured,
                                    bool with_components = false);

}}  // namespace plumb::planner
