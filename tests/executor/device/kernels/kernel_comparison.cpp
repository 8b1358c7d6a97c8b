#include "tests/executor/device/kernels/kernel_comparison.h"

#include "executor/transport/transport.h"

namespace plumb::test {
namespace {

/// Sums of some hundred numbers of fp32; 8 and 11 bits of mantissa of what is stored, and in fp32 sums of numbers that
/// may have been rounded to them the other way.
KernelOperands::Tolerance tolerance_of(std::optional<HalfFormat> half) {
  if (!half) return {.stored = 3e-5, .floats = 3e-5};
  if (*half == HalfFormat::kBf16) return {.stored = 1.6e-2, .floats = 4e-3};
  return {.stored = 2e-3, .floats = 5e-4};
}

}  // namespace

KernelBench::KernelBench(DeviceMachine& machine) : machine_(&machine), memory_(machine.allocate(kCaseBytes)) {
  machine.prepare(std::vector<DeviceLane>{{.rank = 0, .stream = DeviceStream::kCompute}}, 1);
}

std::vector<std::byte> KernelBench::outcome(const std::string& name, const KernelCase::Call& call,
                                            const std::vector<std::byte>& tensors) {
  if (std::ssize(tensors) > kCaseBytes) throw RunError(name + ": its tensors take too much");
  machine_->upload(memory_, tensors);
  machine_->begin_call(0, 0, DeviceStream::kCompute, name.c_str());
  call(machine_->kernels());
  machine_->end_call();
  machine_->finish();
  std::vector<std::byte> after(tensors.size());
  machine_->download(after, memory_);
  return after;
}

std::string difference_on(KernelBench& ours, KernelBench& reference, const KernelCase& of,
                          std::optional<HalfFormat> half, unsigned seed) {
  KernelOperands own(ours.memory(), half, seed), other(reference.memory(), half, seed);
  const KernelCase::Call here = of.make(own), there = of.make(other);
  return own.difference(ours.outcome(of.name, here, own.bytes()), reference.outcome(of.name, there, other.bytes()),
                        tolerance_of(half));
}

}  // namespace plumb::test
