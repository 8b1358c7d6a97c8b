#include "planner/calibrate/calibration.h"

#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "kernels/layer.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

std::optional<KernelKind> kernel_from_name(std::string_view name) {
  for (int kind = 0; kind < kKernelKindCount; ++kind) {
    if (kernel_name(static_cast<KernelKind>(kind)) == name) return static_cast<KernelKind>(kind);
  }
  return std::nullopt;
}

bool is_gemm(KernelKind kind) {
  return kind == KernelKind::kGemm;
}
bool is_attention(KernelKind kind) {
  return kind == KernelKind::kAttentionForward || kind == KernelKind::kAttentionBackward;
}
bool is_memory_bound(KernelKind kind) {
  return !is_gemm(kind) && !is_attention(kind) && (kind < KernelKind::kWeighPicks);
}
/// The rate of a fused product says nothing of other kernels.
bool is_fused_product(KernelKind kind, const std::vector<std::int64_t>& shape) {
  return is_gemm(kind) && is_fused(static_cast<GemmForm>(shape[4]));
}

double flops_of(const KernelCall& call) {
  return call.flops;
}
double elements_of(const KernelCall& call) {
  return call.elements_moved;
}

/// Returns the rate of each sample of the chosen kernels in amounts a second, in ascending order.
std::vector<double> rates(const Measurement& measurement, bool (*chosen)(KernelKind),
                          double (*amount)(const KernelCall&)) {
  std::vector<double> result;
  for (const KernelSample& sample : measurement.samples) {
    const std::optional<KernelKind> kind = kernel_from_name(sample.kernel);
    if (kind && chosen(*kind) && !is_fused_product(*kind, sample.shape))
      result.push_back(amount(kernel_call(*kind, sample.shape)) / sample.median.count());
  }
  std::ranges::sort(result);
  return result;
}

double median(const std::vector<double>& ascending) {
  return ascending[ascending.size() / 2];
}

void require_sane(const Measurement& measurement) {
  for (std::size_t i = 0; i < measurement.samples.size(); ++i) {
    const KernelSample& sample = measurement.samples[i];
    check_kernel_sample(sample, fmt::format("measurement of {}, sample {}", measurement.device, i));
  }
  if (measurement.cores < 1 || measurement.memory_bytes < measurement.cores) {
    throw SpecError(fmt::format("measurement of {}: {} cores with {} bytes of memory: give what the machine has",
                                measurement.device, measurement.cores, measurement.memory_bytes));
  }
}

}  // namespace

// The link is the least-squares fit of t = latency + bytes * inverse on relative errors (weights 1 / t^2).
LinkSpec message_link(const Measurement& measurement) {
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max(), largest = 0;
  for (const KernelSample& sample : measurement.samples) {
    if (sample.kernel != "message") continue;
    const auto x = static_cast<double>(sample.shape[0]);
    const double y = sample.median.count();
    const double weight = 1 / (y * y);
    w += weight, wx += weight * x, wxx += weight * x * x, wy += weight * y, wxy += weight * x * y;
    smallest = std::min(smallest, sample.shape[0]);
    largest = std::max(largest, sample.shape[0]);
  }
  if (smallest >= largest) {
    throw SpecError(
        fmt::format("measurement of {}: {} ranks exchange messages, but not two sizes of them were measured: "
                    "calibrate messages too",
                    measurement.device, measurement.cores));
  }
  double latency = std::max(0.0, (wxx * wy - wx * wxy) / (w * wxx - wx * wx));
  double inverse = (wxy - latency * wx) / wxx;
  if (!(inverse > 0)) {
    throw SpecError(fmt::format(
        "measurement of {}: larger messages do not take longer: measure larger ones, more often", measurement.device));
  }
  return {.bytes_per_second = 1 / inverse, .latency = Seconds{latency}};
}

ClusterSpec cluster_from_measurement(const Measurement& measurement, const MeasuredIn& in) {
  require_sane(measurement);
  const std::vector<double> gemm = rates(measurement, is_gemm, flops_of);
  const std::vector<double> attention = rates(measurement, is_attention, flops_of);
  std::vector<double> memory = rates(measurement, is_memory_bound, elements_of);
  for (double& rate : memory) rate *= static_cast<double>(bytes_per_element(in.precision));
  if (gemm.empty() || memory.empty()) {
    throw SpecError(fmt::format("measurement of {}: there is no sample of {}: calibrate it too", measurement.device,
                                gemm.empty() ? "gemm" : "a memory-bound kernel such as residual_add"));
  }
  ClusterSpec cluster;
  cluster.name = measurement.device;
  cluster.note = fmt::format("calibrated with backend {} on {}", measurement.backend, measurement.date);
  cluster.devices = cluster.devices_per_node = measurement.cores;
  cluster.device = {.name = measurement.device,
                    .peak_flops_per_second = {{in.precision, gemm.back()}},
                    .memory_bytes = measurement.memory_bytes / measurement.cores,
                    .memory_bytes_per_second = memory.back(),
                    .gemm_efficiency = median(gemm) / gemm.back(),
                    .attention_efficiency =
                        attention.empty() ? median(gemm) / gemm.back() : std::min(1.0, median(attention) / gemm.back()),
                    .memory_efficiency = median(memory) / memory.back(),
                    .kernel_fixed = in.kernel_fixed,
                    .gemm_fixed = in.kernel_fixed};
  if (measurement.cores > 1) cluster.node_link = message_link(measurement);
  cluster.samples = measurement.samples;
  const std::string source = fmt::format("measured on {}: ", measurement.date);
  cluster.sources = {{"device.peak_tflops." + std::string(precision_name(in.precision)), source + "fastest GEMM"},
                     {"device.gemm_efficiency", source + "median GEMM over the fastest"},
                     {"device.attention_efficiency", source + "median attention over the fastest GEMM"},
                     {"device.memory_gib", source + "the machine's memory, shared by its cores"},
                     {"device.memory_bandwidth_gb_per_s", source + "fastest memory-bound kernel"},
                     {"device.memory_efficiency", source + "median memory-bound kernel over the fastest"}};
  if (in.kernel_fixed > Seconds{0})
    for (const char* fixed : {"device.kernel_fixed_us", "device.gemm_fixed_us"})
      cluster.sources[fixed] = source + "kernels with next to nothing to do, one behind the other";
  if (cluster.node_link) {
    cluster.sources["node.bandwidth_gb_per_s"] = source + "least squares over messages";
    cluster.sources["node.latency_us"] = source + "least squares over messages";
  }
  return cluster;
}

}}  // namespace plumb::planner
