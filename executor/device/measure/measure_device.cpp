#include "executor/device/measure/measure_device.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "executor/device/measure/device_kernel_calls.h"
#include "kernels/counter_random.h"
#include "kernels/cpu/half.h"
#include "schedules/error.h"

namespace plumb {
namespace {

constexpr Seconds kShortestCall{200e-6};  // some hundred times an event's grain
constexpr int kMostRuns = 64;             // of one kernel in a call
constexpr int kLeastRepeats = 3;
constexpr int kMostRepeats = 10;
constexpr double kLargestPart = 0.1;  // of the time left that one kernel's repeats may take
constexpr int kTinyKernels = 200;
constexpr std::int64_t kPatternBytes = 16 << 20;

Seconds median_of(std::vector<Seconds> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

/// Numbers between -1 and 1, as they are stored: on zeros a GPU draws less power, and runs faster than it ever will.
std::vector<std::byte> pattern(std::optional<HalfFormat> half) {
  std::vector<float> values(static_cast<std::size_t>(kPatternBytes / (half ? 2 : 4)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(mix_bits(i) >> 40U) / 8388608.0F - 1.0F;
  std::vector<std::byte> bytes(static_cast<std::size_t>(kPatternBytes));
  if (half) {
    std::vector<std::uint16_t> narrowed(values.size());
    narrow(narrowed.data(), values.data(), static_cast<std::int64_t>(values.size()), *half);
    std::ranges::copy(std::as_bytes(std::span(narrowed)), bytes.begin());
  } else {
    std::ranges::copy(std::as_bytes(std::span(values)), bytes.begin());
  }
  return bytes;
}

/// Work of one call, on one of the parts.
using CallWork = std::function<void(DeviceKernels& kernels, int part)>;

class DeviceSession {
 public:
  DeviceSession(DeviceMachine& machine, const DeviceMeasureOptions& options, std::vector<KernelCall> kernels)
      : machine_(machine), options_(options), kernels_(std::move(kernels)) {
    std::int64_t tokens = 1;
    const std::int64_t most = machine.free_bytes() / options.parts * 8 / 10;
    std::erase_if(kernels_, [&](const KernelCall& call) { return operand_bytes(call, element_bytes()) > most; });
    block_bytes_ = std::min(most, std::max(options.round_bytes, options.largest_copy_bytes));
    for (const KernelCall& call : kernels_) {
      block_bytes_ = std::max(block_bytes_, operand_bytes(call, element_bytes()));
      tokens = std::max(tokens, operand_tokens(call));
    }
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(tokens));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<std::int32_t>(mix_bits(i) % static_cast<std::uint64_t>(kMeasuredVocab));
    auto* on_device = reinterpret_cast<std::int32_t*>(machine.allocate(tokens * 4));
    machine.upload(on_device, std::as_bytes(std::span(numbers)));
    const StepNumbers first_step;
    auto* step_numbers = reinterpret_cast<StepNumbers*>(machine.allocate(sizeof(StepNumbers)));
    machine.upload(step_numbers, std::as_bytes(std::span(&first_step, 1)));
    const std::vector<std::byte> filling = pattern(options.half);
    for (int part = 0; part < options.parts; ++part) {
      std::byte* block = blocks_.emplace_back(machine.allocate(block_bytes_));
      for (std::int64_t at = 0; at < block_bytes_; at += kPatternBytes)
        machine.upload(block + at,
                       std::span(filling).first(static_cast<std::size_t>(std::min(kPatternBytes, block_bytes_ - at))));
      operands_.emplace_back(block, block_bytes_, on_device, step_numbers, element_bytes());
    }
    machine.prepare(options.parts, static_cast<std::size_t>(options.parts * (kMostRepeats + 1)));
  }

  const std::vector<KernelCall>& kernels() const { return kernels_; }
  std::int64_t block_bytes() const { return block_bytes_; }
  std::byte* block(int part) const { return blocks_[static_cast<std::size_t>(part)]; }

  /// So many repeats of a call on each of the busy parts; a first one does not count.
  std::vector<Seconds> times_of(int busy, int repeats, DeviceStream stream, const CallWork& work) {
    std::size_t index = 0;
    for (int repeat = 0; repeat <= repeats; ++repeat)
      for (int part = 0; part < busy; ++part) {
        machine_.begin_call(index++, part, stream, "measured");
        work(machine_.kernels(), part);
        machine_.end_call();
      }
    const std::vector<CallTimes> times = machine_.finish();
    std::vector<Seconds> lasted;
    for (std::size_t i = static_cast<std::size_t>(busy); i < times.size(); ++i) lasted.push_back(lasted_of(times[i]));
    return lasted;
  }

  /// Two calls at once, on two streams of part 0: how long each lasts.
  std::pair<Seconds, Seconds> times_beside(const CallWork& compute, const CallWork& copy) {
    machine_.begin_call(0, 0, DeviceStream::kCompute, "products");
    compute(machine_.kernels(), 0);
    machine_.end_call();
    machine_.begin_call(1, 0, DeviceStream::kCopy, "copies");
    copy(machine_.kernels(), 0);
    machine_.end_call();
    const std::vector<CallTimes> times = machine_.finish();
    return {lasted_of(times[0]), lasted_of(times[1])};
  }

  CallWork runs_of(const KernelCall& call, int runs) {
    return [this, &call, runs](DeviceKernels& kernels, int part) {
      for (int run = 0; run < runs; ++run) enqueue_kernel(kernels, call, operands_[static_cast<std::size_t>(part)]);
    };
  }

  /// One kernel's sample with so many parts at work; none where it would take too long.
  std::optional<KernelSample> sample_of(const KernelCall& call, int busy, Seconds left) {
    const Seconds once = median_of(times_of(busy, 1, DeviceStream::kCompute, runs_of(call, 1)));
    if (once * kLeastRepeats > left * kLargestPart) return {};
    const int runs = static_cast<int>(std::clamp(std::ceil(kShortestCall / once), 1.0, double{kMostRuns}));
    const int repeats =
        static_cast<int>(std::clamp(left * kLargestPart / (once * runs), double{kLeastRepeats}, double{kMostRepeats}));
    std::vector<Seconds> times = times_of(busy, repeats, DeviceStream::kCompute, runs_of(call, runs));
    for (Seconds& time : times) time /= runs;
    return sample(std::string(kernel_name(call.kind)), call.shape, times, busy);
  }

  static KernelSample sample(std::string kernel, std::vector<std::int64_t> shape, const std::vector<Seconds>& times,
                             int busy) {
    const auto [fastest, slowest] = std::ranges::minmax(times);
    return {.kernel = std::move(kernel),
            .shape = std::move(shape),
            .median = median_of(times),
            .fastest = fastest,
            .slowest = slowest,
            .repeats = static_cast<int>(times.size()),
            .busy_ranks = busy};
  }

 private:
  std::int64_t element_bytes() const { return options_.half ? 2 : 4; }
  static Seconds lasted_of(const CallTimes& times) { return to_seconds(times.end - times.start); }

  DeviceMachine& machine_;
  const DeviceMeasureOptions& options_;
  std::vector<KernelCall> kernels_;
  std::int64_t block_bytes_ = 0;
  std::vector<std::byte*> blocks_;  // [part]
  std::vector<DeviceOperands> operands_;
};

/// Kernels in order of their work; of each kind, those whose time the one before lets expect to fit.
void measure_kernels(DeviceSession& session, const DeviceMeasureOptions& options, DeviceMeasurement& result) {
  const auto begin = std::chrono::steady_clock::now();
  struct Known {
    double work = 0;
    Seconds time{0};
  };
  std::map<KernelKind, Known> last;
  double most_flops = 0, most_moved = 0;
  for (const KernelCall& call : session.kernels()) {
    const Seconds left = options.budget - std::chrono::duration_cast<Seconds>(std::chrono::steady_clock::now() - begin);
    const double work = call.flops + call.elements_moved;
    Known& known = last[call.kind];
    if (known.time * (known.work > 0 ? work / known.work : 1) * kLeastRepeats > left * kLargestPart) continue;
    const std::optional<KernelSample> alone = session.sample_of(call, 1, left);
    if (!alone) continue;
    known = {work, alone->median};
    BesideTime* contention = nullptr;
    if (call.kind == KernelKind::kGemm && call.flops > most_flops) {
      most_flops = call.flops;
      contention = &result.product_contention;
    } else if (call.kind == KernelKind::kResidualAdd && call.elements_moved > most_moved) {
      most_moved = call.elements_moved;
      contention = &result.memory_contention;
    }
    if (contention != nullptr) *contention = {alone->median, alone->median};
    result.measurement.samples.push_back(*alone);
    if (options.parts == 1) continue;
    const std::optional<KernelSample> together = session.sample_of(call, options.parts, left);
    if (!together) continue;
    if (contention != nullptr) contention->beside = together->median;
    result.measurement.samples.push_back(*together);
  }
}

void measure_launches(DeviceSession& session, DeviceMeasurement& result) {
  const KernelCall tiny = kernel_call(KernelKind::kResidualAdd, {1, 32});
  std::vector<Seconds> enqueued;
  const CallWork work = [&, runs = session.runs_of(tiny, kTinyKernels)](DeviceKernels& kernels, int part) {
    const auto begin = std::chrono::steady_clock::now();
    runs(kernels, part);
    enqueued.push_back(std::chrono::duration_cast<Seconds>(std::chrono::steady_clock::now() - begin));
  };
  result.kernel_fixed = median_of(session.times_of(1, kLeastRepeats, DeviceStream::kCompute, work)) / kTinyKernels;
  result.enqueue = median_of(enqueued) / kTinyKernels;
}

void measure_copies(DeviceSession& session, DeviceMachine& machine, const DeviceMeasureOptions& options,
                    DeviceMeasurement& result) {
  const std::int64_t most = std::min(options.largest_copy_bytes, session.block_bytes() / 2);
  for (std::int64_t bytes = 4096; bytes <= most; bytes *= 4) {
    std::byte* to = options.parts > 1 ? session.block(1) : session.block(0) + session.block_bytes() / 2;
    const CallWork copy = [&](DeviceKernels& kernels, int) { kernels.copy(to, session.block(0), bytes); };
    result.measurement.samples.push_back(DeviceSession::sample(
        "message", {bytes}, session.times_of(1, kMostRepeats, DeviceStream::kSendActivation, copy), 1));
  }
  std::byte* host = machine.allocate_on_host(most);
  const CallWork from_host = [&](DeviceKernels& kernels, int) { kernels.copy(session.block(0), host, most); };
  const CallWork to_host = [&](DeviceKernels& kernels, int) { kernels.copy(host, session.block(0), most); };
  const Seconds in = median_of(session.times_of(1, kLeastRepeats, DeviceStream::kCopy, from_host));
  const Seconds out = median_of(session.times_of(1, kLeastRepeats, DeviceStream::kCopy, to_host));
  result.from_host_bytes_per_second = static_cast<double>(most) / in.count();
  result.to_host_bytes_per_second = static_cast<double>(most) / out.count();

  const auto product = std::ranges::max_element(
      session.kernels(), {}, [](const KernelCall& call) { return call.kind == KernelKind::kGemm ? call.flops : -1; });
  if (product == session.kernels().end() || product->kind != KernelKind::kGemm) return;
  constexpr int kProducts = 4, kMostCopies = 1000;
  const auto so_many = [](double count) {
    return static_cast<int>(std::clamp(std::ceil(count), 1.0, 1.0 * kMostCopies));
  };
  const auto times = [](const CallWork& work, int count) {
    return CallWork([=](DeviceKernels& kernels, int part) {
      for (int i = 0; i < count; ++i) work(kernels, part);
    });
  };
  const CallWork products = session.runs_of(*product, kProducts);
  const Seconds alone = median_of(session.times_of(1, kLeastRepeats, DeviceStream::kCompute, products));
  std::vector<Seconds> of_products, of_copies;
  for (int repeat = 0; repeat < kLeastRepeats; ++repeat) {  // the other one goes on until after the end of the one
    of_products.push_back(session.times_beside(products, times(from_host, so_many(2 * alone / in))).first);
    of_copies.push_back(
        session.times_beside(session.runs_of(*product, so_many(2 * kProducts * in / alone)), from_host).second);
  }
  result.product_beside_copy = {alone, median_of(of_products)};
  result.copy_beside_product = {in, median_of(of_copies)};
}

}  // namespace

std::vector<KernelCall> device_kernel_ladder() {
  std::vector<KernelCall> calls;
  const auto add = [&](KernelKind kind, std::vector<std::int64_t> shape) {
    calls.push_back(kernel_call(kind, std::move(shape)));
  };
  const auto form = [](GemmForm f) { return static_cast<std::int64_t>(f); };
  for (const std::int64_t tokens : {512, 2048, 8192}) {
    for (const std::int64_t out : {1024, 4096, 16384})
      for (const std::int64_t in : {1024, 4096, 16384}) {
        add(KernelKind::kGemm, {tokens, out, in, 1, form(GemmForm::kForward)});
        add(KernelKind::kGemm, {tokens, in, out, 1, form(GemmForm::kInputGrad)});
        add(KernelKind::kGemm, {out, in, tokens, 1, form(GemmForm::kWeightGrad)});
      }
    for (const std::int64_t columns : {1024, 4096, 16384}) {
      for (const std::int64_t variant : {0, 1})
        for (const KernelKind kind :
             {KernelKind::kNormForward, KernelKind::kNormBackward, KernelKind::kActivationForward,
              KernelKind::kActivationBackward, KernelKind::kEmbeddingForward, KernelKind::kEmbeddingBackward})
          add(kind, {tokens, columns, variant});
      for (const KernelKind kind : {KernelKind::kBiasForward, KernelKind::kBiasBackward, KernelKind::kResidualAdd})
        add(kind, {tokens, columns});
    }
    for (const std::int64_t heads : {8, 40}) add(KernelKind::kRotary, {tokens, heads, 128});
    for (const std::int64_t vocab : {8192, 32768, 131072}) add(KernelKind::kCrossEntropy, {tokens, vocab});
  }
  for (const KernelKind kind : {KernelKind::kAttentionForward, KernelKind::kAttentionBackward})
    for (const std::int64_t sequence : {512, 1024, 2048, 4096, 8192}) {
      add(kind, {1, sequence, 16, 16, 64, 0});
      add(kind, {1, sequence, 32, 8, 128, 0});
    }
  for (const std::int64_t elements : {std::int64_t{1} << 16, std::int64_t{1} << 22, std::int64_t{1} << 28})
    add(KernelKind::kAdamW, {elements});
  return calls;
}

DeviceMeasurement measure_device(DeviceMachine& machine, const DeviceMeasureOptions& options) {
  if (options.parts < 1) throw SpecError(fmt::format("{} parts of a device: give at least 1", options.parts));
  if (!(options.budget > Seconds{0}))
    throw SpecError(fmt::format("a budget of {} s: give a positive time", options.budget.count()));
  DeviceMeasurement result{.measurement = {.backend = "cuda",
                                           .device = options.device,
                                           .cores = options.parts,
                                           .memory_bytes = machine.free_bytes(),
                                           .date = options.date}};
  std::vector<KernelCall> kernels = options.kernels.empty() ? device_kernel_ladder() : options.kernels;
  std::erase_if(kernels, [](const KernelCall& call) { return !is_device_kernel(call.kind); });
  std::ranges::stable_sort(kernels, {}, [](const KernelCall& call) { return call.flops + call.elements_moved; });
  DeviceSession session(machine, options, std::move(kernels));
  measure_launches(session, result);
  measure_kernels(session, options, result);
  measure_copies(session, machine, options, result);
  return result;
}

}  // namespace plumb
