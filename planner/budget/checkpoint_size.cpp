#include "planner/budget/checkpoint_size.h"

namespace plumb { inline namespace planner {

double checkpoint_bytes(const ModelSpec& model, const TrainingSpec& training) {
  const std::int64_t each = bytes_per_element(training.precision) + optimizer_bytes_per_parameter(training);
  return static_cast<double>(model_parameter_count(model)) * static_cast<double>(each);
}

}}  // namespace plumb::planner
