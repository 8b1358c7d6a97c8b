#include "executor/parameters/step_scale.h"

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {

TEST_CASE("gradients lose the loss scale, and are clipped where their norm is too large") {
  CHECK(step_scale({.square_sum = 100}, {}, 0).factor == 1.0F);
  CHECK(step_scale({.square_sum = 100}, {}, 20).factor == 1.0F);
  CHECK(step_scale({.square_sum = 100}, {}, 5).factor == 0.5F);
  CHECK(step_scale({.square_sum = 100}, {.scale = 4}, 0).factor == 0.25F);
  CHECK(step_scale({.square_sum = 100}, {.scale = 4}, 1.25).factor == 0.125F);  // the norm is 2.5 without the scale
  CHECK_FALSE(step_scale({.square_sum = 100}, {.scale = 4}, 1).skip);
}

TEST_CASE("an overflow skips the step and halves the loss scale, and 2000 good steps double it") {
  CHECK(step_scale({.overflows = true}, {.scale = 4}, 1).skip);
  LossScale scale = next_loss_scale({.scale = 8, .good_steps = 7}, {.overflows = true});
  CHECK(scale == LossScale{.scale = 4, .good_steps = 0});
  for (int step = 1; step < 2000; ++step) {
    scale = next_loss_scale(scale, {});
    CHECK(scale == LossScale{.scale = 4, .good_steps = step});
  }
  CHECK(next_loss_scale(scale, {}) == LossScale{.scale = 8, .good_steps = 0});
}

TEST_CASE("an overflow that no loss scale ends is an error") {
  CHECK(next_loss_scale({.scale = 1.5}, {.overflows = true}).scale == 1);
  CHECK_THROWS_WITH_AS(next_loss_scale({.scale = 1}, {.overflows = true}),
                       doctest::Contains("the gradients overflow fp16"), InputError);
}

}  // namespace plumb::test
