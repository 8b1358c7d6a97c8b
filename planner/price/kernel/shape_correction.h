#pragma once
// Measured times against a model of them: how much slower than the model a shape is, from the measured shapes near it.
//
//   factor = exp(sum_i w_i log(measured_i / model_i) / sum_i w_i),   w_i = 1 / d_i^3
// over the eight nearest samples, d the Euclidean distance of the shapes in log2(1 + size): inverse distance weighting
// (Shepard 1968) of what the model leaves unexplained. A measured shape comes out as measured, a size between two of
// them on the log-log curve through both, and one outside keeps the correction of its neighbours.

#include <cstdint>
#include <vector>

namespace plumb { inline namespace planner {

struct ShapeCorrection {
  std::vector<double> log_shape;  ///< log2(1 + size)
  double log_ratio = 0;           ///< log(measured / model)
};

/// From a measured and a modelled time, both above 0.
ShapeCorrection shape_correction(const std::vector<std::int64_t>& shape, double measured, double modelled);

/// What to multiply the modelled time of `shape` by; 1 without samples. All shapes have the same length.
double correction_factor(const std::vector<ShapeCorrection>& corrections, const std::vector<std::int64_t>& shape);

}}  // namespace plumb::planner
