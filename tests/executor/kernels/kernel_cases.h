#pragma once
// One case for every kernel of DeviceKernels: sizes and values from a seed, odd ones among them. The results
// of one set of kernels are compared with those of another (kernel_comparison.h).

#include <functional>
#include <string>
#include <vector>

#include "executor/kernels/device_kernels.h"
#include "tests/executor/kernels/kernel_operands.h"

namespace plumb::test {

struct KernelCase {
  using Call = std::function<void(DeviceKernels&)>;

  std::string name;
  std::function<Call(KernelOperands&)> make;  ///< asks for its operands; what it returns enqueues
};

/// Enqueues the kernel of a case.
using CaseCall = KernelCase::Call;

/// Returns the cases of every part of DeviceKernels, one behind the other.
std::vector<KernelCase> kernel_cases();

void append_layer_cases(std::vector<KernelCase>& cases);      // products, norms, activations, embeddings, losses
void append_attention_cases(std::vector<KernelCase>& cases);  // whole, in blocks of a ring, of slices
void append_expert_cases(std::vector<KernelCase>& cases);
void append_image_cases(std::vector<KernelCase>& cases);
void append_state_space_cases(std::vector<KernelCase>& cases);
void append_update_cases(std::vector<KernelCase>& cases);

}  // namespace plumb::test
