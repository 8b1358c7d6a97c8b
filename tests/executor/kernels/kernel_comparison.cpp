#include "tests/executor/kernels/kernel_comparison.h"

#include <utility>

#include <fmt/format.h>

#include "executor/transport/transport.h"
#include "tests/executor/machines/host_machine.h"

namespace plumb::test {
namespace {

/// Sums of some hundred numbers of fp32; 8 and 11 bits of mantissa of what is stored, and in fp32 sums of numbers that
/// may have been rounded to them the other way.
KernelOperands::Tolerance tolerance_of(std::optional<HalfFormat> half) {
  if (!half) return {.stored = 3e-5, .floats = 3e-5};
  if (*half == HalfFormat::kBf16) return {.stored = 1.6e-2, .floats = 4e-3};
  return {.stored = 2e-3, .floats = 5e-4};
}

std::string name_of(std::optional<HalfFormat> half) {
  return !half ? "fp32" : *half == HalfFormat::kBf16 ? "bf16" : "fp16";
}

struct Tally {
  int passed = 0, failed = 0;
};

using MakeMachine = std::function<TestedMachine(std::optional<HalfFormat>)>;

/// Tries one case on a machine of its own, so that the next one runs where this one fails.
void compare_case(Tally& tally, const MakeMachine& make, KernelBench& reference, const KernelCase& of,
                  std::optional<HalfFormat> half, unsigned tries, unsigned seed) {
  const auto count = [&](const std::string& difference, unsigned at) {
    ++(difference.empty() ? tally.passed : tally.failed);
    if (!difference.empty()) fmt::print("{} in {}, seed {}: {}\n", of.name, name_of(half), at, difference);
  };
  try {
    const TestedMachine tested = make(half);
    KernelBench ours(*tested.machine, tested.show);
    for (const unsigned end = seed + tries; seed < end; ++seed) {
      std::string difference = difference_on(ours, reference, of, half, seed);
      if (const std::string faults = tested.faults ? tested.faults() : ""; !faults.empty())
        difference += (difference.empty() ? "" : "; ") + faults;
      count(difference, seed);
    }
  } catch (const RunError& error) {
    count(error.what(), seed);
  }
}

}  // namespace

KernelBench::KernelBench(DeviceMachine& machine, ShowTensors show)
    : machine_(&machine), show_(std::move(show)), memory_(machine.allocate(kCaseBytes)) {
  machine.prepare(std::vector<DeviceLane>{{.rank = 0, .stream = DeviceStream::kCompute}}, 1);
}

std::vector<std::byte> KernelBench::outcome(const std::string& name, const KernelCase::Call& call,
                                            const KernelOperands& operands) {
  const std::vector<std::byte>& tensors = operands.bytes();
  if (std::ssize(tensors) > kCaseBytes) throw RunError(name + ": its tensors take too much");
  machine_->upload(memory_, tensors);
  if (show_) show_(operands.tensors());
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
  return own.difference(ours.outcome(of.name, here, own), reference.outcome(of.name, there, other), tolerance_of(half));
}

int compare_with_host(const MakeMachine& make, const ComparisonOptions& options) {
  Tally tally;
  unsigned seed = options.seed;
  for (const std::optional<HalfFormat> half :
       {std::optional<HalfFormat>{}, std::optional(HalfFormat::kBf16), std::optional(HalfFormat::kFp16)}) {
    HostMachine host(half);
    KernelBench reference(host);
    for (const KernelCase& of : kernel_cases()) {
      if (of.name.find(options.only) != std::string::npos)
        compare_case(tally, make, reference, of, half, options.tries, seed);
      seed += options.tries;
    }
  }
  fmt::print("{} tries of kernels or chains of them in 3 formats, from seed {} on\n", tally.passed + tally.failed,
             options.seed);
  fmt::print("[cases] {} passed, {} failed\n", tally.passed, tally.failed);
  return tally.failed == 0 && tally.passed > 0 ? 0 : 1;
}

}  // namespace plumb::test
