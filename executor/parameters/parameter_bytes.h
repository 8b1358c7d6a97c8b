#pragma once
// The bytes of a stage's or a rank's parameters that are held between steps, by the planner's kinds.

#include <cstdint>

namespace plumb { inline namespace executor {

struct ParameterBytes {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;  ///< includes the fp32 master weights

  friend bool operator==(const ParameterBytes&, const ParameterBytes&) = default;
};

constexpr ParameterBytes operator+(const ParameterBytes& a, const ParameterBytes& b) {
  return {
      .weights = a.weights + b.weights, .gradients = a.gradients + b.gradients, .optimizer = a.optimizer + b.optimizer};
}

}}  // namespace plumb::executor
