#pragma once
// The tensors in which a block's program keeps the decisions of its router.

#include <algorithm>
#include <cassert>

#include "executor/layers/device/step_call.h"

namespace plumb { inline namespace executor {

class ExpertRoutes {
 public:
  explicit ExpertRoutes(const LayerProgram& program) {
    const auto forward = steps_of(program, Pass::kForward);
    const auto router =
        std::ranges::find_if(forward, [](const LayerStep& step) { return step.is(KernelKind::kRouter); });
    assert(router != forward.end());
    tensors_ = router->writes;  // the probabilities come first
  }

  DeviceRoutes in(const StepCall& of) const {
    return {.picks = of.integers_at(tensors_[1]),
            .weights = of.floats_at(tensors_[2]),
            .places = of.integers_at(tensors_[3]),
            .bounds = of.integers_at(tensors_[5]),
            .loads = of.integers_at(tensors_[4])};
  }

 private:
  Positions tensors_;
};

}}  // namespace plumb::executor
