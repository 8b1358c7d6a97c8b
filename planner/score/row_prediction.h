#pragma once
// What is predicted of one published row.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/score/measured_quantities.h"
#include "planner/score/row_mapping.h"
#include "planner/score/time_components.h"

namespace plumb { inline namespace planner {

struct RowPrediction {
  std::optional<double> step_seconds;
  std::optional<TimeComponents> components;          ///< of the step
  std::vector<std::int64_t> bytes_by_pipeline_rank;  ///< tensors, and what the stack's context holds
  bool fits = true;                                  ///< in the device, less what driver and runtime reserve
  std::optional<double> layer_forward_seconds;       ///< of one transformer layer and micro-batch
  std::optional<double> layer_backward_seconds;
  std::string failure;  ///< why nothing is predicted; empty: something is
};

/// The step, or where the row measured one layer, that layer: of the middle of the model, on a rank of the first stage.
/// Faults of the question are a failure. Components are worked out only if asked for.
RowPrediction predict_row(const RowQuestion& question, const MeasuredQuantities& measured,
                          bool with_components = false);

/// Of several questions the one that fits and is predicted fastest, or where none fits, the fastest; what fails is left
/// out. The list is not empty.
struct ChosenPrediction {
  std::size_t index = 0;
  RowPrediction prediction;
};
ChosenPrediction fastest_prediction(const std::vector<RowQuestion>& questions, const MeasuredQuantities& measured,
                                    bool with_components = false);

}}  // namespace plumb::planner
