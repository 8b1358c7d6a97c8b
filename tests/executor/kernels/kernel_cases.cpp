#include "tests/executor/kernels/kernel_cases.h"

namespace plumb::test {

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> cases;
  append_layer_cases(cases);
  append_attention_cases(cases);
  append_expert_cases(cases);
  append_image_cases(cases);
  append_state_space_cases(cases);
  append_update_cases(cases);
  return cases;
}

}  // namespace plumb::test
