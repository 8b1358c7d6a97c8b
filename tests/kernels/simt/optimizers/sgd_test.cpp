#include "kernels/simt/optimizers/sgd.h"

#include <doctest/doctest.h>

#include "kernels/cpu/optimizers/sgd.h"
#include "tests/kernels/simt/momentum_update.h"

namespace plumb::test {

TEST_CASE("GPU Sgd agrees with the CPU's on scaled gradients, and leaves a skipped step's weights") {
  check_momentum_update<simt::SgdUpdate<Bf16, float>>(Sgd{.learning_rate = 0.01F, .weight_decay = 0.2F},
                                                      [](auto... arguments) { sgd_update(arguments...); });
}

}  // namespace plumb::test
