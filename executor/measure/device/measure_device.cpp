#include "executor/measure/device/measure_device.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "executor/measure/device/device_kernel_calls.h"
#include "executor/measure/median.h"
#include "executor/measure/operand_values.h"
#include "executor/measure/time_left.h"
#include "executor/parameters/device/device_update.h"
#include "kernels/counter_random.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

constexpr Seconds kShortestCall{200e-6};  // some hundred times the resolution of an event
constexpr int kMostRuns = 64;             // runs of one kernel in a call
constexpr int kLeastDeviceRepeats = 3;
constexpr int kMostDeviceRepeats = 10;
constexpr double kDeviceBudgetShare = 0.1;  // share of the time left for the repeats of one kernel
constexpr double kForKernels = 0.8;         // share of the budget; copies have the rest, and what kernels leave
constexpr int kCopySizesAnyway = 7;  // sizes up to 16 MiB are copied whatever time is left, since they take hardly any
constexpr int kTinyKernels = 200;
constexpr int kProductsBeside = 4;  // products of one shape in a row, beside copies
constexpr std::int64_t kPatternBytes = 16 << 20;

/// The work of one call, on one of the parts.
using CallWork = std::function<void(DeviceKernels& kernels, int part)>;

class DeviceSession {
 public:
  DeviceSession(DeviceMachine& machine, const DeviceMeasureOptions& options, std::vector<KernelCall> kernels)
      : machine_(machine), options_(options), kernels_(std::move(kernels)) {
    std::int64_t integers = 1;
    const std::int64_t most = machine.free_bytes() / options.parts * 8 / 10;
    std::erase_if(kernels_, [&](const KernelCall& call) {
      return operand_bytes(call, element_bytes()) > most || 4 * operand_integer_count(call) > machine.free_bytes() / 10;
    });
    block_bytes_ = std::min(most, std::max(options.round_bytes, options.largest_copy_bytes));
    for (const KernelCall& call : kernels_) {
      block_bytes_ = std::max(block_bytes_, operand_bytes(call, element_bytes()));
      integers = std::max(integers, operand_integer_count(call));
    }
    integers_ = reinterpret_cast<std::int32_t*>(machine.allocate(integers * 4));
    const StepNumbers first_step;
    auto* step_numbers = reinterpret_cast<StepNumbers*>(machine.allocate(sizeof(StepNumbers)));
    machine.upload(step_numbers, std::as_bytes(std::span(&first_step, 1)));
    const std::vector<float> map_values = update_constants(AdamW8Bit{});
    auto* maps = reinterpret_cast<float*>(machine.allocate(std::ssize(map_values) * 4));
    machine.upload(maps, std::as_bytes(std::span(map_values)));
    const std::vector<std::byte> filling = operand_values(options.half, kPatternBytes);
    const std::int64_t given = std::min(kPatternBytes, block_bytes_);
    for (int part = 0; part < options.parts; ++part) {
      std::byte* block = blocks_.emplace_back(machine.allocate(block_bytes_));
      machine.upload(block, std::span(filling).first(static_cast<std::size_t>(given)));
      operands_.emplace_back(block, block_bytes_,
                             DeviceConstants{.integers = integers_, .numbers = step_numbers, .maps = maps},
                             element_bytes());
    }
    std::vector<DeviceLane> lanes;
    for (int part = 0; part < options.parts; ++part)
      for (const DeviceStream stream : {DeviceStream::kCompute, DeviceStream::kSendActivation, DeviceStream::kCopy})
        lanes.push_back({part, stream});
    machine.prepare(lanes, static_cast<std::size_t>(options.parts * (kMostDeviceRepeats + 1)));
    // The device copies the rest itself, since gigabytes from the host would take seconds.
    times_of(options.parts, 0, DeviceStream::kCompute, [&](DeviceKernels& kernels, int part) {
      std::byte* to = block(part);
      for (std::int64_t done = given; done < block_bytes_; done *= 2)
        kernels.copy(to + done, to, std::min(done, block_bytes_ - done));
    });
  }

  const std::vector<KernelCall>& kernels() const { return kernels_; }
  std::int64_t block_bytes() const { return block_bytes_; }
  std::byte* block(int part) const { return blocks_[static_cast<std::size_t>(part)]; }

  /// The times of repeats on each part, and the least time in which the host enqueued a repeat on all of them. The least
  /// counts, since the host waits where a stream has too much ahead of it.
  struct Repeated {
    std::vector<Seconds> lasted;
    Seconds enqueued;
  };

  /// Measures `repeats` repeats of a call on each of the `busy` parts, without a first one.
  Repeated repeated(int busy, int repeats, DeviceStream stream, const CallWork& work) {
    std::size_t index = 0;
    std::vector<Seconds> enqueued;
    for (int repeat = 0; repeat <= repeats; ++repeat) {
      const auto begin = std::chrono::steady_clock::now();
      for (int part = 0; part < busy; ++part) {
        machine_.begin_call(index++, part, stream, "measured");
        work(machine_.kernels(), part);
        machine_.end_call();
      }
      enqueued.push_back(std::chrono::duration_cast<Seconds>(std::chrono::steady_clock::now() - begin));
    }
    const std::vector<CallTimes> times = machine_.finish();
    Repeated result{.lasted = {}, .enqueued = std::ranges::min(enqueued)};
    for (std::size_t i = static_cast<std::size_t>(busy); i < times.size(); ++i)
      result.lasted.push_back(lasted_of(times[i]));
    return result;
  }
  std::vector<Seconds> times_of(int busy, int repeats, DeviceStream stream, const CallWork& work) {
    return repeated(busy, repeats, stream, work).lasted;
  }

  /// Runs two calls at once, on two streams of part 0. Returns how long each lasts.
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

  /// Returns one kernel's sample with `busy` parts at work, or none if it would take too long and need not be measured.
  std::optional<KernelSample> sample_of(const KernelCall& call, int busy, Seconds left, bool has_to_be) {
    const std::vector<std::int32_t> integers = operand_integers(call);
    if (!integers.empty()) machine_.upload(integers_, std::as_bytes(std::span(integers)));
    const Seconds once = median_of(times_of(busy, 1, DeviceStream::kCompute, runs_of(call, 1)));
    if (!has_to_be && once * kLeastDeviceRepeats > left * kDeviceBudgetShare) return {};
    const int runs = static_cast<int>(std::clamp(std::ceil(kShortestCall / once), 1.0, double{kMostRuns}));
    const int repeats = static_cast<int>(
        std::clamp(left * kDeviceBudgetShare / (once * runs), double{kLeastDeviceRepeats}, double{kMostDeviceRepeats}));
    Repeated measured = repeated(busy, repeats, DeviceStream::kCompute, runs_of(call, runs));
    for (Seconds& time : measured.lasted) time /= runs;
    KernelSample found = sample(std::string(kernel_name(call.kind)), call.shape, measured.lasted, busy);
    found.host = measured.enqueued / runs;
    return found;
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
  std::vector<std::byte*> blocks_;    // [part]
  std::int32_t* integers_ = nullptr;  // the integers of the call that is measured
  std::vector<DeviceOperands> operands_;
};

/// Returns a kernel's work in elements that memory could move in the same time. A GPU of the last ten years computes some
/// 256 operations a moved element, give or take a factor of 2. It decides only what is measured first, and what is not.
double moved_work_of(const KernelCall& call) {
  constexpr double kFlopsOfElement = 256;
  return call.flops / kFlopsOfElement + call.elements_moved;
}

/// Measures kernels in the order of their work: the first of each kind and of each form of products, and those that
/// will fit the time by the last sample of their kind.
void measure_kernels(DeviceSession& session, const DeviceMeasureOptions& options, const TimeLeft& time_left,
                     DeviceMeasurement& result) {
  // Time per work in the last sample of each kind, and of each form of products.
  std::map<std::pair<KernelKind, std::int64_t>, Seconds> of_work;
  double most_flops = 0, most_moved = 0;
  for (const KernelCall& call : session.kernels()) {
    const Seconds left = time_left(kForKernels);
    const double work = moved_work_of(call);
    const std::pair kind(call.kind, call.kind == KernelKind::kGemm ? call.shape[4] : 0);
    const auto known = of_work.find(kind);
    const bool is_first = known == of_work.end();
    if (!is_first && known->second * work * kLeastDeviceRepeats > left * kDeviceBudgetShare) continue;
    const std::optional<KernelSample> alone = session.sample_of(call, 1, left, is_first);
    if (!alone) continue;
    of_work[kind] = alone->median / work;
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
    const std::optional<KernelSample> together = session.sample_of(call, options.parts, left, is_first);
    if (!together) continue;
    if (contention != nullptr) contention->beside = together->median;
    result.measurement.samples.push_back(*together);
  }
}

void measure_launches(DeviceSession& session, DeviceMeasurement& result) {
  const KernelCall tiny = kernel_call(KernelKind::kResidualAdd, {1, 32});
  const auto measured =
      session.repeated(1, kLeastDeviceRepeats, DeviceStream::kCompute, session.runs_of(tiny, kTinyKernels));
  result.kernel_fixed = median_of(measured.lasted) / kTinyKernels;
  result.enqueue = measured.enqueued / kTinyKernels;
}

/// Measures copies between two parts, in sizes whose repeats fit the time. Returns the largest size that was copied.
std::int64_t measure_messages(DeviceSession& session, const DeviceMeasureOptions& options, const TimeLeft& time_left,
                              DeviceMeasurement& result) {
  const std::int64_t most = std::min(options.largest_copy_bytes, session.block_bytes() / 2);
  std::byte* to = options.parts > 1 ? session.block(1) : session.block(0) + session.block_bytes() / 2;
  std::int64_t largest = 0;
  Seconds last{0};
  int sizes = 0;
  for (std::int64_t bytes = 4096; bytes <= most; bytes *= 4, ++sizes) {
    if (sizes >= kCopySizesAnyway && 4 * last * (kMostDeviceRepeats + 1) > time_left() * kDeviceBudgetShare) break;
    const CallWork copy = [&](DeviceKernels& kernels, int) { kernels.copy(to, session.block(0), bytes); };
    result.measurement.samples.push_back(DeviceSession::sample(
        "message", {bytes}, session.times_of(1, kMostDeviceRepeats, DeviceStream::kSendActivation, copy), 1));
    last = result.measurement.samples.back().median;
    largest = bytes;
  }
  return largest;
}

/// Returns the measured product with the most work among those that can be repeated beside copies in the time left
/// (otherwise the first measured product); null if no product was measured.
const KernelCall* product_beside_copies(const DeviceSession& session, const DeviceMeasurement& result, Seconds copy,
                                        Seconds left) {
  // The numbers of products and copies in measure_beside(), with one copy or product each: some alone after a first
  // time; then each time some beside as many copies as last twice as long, and the other way round. Copies take up to
  // twice as long beside products.
  constexpr int kProductsInAll = (kLeastDeviceRepeats + 1 + 3 * kLeastDeviceRepeats) * kProductsBeside,
                kCopiesInAll = 2 * 3 * kLeastDeviceRepeats;
  const KernelCall* largest = nullptr;
  for (const KernelCall& call : session.kernels()) {
    if (call.kind != KernelKind::kGemm || (largest != nullptr && call.flops <= largest->flops)) continue;
    const auto sample = std::ranges::find_if(result.measurement.samples, [&](const KernelSample& one) {
      return one.kernel == kernel_name(call.kind) && one.shape == call.shape && one.busy_ranks == 1;
    });
    if (sample == result.measurement.samples.end()) continue;
    if (largest == nullptr || kProductsInAll * sample->median + kCopiesInAll * copy <= left) largest = &call;
  }
  return largest;
}

void measure_beside(DeviceSession& session, const KernelCall& product, const CallWork& from_host, Seconds in,
                    DeviceMeasurement& result) {
  constexpr int kMostCopies = 1000;
  const auto so_many = [](double count) {
    return static_cast<int>(std::clamp(std::ceil(count), 1.0, 1.0 * kMostCopies));
  };
  const auto times = [](const CallWork& work, int count) {
    return CallWork([=](DeviceKernels& kernels, int part) {
      for (int i = 0; i < count; ++i) work(kernels, part);
    });
  };
  const CallWork products = session.runs_of(product, kProductsBeside);
  const Seconds alone = median_of(session.times_of(1, kLeastDeviceRepeats, DeviceStream::kCompute, products));
  std::vector<Seconds> of_products, of_copies;
  for (int repeat = 0; repeat < kLeastDeviceRepeats; ++repeat) {  // the other call outlasts the one that is measured
    of_products.push_back(session.times_beside(products, times(from_host, so_many(2 * alone / in))).first);
    of_copies.push_back(
        session.times_beside(session.runs_of(product, so_many(2 * kProductsBeside * in / alone)), from_host).second);
  }
  result.product_beside_copy = {alone, median_of(of_products)};
  result.copy_beside_product = {in, median_of(of_copies)};
}

void measure_copies(DeviceSession& session, DeviceMachine& machine, const DeviceMeasureOptions& options,
                    const TimeLeft& time_left, DeviceMeasurement& result) {
  const std::int64_t most = measure_messages(session, options, time_left, result);
  if (most == 0) return;
  std::byte* host = machine.allocate_on_host(most);
  const CallWork from_host = [&](DeviceKernels& kernels, int) { kernels.copy(session.block(0), host, most); };
  const CallWork to_host = [&](DeviceKernels& kernels, int) { kernels.copy(host, session.block(0), most); };
  const Seconds in = median_of(session.times_of(1, kLeastDeviceRepeats, DeviceStream::kCopy, from_host));
  const Seconds out = median_of(session.times_of(1, kLeastDeviceRepeats, DeviceStream::kCopy, to_host));
  result.from_host_bytes_per_second = static_cast<double>(most) / in.count();
  result.to_host_bytes_per_second = static_cast<double>(most) / out.count();
  if (const KernelCall* product = product_beside_copies(session, result, in, time_left()))
    measure_beside(session, *product, from_host, in, result);
}

}  // namespace

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
  std::ranges::stable_sort(kernels, {}, moved_work_of);
  const TimeLeft time_left(options.budget);
  DeviceSession session(machine, options, std::move(kernels));
  measure_launches(session, result);
  measure_kernels(session, options, time_left, result);
  measure_copies(session, machine, options, time_left, result);
  return result;
}

}}  // namespace plumb::executor
