#include "kernels/simt/optimizers/lion.h"

#include <doctest/doctest.h>

#include "kernels/cpu/optimizers/lion.h"
#include "tests/kernels/simt/momentum_update.h"

namespace plumb::test {

TEST_CASE("GPU Lion agrees with the CPU's on scaled gradients, and leaves a skipped step's weights") {
  check_momentum_update<simt::LionUpdate<Bf16, float>>(Lion{.learning_rate = 0.01F, .weight_decay = 0.2F},
                                                       [](auto... arguments) { lion_update(arguments...); });
}

}  // namespace plumb::test
