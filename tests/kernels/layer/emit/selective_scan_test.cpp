// Mamba's mixer by its numbers (Gu & Dao 2023, 2312.00752), as Jamba has it (Lieber et al. 2024, 2403.19887).

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/kernels/layer/all_kinds.h"

namespace plumb::test {
namespace {

TransformerLayer of_jamba() {
  return {.hidden = 4096,
          .states = MambaMixer{.channels = 8192, .state_size = 16, .step_rank = 256, .inner_norms = true}};
}

}  // namespace

TEST_CASE("Mamba's mixer has the parameters of Jamba's") {
  // Its published sizes: 2 x 4096 channels, states of 16, steps of rank 4096 / 16, 4 taps with a bias, three norms.
  const std::int64_t projections = 4096 * 2 * 8192 + 8192 * (256 + 2 * 16) + 256 * 8192 + 8192 * 4096;
  const std::int64_t channels = 8192 * (4 + 1) + 8192 /* the steps' bias */ + 8192 * 16 + 8192;
  CHECK(parameter_count(of_jamba()) == projections + channels + 256 + 2 * 16 + 4096);
}

TEST_CASE("tensor ranks sum B, C and the low-rank steps, which come from all channels") {
  const LayerProgram program = layer_program(of_jamba(), {.microbatch = 1, .sequence = 64, .tensor_parallel = 4});
  std::vector<std::int64_t> summed;
  for (const Exchange& exchange : exchanges_of(program, Pass::kForward)) summed.push_back(exchange.elements);
  CHECK(summed == std::vector<std::int64_t>{64 * 256, 64 * 2 * 16, 64 * 4096});
}

TEST_CASE("the scan is priced and has no code") {
  CHECK(kernel_without_code(of_jamba()) == "selective_scan_forward");
  CHECK(kernel_without_code(small_mamba2()).empty());
  CHECK_FALSE(is_on_devices(of_jamba()));
}

}  // namespace plumb::test
