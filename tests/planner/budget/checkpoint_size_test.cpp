#include "planner/budget/checkpoint_size.h"

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("a checkpoint has the weights and the optimizer's state") {
  const ModelSpec model = preset_model("llama-3-8b");
  const auto parameters = static_cast<double>(model_parameter_count(model));
  CHECK(checkpoint_bytes(model, {.precision = Precision::kBf16}) == 14 * parameters);  // BLOOM: 2.3 TB for 176 B, too
  CHECK(checkpoint_bytes(model, {.precision = Precision::kFp32}) == 12 * parameters);
  CHECK(checkpoint_bytes(model, {.precision = Precision::kBf16, .optimizer = Optimizer::kSgd}) == 10 * parameters);
}

}  // namespace plumb::test
