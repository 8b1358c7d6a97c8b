#pragma once
// The results of two machines for the same kernel: of a GPU and of the host, say.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/machines/device_machine.h"
#include "tests/executor/kernels/kernel_cases.h"

namespace plumb::test {

inline constexpr std::int64_t kCaseBytes = std::int64_t{64} << 20;  ///< most bytes of a case's tensors

/// Is told of the tensors that the next call may touch.
using ShowTensors = std::function<void(const std::vector<std::span<std::byte>>&)>;

/// A machine on which cases are tried, one rank, one call a replay.
class KernelBench {
 public:
  explicit KernelBench(DeviceMachine& machine, ShowTensors show = {});

  std::byte* memory() const { return memory_; }
  /// Returns the tensors after the call. Throws what the machine throws.
  std::vector<std::byte> outcome(const std::string& name, const KernelCase::Call& call, const KernelOperands& operands);

 private:
  DeviceMachine* machine_;
  ShowTensors show_;
  std::byte* memory_;
};

/// Runs the case on both machines. Returns the differences; empty if there are none.
std::string difference_on(KernelBench& ours, KernelBench& reference, const KernelCase& of,
                          std::optional<HalfFormat> half, unsigned seed);

/// A machine whose kernels are compared with the host's, and what it knows of them besides.
struct TestedMachine {
  std::unique_ptr<DeviceMachine> machine;
  ShowTensors show = {};
  std::function<std::string()> faults = {};  ///< of the kernels since the last time; empty: none
};

struct ComparisonOptions {
  unsigned tries = 4;  ///< of every case in every format
  unsigned seed = 0;   ///< of the first try; each takes the next
  std::string only;    ///< part of the names of the cases; empty: all
};

/// Tries the cases in fp32, bf16 and fp16, each on a machine of its own, made for the format, and on the host. Prints
/// every difference and a count of them. Returns the exit status: 0 if all agree up to rounding, 1 if some do not, if no
/// case has the name, or if a machine failed.
int compare_with_host(const std::function<TestedMachine(std::optional<HalfFormat>)>& make,
                      const ComparisonOptions& options);

}  // namespace plumb::test
