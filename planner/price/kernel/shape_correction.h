#pragma once
// The correction of modelled times by measured ones: the measured shapes near a shape say how much slower it is.
//
//   factor = exp(sum_i w_i log(measured_i / model_i) / sum_i w_i),   w_i = 1 / d_i^3
// The sums run over the eight nearest samples; d is the Euclidean distance of the shapes in log2(1 + size). This is
// inverse distance weighting (Shepard 1968) of the part that the model does not explain. A measured shape gets its
// measured time, a size between two of them lies on the log-log curve through both, and a size outside keeps the
// correction of its neighbours.

#include <cstdint>
#include <vector>

namespace plumb { inline namespace planner {

struct ShapeCorrection {
  std::vector<double> log_shape;  ///< log2(1 + size)
  double log_ratio = 0;           ///< log(measured / model)
};

/// Returns the correction that a measured and a modelled time give, both above 0.
ShapeCorrection shape_correction(const std::vector<std::int64_t>& shape, double measured, double modelled);

/// Returns the factor on the modelled time of `shape`; 1 without samples. All shapes have the same length.
double correction_factor(const std::vector<ShapeCorrection>& corrections, const std::vector<std::int64_t>& shape);

}}  // namespace plumb::planner
