#include "tools/verbs/calibrate/calibrate_cuda.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cuda_library/open_cuda_library.h"
#include "executor/measure/device/measure_device.h"
#include "executor/transport/transport.h"
#include "kernels/layer.h"
#include "planner/calibrate/calibration.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "schedules/units.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/progress.h"
#include "tools/io/usage.h"
#include "tools/reports/slowdown_report.h"
#include "tools/reports/table.h"
#include "tools/runs/cuda_run.h"
#include "tools/runs/lower_plan.h"
#include "tools/runs/nccl_cluster.h"
#include "tools/verbs/calibrate/measure_gpus.h"

namespace plumb { inline namespace tools {
namespace {

constexpr double kForOneGpu = 0.6;  // share of the budget; the groups of several GPUs have the rest

/// Returns the rate at which one core of the host copies; bytes that are read and bytes that are written both count.
double host_bytes_per_second() {
  constexpr std::size_t kBytes = std::size_t{128} << 20U;
  const std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes, 2);
  Seconds fastest{1e9};
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    fastest = std::min(fastest, std::chrono::duration_cast<Seconds>(std::chrono::steady_clock::now() - begin));
  }
  return 2.0 * static_cast<double>(kBytes) / fastest.count() * (to.back() == 1 ? 1 : 0);
}

ClusterSpec cluster_of(const DeviceMeasurement& measured, Precision precision, const std::string& sharing) {
  ClusterSpec cluster =
      cluster_from_measurement(measured.measurement, {.precision = precision, .kernel_fixed = measured.kernel_fixed});
  cluster.note += fmt::format(", on {}; ", sharing);
  if (measured.measurement.cores > 1)
    cluster.note += fmt::format(
        "with all ranks at work products take {:.2f} and memory-bound kernels {:.2f} times as long as with one; ",
        measured.product_contention.ratio(), measured.memory_contention.ratio());
  cluster.note += fmt::format(
      "beside a copy from the host products take {:.2f} times as long, and the copy {:.2f} beside "
      "products",
      measured.product_beside_copy.ratio(), measured.copy_beside_product.ratio());
  cluster.host = HostSpec{
      .memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE),
      .memory_bytes_per_second = host_bytes_per_second(),
      .device_bytes_per_second = std::max(measured.from_host_bytes_per_second, measured.to_host_bytes_per_second),
      .device_efficiency = std::min(measured.from_host_bytes_per_second, measured.to_host_bytes_per_second) /
                           std::max(measured.from_host_bytes_per_second, measured.to_host_bytes_per_second),
      .devices_per_switch = measured.measurement.cores};
  const std::string source = fmt::format("measured on {}: ", measured.measurement.date);
  cluster.sources["host.memory_gib"] = source + "the machine's memory";
  cluster.sources["host.memory_bandwidth_gb_per_s"] = source + "copies of one core";
  cluster.sources["host.device_bandwidth_gb_per_s"] = source + "copies of pinned memory in the faster direction";
  cluster.sources["host.device_efficiency"] = source + "the slower direction over the faster";
  return cluster;
}

TextTable table_of(const DeviceMeasurement& measured, const ClusterSpec& cluster, Precision precision) {
  const DeviceSpec& device = cluster.device;
  const auto beside = [](const BesideTime& time) {
    return fmt::format("{} -> {} ({:.2f} times)", duration_text(time.alone.count()), duration_text(time.beside.count()),
                       time.ratio());
  };
  TextTable table{.head = {"measured", "value"}};
  table.rows = {
      {"fastest matrix product", fmt::format("{:.1f} TFLOP/s", device.peak_flops_per_second.at(precision) / 1e12)},
      {"memory bandwidth", fmt::format("{:.0f} GB/s", device.memory_bytes_per_second / kGiga)},
      {"a kernel with nothing to do", duration_text(measured.kernel_fixed.count())},
      {"enqueued by the host in", duration_text(measured.enqueue.count())},
      {"largest product, one rank -> all", beside(measured.product_contention)},
      {"largest sum, one rank -> all", beside(measured.memory_contention)},
      {"from the host", fmt::format("{:.1f} GB/s", measured.from_host_bytes_per_second / kGiga)},
      {"to the host", fmt::format("{:.1f} GB/s", measured.to_host_bytes_per_second / kGiga)},
      {"products beside a copy from the host", beside(measured.product_beside_copy)},
      {"that copy beside products", beside(measured.copy_beside_product)},
      {"samples", std::to_string(measured.measurement.samples.size())}};
  if (cluster.node_link)
    table.rows.push_back(
        {"messages between ranks", fmt::format("{:.0f} GB/s, {}", cluster.node_link->bytes_per_second / kGiga,
                                               duration_text(cluster.node_link->latency.count()))});
  return table;
}

/// Returns a table with the largest sample of each kind of kernel: its rates as shares of those of the fastest product
/// and the fastest copy.
TextTable rates_of(const DeviceMeasurement& measured, const ClusterSpec& cluster, Precision precision) {
  const double flops = cluster.device.peak_flops_per_second.at(precision);
  double copied = 0;  // bytes a second, read and written
  std::vector<std::pair<KernelCall, Seconds>> largest;
  for (const KernelSample& sample : measured.measurement.samples) {
    if (sample.kernel == "message")
      copied = std::max(copied, 2 * static_cast<double>(sample.shape[0]) / sample.median.count());
    if (sample.busy_ranks > 1) continue;
    for (int kind = 0; kind < kDeviceKernelKindCount; ++kind) {
      if (kernel_name(static_cast<KernelKind>(kind)) != sample.kernel) continue;
      const KernelCall call = kernel_call(static_cast<KernelKind>(kind), sample.shape);
      const auto known = std::ranges::find(largest, call.kind, [](const auto& one) { return one.first.kind; });
      if (known == largest.end())
        largest.emplace_back(call, sample.median);
      else if (call.flops + call.elements_moved >= known->first.flops + known->first.elements_moved)
        *known = {call, sample.median};
    }
  }
  TextTable table{.head = {"kernel on one rank", "shape", "time", "TFLOP/s", "of products", "GB/s", "of copies"}};
  for (const auto& [call, time] : largest) {
    const double computed = call.flops / time.count();
    const double moved = call.elements_moved * static_cast<double>(bytes_per_element(precision)) / time.count();
    table.rows.push_back({std::string(kernel_name(call.kind)), fmt::format("{}", fmt::join(call.shape, " ")),
                          duration_text(time.count()), fmt::format("{:.1f}", computed / 1e12),
                          fmt::format("{:.0f} %", 100 * computed / flops), fmt::format("{:.0f}", moved / kGiga),
                          copied > 0 ? fmt::format("{:.0f} %", 100 * moved / copied) : "-"});
  }
  return table;
}

/// Returns the number of GPUs that have a rank each, or 0 if ranks share one.
int gpus_of(const CalibrateArguments& arguments, const CudaLibrary& library) {
  if (arguments.gpus != "each") return 0;
  const std::vector<CudaDevice> found = cuda_devices(library);
  const auto count = static_cast<int>(found.size());
  const int wanted = arguments.ranks > 0 ? arguments.ranks : count;
  if (wanted < 2 || wanted > count)
    throw InputError(
        fmt::format("--gpus each: {} ranks on {} GPUs: it measures 2 or more, a rank each; leave it away to "
                    "measure one",
                    wanted, count));
  if (arguments.sms != "even") throw UsageError("--sms is for ranks that share a GPU: leave it away, or --gpus each");
  for (const CudaDevice& one : found)
    if (one.name != found.front().name)
      print_note(
          fmt::format("a {} is taken for a {}: the first GPU's kernels are measured", one.name, found.front().name));
  return wanted;
}

/// Measures NCCL in groups of 2, 4, ... of the GPUs, and of all.
std::vector<NcclMeasurement> measure_groups(int gpus, Precision precision, Seconds budget) {
  std::vector<int> groups;
  for (int ranks = 2; ranks < gpus; ranks *= 2) groups.push_back(ranks);
  groups.push_back(gpus);
  std::vector<NcclMeasurement> measured;
  for (const int ranks : groups) {
    NcclMeasureOptions options{.ranks = ranks, .budget = budget / static_cast<double>(groups.size())};
    options.half = half_format(precision);
    measured.push_back(measure_gpus(options));
  }
  return measured;
}

}  // namespace

int calibrate_cuda(const CalibrateArguments& arguments, const std::string& date) {
  if (!arguments.only.empty() || !arguments.from.empty() || !arguments.base.empty() || !arguments.plan.empty())
    throw UsageError("--only, --from, --base and --plan are for other calibrations: leave --backend cuda away");
  if (arguments.output.empty()) throw UsageError("calibrate writes a cluster: name the file with --output");
  const CudaSharing how = cuda_sharing(arguments.sms);
  const Precision precision = precision_from_name(arguments.precision, "--precision");
  require_writable(arguments.output);
  const CudaLibrary& library = open_cuda();
  const std::string device = cuda_device_text(library);
  const int gpus = gpus_of(arguments, library);
  DeviceMeasurement measured;
  std::string sharing;
  const DeviceMeasureOptions options{.parts = gpus > 0 ? 1 : std::max(1, arguments.ranks),
                                     .half = half_format(precision),
                                     .budget = Seconds{arguments.budget_s} * (gpus > 0 ? kForOneGpu : 1),
                                     .device = device,
                                     .date = date};
  const std::string wrong =
      with_progress("measuring", options.budget, [&] { return library.measure(options, how, measured, sharing); });
  if (!wrong.empty()) throw RunError(wrong);
  const auto all = std::ssize(device_kernel_ladder());
  const auto kernels = std::ranges::count_if(measured.measurement.samples, [](const KernelSample& sample) {
    return sample.busy_ranks == 1 && sample.kernel != "message";
  });
  if (kernels < all)
    print_note(fmt::format("{} of {} sizes of kernels did not fit into {:g} s, or into memory: give a larger --budget",
                           all - kernels, all, options.budget.count()));
  ClusterSpec cluster = cluster_of(measured, precision, sharing);
  std::vector<SlowdownSample> slowdowns;
  if (gpus > 0) {
    const std::vector<NcclMeasurement> groups =
        measure_groups(gpus, precision, Seconds{arguments.budget_s} * (1 - kForOneGpu));
    sharing = fmt::format("a GPU each, with NCCL {}", groups.back().version);
    cluster.devices = cluster.devices_per_node = gpus;
    ClusterFit fit = with_nccl(std::move(cluster), groups, arguments.precision, date);
    for (const std::string& note : fit.notes) print_note(note);
    cluster = std::move(fit.cluster);
    slowdowns = groups.back().slowdowns;
  }
  const nlohmann::ordered_json document = with_format(FileForm::kCluster, to_json(cluster));
  write_file(arguments.output, json_file_text(document));
  print_note(fmt::format("wrote {}", arguments.output));
  if (arguments.json)
    print_answer(json_answer(document));
  else
    print_text(fmt::format("{}, {} ranks on {}\n\n{}\n{}{}{}", device, std::max(gpus, options.parts), sharing,
                           to_text(table_of(measured, cluster, precision)),
                           to_text(rates_of(measured, cluster, precision)), slowdowns.empty() ? "" : "\n",
                           slowdown_text(slowdowns, arguments.precision)));
  return kDone;
}

}}  // namespace plumb::tools
