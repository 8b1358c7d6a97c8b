// A lower bound of the time of each kernel on A100, H100, H200 and B200, from the PTX that nvcc makes of it,
// run by an interpreter: the work that each unit has, over the published rate of the unit. What may stand between a
// bound and a measured time is counted beside it for an H100: instructions of every kind with what warps wait for, how
// many warps are there to fill each other's waits, the time of all units one after the other, how long the last blocks
// run alone, and conflicts of banks.
//
//   kernel_bounds PTX [PTXAS_LOG]     PTX of executor/machines/cuda/cuda_kernels.cu, and what `ptxas -v` says of it
//
// The kernels are those of GPT-2 on one sequence of 1024 tokens in bf16, and attention with heads of 128 and 256
// channels.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "executor/measure/device/device_kernel_calls.h"
#include "executor/measure/operand_values.h"
#include "executor/parameters/device/device_update.h"
#include "planner/spec/cluster_spec.h"
#include "tests/executor/machines/host_machine.h"
#include "tests/planner/fixtures.h"
#include "tests/ptx/interpreted_kernels.h"
#include "tests/ptx/kernel_names.h"
#include "tests/ptx/ptxas_log.h"
#include "tests/ptx/residency.h"
#include "tests/ptx/text_file.h"
#include "tests/ptx/warp_schedule.h"
#include "tests/ptx/work_bound.h"

namespace plumb::test { namespace {

struct NamedCall {
  std::string name;
  KernelCall call;
  std::string published;  ///< rate of attention to put beside it: "forward" or "backward"
};

constexpr int kMultiprocessors = 132;  // of an H100 SXM (NVIDIA 2022, "H100 Tensor Core GPU Architecture")
constexpr int kSequences = 8;          // of the measured steps
// The shortest kernel of those steps: three blocks that add 768 numbers (docs/hardware/h100-2026-11-26/kernels.csv.gz).
constexpr Seconds kLaunch{2.9e-6};
constexpr double kClocks = 1755e6;  // a second, where the latencies were measured (tests/ptx/machine/pace.h)
constexpr int kFewWarps = 16;       // of a multiprocessor; with more of them its units work at the same time
constexpr std::int64_t kTokens = 1024, kHidden = 768, kHeads = 12, kVocabulary = 50304;

std::vector<NamedCall> named_calls() {
  return {
      {"attention, d 64", kernel_call(KernelKind::kAttentionForward, {1, kTokens, kHeads, kHeads, 64, 0}), "forward"},
      {"its gradient", kernel_call(KernelKind::kAttentionBackward, {1, kTokens, kHeads, kHeads, 64, 0}), "backward"},
      {"attention, d 128", kernel_call(KernelKind::kAttentionForward, {1, kTokens, 6, 6, 128, 0}), "forward"},
      {"its gradient", kernel_call(KernelKind::kAttentionBackward, {1, kTokens, 6, 6, 128, 0}), "backward"},
      {"attention, d 256", kernel_call(KernelKind::kAttentionForward, {1, kTokens, 3, 3, 256, 0}), "forward"},
      {"its gradient", kernel_call(KernelKind::kAttentionBackward, {1, kTokens, 3, 3, 256, 0}), "backward"},
      {"layer norm", kernel_call(KernelKind::kNormForward, {kTokens, kHidden, 1}), ""},
      {"its gradient", kernel_call(KernelKind::kNormBackward, {kTokens, kHidden, 1}), ""},
      {"GELU", kernel_call(KernelKind::kActivationForward, {kTokens, 4 * kHidden, 0}), ""},
      {"its gradient", kernel_call(KernelKind::kActivationBackward, {kTokens, 4 * kHidden, 0}), ""},
      {"SwiGLU", kernel_call(KernelKind::kActivationForward, {kTokens, 4 * kHidden, 1}), ""},
      {"its gradient", kernel_call(KernelKind::kActivationBackward, {kTokens, 4 * kHidden, 1}), ""},
      {"bias", kernel_call(KernelKind::kBiasForward, {kTokens, kHidden}), ""},
      {"its gradient", kernel_call(KernelKind::kBiasBackward, {kTokens, kHidden}), ""},
      {"rotary", kernel_call(KernelKind::kRotary, {kTokens, 2 * kHeads, 64}), ""},
      {"residual", kernel_call(KernelKind::kResidualAdd, {kTokens, kHidden}), ""},
      {"dropout", kernel_call(KernelKind::kDropout, {kTokens, kHidden}), ""},
      {"embedding", kernel_call(KernelKind::kEmbeddingForward, {kTokens, kHidden, 1}), ""},
      {"its gradient", kernel_call(KernelKind::kEmbeddingBackward, {kTokens, kHidden, 1}), ""},
      {"cross-entropy", kernel_call(KernelKind::kCrossEntropy, {kTokens, kVocabulary}), ""},
      {"AdamW", kernel_call(KernelKind::kAdamW, {kHidden * kHidden}), ""},
      {"router", kernel_call(KernelKind::kRouter, {kTokens, 8, 2}), ""},
      {"rows of picks", kernel_call(KernelKind::kCopyRows, {2 * kTokens, kHidden}), ""},
  };
}

/// The operands of calls, on a machine whose kernels are interpreted.
class BoundBench {
 public:
  explicit BoundBench(ptx::Interpreter& interpreter)
      : interpreter_(interpreter), machine_([&](HostEnqueue enqueue) {
          return make_interpreted_kernels(HalfFormat::kBf16, std::move(enqueue), interpreter, kMultiprocessors);
        }) {
    machine_.prepare(std::vector<DeviceLane>{{.rank = 0, .stream = DeviceStream::kCompute}}, 1);
  }

  /// Returns the work of each kernel that the call launches.
  std::vector<ptx::LaunchedWork> work_of(const KernelCall& call) {
    interpreter_.memory().clear();
    const std::int64_t bytes = operand_bytes(call, 2) / kPattern * kPattern + kPattern;
    std::byte* const memory = uploaded(operand_values(HalfFormat::kBf16, bytes));
    const StepNumbers first_step;
    const std::vector<float> maps = update_constants(AdamW8Bit{});
    const std::vector<std::int32_t> integers = operand_integers(call);
    const DeviceConstants constants{
        .integers = reinterpret_cast<const std::int32_t*>(uploaded(std::as_bytes(std::span(integers)))),
        .numbers = reinterpret_cast<const StepNumbers*>(uploaded(std::as_bytes(std::span(&first_step, 1)))),
        .maps = reinterpret_cast<const float*>(uploaded(std::as_bytes(std::span(maps))))};
    DeviceOperands operands(memory, bytes, constants, 2);
    machine_.begin_call(0, 0, DeviceStream::kCompute, "bound");
    enqueue_kernel(machine_.kernels(), call, operands);
    machine_.end_call();
    machine_.finish();
    return interpreter_.take_work();
  }

 private:
  static constexpr std::int64_t kPattern = 4096;

  std::byte* uploaded(std::span<const std::byte> bytes) {
    std::byte* const at = machine_.allocate(std::max<std::int64_t>(std::ssize(bytes), 1));
    machine_.upload(at, bytes);
    if (!bytes.empty()) interpreter_.memory().add(std::span(at, bytes.size()));
    return at;
  }

  ptx::Interpreter& interpreter_;
  HostMachine machine_;
};

/// A preset, and the kernel of attention whose published rate is put beside the bounds.
struct Gpu {
  std::string preset;
  int fp32_lanes = 128;
  std::string attention;
};
const std::vector<Gpu> kGpus = {
    {"a100", 64, "flash2"}, {"h100", 128, "flash2"}, {"h200", 128, "flash2"}, {"b200", 128, "cudnn"}};

/// A kernel's name without namespaces, run_body and its parameters.
std::string short_name(const std::string& kernel) {
  std::string name = demangled(kernel);
  name = name.substr(name.find('<') + 1, name.rfind(">(") - name.find('<') - 1);
  for (const std::string space : {"plumb::kernels::simt::", "plumb::kernels::"})
    for (std::size_t at = 0; (at = name.find(space)) != std::string::npos;) name.erase(at, space.size());
  while (name.ends_with(' ')) name.pop_back();
  return name;
}

/// Time of a call at the rate that its kind is known to reach: attention at the published kernel's, others at
/// a copy's.
Seconds published_time(const NamedCall& named, std::int64_t bytes, const DeviceSpec& device, const Gpu& gpu) {
  if (named.published.empty())
    return Seconds{static_cast<double>(bytes) / (device.memory_bytes_per_second * device.memory_efficiency)};
  const AttentionRate& rate = device.attention.at(gpu.attention);
  const bool is_forward = named.published == "forward";
  const double half = is_forward ? rate.half_sequence : rate.backward_half_sequence;
  const double share = (is_forward ? rate.forward : rate.backward) * kTokens / (kTokens + half);
  return Seconds{named.call.flops / (device.peak_flops_per_second.at(Precision::kBf16) * share)};
}

ptx::UnitRates rates_of(const DeviceSpec& device, int fp32_lanes) {
  return {.memory_bytes = device.memory_bytes_per_second,
          .tensor_flops = device.peak_flops_per_second.at(Precision::kBf16),
          .fp32_flops = device.peak_flops_per_second.at(Precision::kFp32),
          .fp32_lanes = fp32_lanes};
}

using Figures = std::map<std::string, ptx::PtxasFigures, std::less<>>;

/// Prints what an H100 may need for the measured sequences: the launch, and the longest of the bound, of instructions with
/// their waits, and, where a multiprocessor has few warps, of all units one after the other.
void print_expected(const ptx::LaunchedWork& launched, int registers, Seconds bound, Seconds in_turn) {
  const ptx::Residency residency = ptx::residency_of(launched.size, registers, {});
  const int places = std::max(kMultiprocessors * residency.blocks, 1);
  const int warps = static_cast<int>(launched.size.threads) / ptx::kWarpLanes;
  const double late = ptx::tail_ratio(launched.issued, places, kSequences);
  const Seconds scheduled{
      static_cast<double>(ptx::schedule_clocks(
          launched.phases,
          {.multiprocessors = kMultiprocessors, .copies = kSequences, .resident = std::max(residency.blocks, 1)})) /
      kClocks};
  const bool is_few = residency.blocks * warps < kFewWarps;
  const Seconds expected =
      kLaunch + std::max({kSequences * bound, scheduled, is_few ? late * kSequences * in_turn : Seconds{0}});
  fmt::print(
      "    {} blocks of {} warps on a multiprocessor, by {}; {} sequences end {:.2f} times as late as evenly spread\n",
      residency.blocks, warps, residency.limit, kSequences, late);
  fmt::print(
      "    h100, {} sequences, us: bound {:.1f}, instructions and waits {:.1f}, units in turn {:.1f}; expected "
      "{:.1f}\n",
      kSequences, (kSequences * bound).count() * 1e6, scheduled.count() * 1e6,
      (late * kSequences * in_turn).count() * 1e6, expected.count() * 1e6);
}

void print_launch(const ptx::LaunchedWork& launched, const Figures& figures) {
  const ptx::Work& work = launched.work;
  const auto found = figures.find(launched.kernel);
  fmt::print("  {}", short_name(launched.kernel));
  if (found != figures.end())
    fmt::print(", {} registers, {} B spilled", found->second.registers, found->second.spilled_bytes);
  fmt::print(
      "\n    {:.3f} MB, {:.1f} GFLOP on tensor cores, instructions of warps: {} fp32, {} special, {} in all; {} passes "
      "of shared memory, {} more of conflicts\n",
      static_cast<double>(work.memory_bytes) / 1e6, work.tensor_flops / 1e9, work.fp32, work.special, work.issued,
      work.shared_passes, work.bank_conflicts);
  const DeviceSpec device = preset_cluster("h100").device;
  fmt::print("    h100, us:");
  Seconds sum{0}, bound{0};
  for (const ptx::WorkBound& unit : ptx::unit_times(work, rates_of(device, 128))) {
    fmt::print(" {} {:.2f},", unit.unit, unit.time.count() * 1e6);
    sum += unit.time;
    bound = std::max(bound, unit.time);
  }
  fmt::print(" one after the other {:.2f}\n", sum.count() * 1e6);
  if (found != figures.end()) print_expected(launched, found->second.registers, bound, sum);
}

void print_call(const NamedCall& named, const std::vector<ptx::LaunchedWork>& launches, const Figures& figures) {
  fmt::print("{}\n", named.name);
  std::int64_t bytes = 0;
  for (const ptx::LaunchedWork& launched : launches) {
    print_launch(launched, figures);
    bytes += launched.work.memory_bytes;
  }
  for (const Gpu& gpu : kGpus) {
    const DeviceSpec device = preset_cluster(gpu.preset).device;
    Seconds sum{0};
    std::string parts;
    for (const ptx::LaunchedWork& launched : launches) {
      const ptx::WorkBound bound = bound_of(launched.work, rates_of(device, gpu.fp32_lanes));
      sum += bound.time;
      parts += fmt::format("{}{:.2f} {}", parts.empty() ? "" : ", ", bound.time.count() * 1e6, bound.unit);
    }
    fmt::print("  {}: at least {:.2f} us ({}); {} {:.2f} us\n", gpu.preset, sum.count() * 1e6, parts,
               named.published.empty() ? "a copy of the bytes" : gpu.attention,
               published_time(named, bytes, device, gpu).count() * 1e6);
  }
}

void print_bounds(const std::string& ptx_file, const std::string& ptxas_file) {
  ptx::Interpreter interpreter(text_of_file(ptx_file), true);
  const Figures figures = ptxas_file.empty() ? Figures{} : ptx::ptxas_figures(text_of_file(ptxas_file));
  for (const NamedCall& named : named_calls()) {
    BoundBench bench(interpreter);
    print_call(named, bench.work_of(named.call), figures);
  }
}

}}  // namespace plumb::test

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: kernel_bounds PTX [PTXAS_LOG]\n");
    return 2;
  }
  try {
    plumb::test::print_bounds(arguments[1], count > 2 ? arguments[2] : "");
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
