#include "planner/price/kernel/kernel_price.h"

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "planner/price/kernel/gemm_time.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

double flops_seconds(const KernelPrices& prices, const KernelCall& call) {
  const DeviceSpec& device = prices.device;
  switch (call.kind) {
    case KernelKind::kAttentionForward:
    case KernelKind::kAttentionBackward:
      return call.flops / (prices.wide_flops_per_second * device.attention_efficiency);
    default:
      return 0;  // memory-bound on every device that trains
  }
}

KernelKind update_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdamW8Bit:
      return KernelKind::kAdamW8Bit;
    case Optimizer::kAdafactor:
      return KernelKind::kAdafactor;
    case Optimizer::kLion:
      return KernelKind::kLion;
    case Optimizer::kSgd:
      return KernelKind::kSgd;
    default:
      return KernelKind::kAdamW;
  }
}

/// Returns the elements that one update has; 0 if the call is no update.
std::int64_t updated_elements(const KernelCall& call) {
  switch (call.kind) {
    case KernelKind::kAdamW:
    case KernelKind::kAdamW8Bit:
    case KernelKind::kSgd:
    case KernelKind::kLion:
      return call.shape[0];
    case KernelKind::kAdafactor:
      return std::max<std::int64_t>(1, call.shape[0]) * std::max<std::int64_t>(1, call.shape[1]) * call.shape[2];
    default:
      return 0;
  }
}

bool is_product(KernelKind kind) {
  return kind == KernelKind::kGemm || kind == KernelKind::kExpertProducts;
}

Seconds median_launch(std::vector<KernelSample> samples) {
  const auto middle = samples.begin() + std::ssize(samples) / 2;
  std::ranges::nth_element(samples, middle, {}, &KernelSample::host);
  return middle->host;
}

double moved_bytes(const KernelPrices& prices, const KernelCall& call) {
  if (const std::int64_t elements = updated_elements(call); elements > 0)
    return static_cast<double>(elements * prices.optimizer_traffic_bytes);
  double bytes = call.elements_moved * static_cast<double>(prices.element_bytes);
  if (is_product(call.kind) && adds_up(static_cast<GemmForm>(call.shape[4]))) {
    const auto accumulated =
        2 * static_cast<double>(call.shape[0] * call.shape[1] * call.shape[3]);  // accumulators are read and written
    bytes += accumulated * static_cast<double>(prices.gradient_bytes - prices.element_bytes);
  }
  return bytes;
}

bool is_convolution(KernelKind kind) {
  return kind == KernelKind::kConvolutionForward || kind == KernelKind::kConvolutionInputGrad ||
         kind == KernelKind::kConvolutionWeightGrad;
}

/// Returns the product that a convolution stands for: pixels of the output by filters by numbers of a filter, group by
/// group.
GemmShape implicit_product(const KernelCall& call) {
  const std::vector<std::int64_t>& shape = call.shape;
  const auto windows = [&](std::size_t i) {
    return static_cast<double>(windows_in(shape[i], shape[5], shape[6], shape[7]));
  };
  const auto groups = static_cast<double>(shape[8]);
  const double pixels = static_cast<double>(shape[0]) * windows(1) * windows(2);
  const double filters = static_cast<double>(shape[4]) / groups;
  const double numbers = static_cast<double>(shape[5] * shape[5] * shape[3]) / groups;
  if (call.kind == KernelKind::kConvolutionForward) return {.m = pixels, .n = filters, .k = numbers, .count = groups};
  if (call.kind == KernelKind::kConvolutionInputGrad) return {.m = pixels, .n = numbers, .k = filters, .count = groups};
  return {.m = filters, .n = numbers, .k = pixels, .count = groups};
}

/// Returns the entry of a shape that is no size but a choice between programs.
std::int64_t variant_of(KernelKind kind, const std::vector<std::int64_t>& shape) {
  switch (kind) {
    case KernelKind::kGemm:
    case KernelKind::kExpertProducts:
      return shape[4];
    case KernelKind::kRouterProduct:
      return shape[3];
    case KernelKind::kNormForward:
    case KernelKind::kNormBackward:
    case KernelKind::kActivationForward:
    case KernelKind::kActivationBackward:
    case KernelKind::kEmbeddingForward:
    case KernelKind::kEmbeddingBackward:
      return shape[2];
    default:
      return 0;
  }
}

}  // namespace

std::vector<KernelSample> samples_of(const ClusterSpec& cluster, std::string_view kernel, int busy_ranks) {
  int best = 0;
  int least = std::numeric_limits<int>::max();
  for (const KernelSample& sample : cluster.samples) {
    if (sample.kernel != kernel) continue;
    least = std::min(least, sample.busy_ranks);
    if (sample.busy_ranks <= busy_ranks) best = std::max(best, sample.busy_ranks);
  }
  const int wanted = best > 0 ? best : least;
  std::vector<KernelSample> result;
  std::ranges::copy_if(cluster.samples, std::back_inserter(result), [&](const KernelSample& sample) {
    return sample.kernel == kernel && sample.busy_ranks == wanted;
  });
  return result;
}

void require_below_peak(const DeviceSpec& device, Precision precision, const StackSpec& stack) {
  if (!is_quantized(precision)) return;
  const double share = device.gemm_share(precision) * stack.fp8.gemm_factor;
  if (share <= 1) return;
  throw SpecError(
      fmt::format("stack {}: fp8_gemm_factor {} makes products {:.3g} times as fast as {}'s peak: the mapping is wrong",
                  stack.name, stack.fp8.gemm_factor, share, device.name));
}

KernelPrices kernel_prices(const ClusterSpec& cluster, const TrainingSpec& training, int busy_ranks) {
  const Precision precision = training.precision;
  const auto peak = cluster.device.peak_flops_per_second.find(precision);
  if (peak == cluster.device.peak_flops_per_second.end()) {
    std::string known;
    for (const auto& [name, flops] : cluster.device.peak_flops_per_second) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", precision_name(name));
    }
    throw SpecError(
        fmt::format("device {} has no peak_tflops for {}: train in {}, or give the figure in the cluster's file",
                    cluster.device.name, precision_name(precision), known));
  }
  const auto wide = is_quantized(precision) ? cluster.device.peak_flops_per_second.find(Precision::kBf16) : peak;
  const DeviceSpec& device = cluster.device;
  if (training.stack) require_below_peak(cluster.device, precision, *training.stack);
  KernelPrices prices{
      .device = cluster.device,
      .peak_flops_per_second = peak->second * (device.gemm_share(precision) / device.gemm_efficiency),
      .wide_flops_per_second = wide != cluster.device.peak_flops_per_second.end() ? wide->second : peak->second,
      .quantized_bytes = is_quantized(precision) ? quantized_bytes(precision) : 0,
      .element_bytes = bytes_per_element(precision),
      .gradient_bytes = bytes_per_element(training.gradient_precision),
      .optimizer_traffic_bytes = optimizer_traffic_per_parameter(training)};
  for (int kind = 0; kind < kKernelKindCount; ++kind) {
    const auto kernel = static_cast<KernelKind>(kind);
    const std::vector<KernelSample> samples = samples_of(cluster, kernel_name(kernel), busy_ranks);
    if (!samples.empty()) prices.launches[kind] = median_launch(samples);
    for (const KernelSample& sample : samples) {
      if (kernel == update_of(training.optimizer)) prices.update = kernel;
      if (kernel == KernelKind::kGemm && is_fused(static_cast<GemmForm>(sample.shape[4]))) prices.fused = true;
      if (!(sample.median.count() > 0)) {
        throw SpecError(fmt::format("cluster {}: a kernel sample of {} lasts {} s: measure it again, or drop it",
                                    cluster.name, sample.kernel, sample.median.count()));
      }
      const Seconds modelled = roofline_time(prices, kernel_call(kernel, sample.shape));
      prices.corrections[kind][variant_of(kernel, sample.shape)].push_back(
          shape_correction(sample.shape, sample.median.count(), modelled.count()));
    }
  }
  return prices;
}

Seconds launch_time(const KernelPrices& prices, const KernelCall& call) {
  return prices.launches[static_cast<std::size_t>(call.kind)];
}

Seconds roofline_time(const KernelPrices& prices, const KernelCall& call) {
  const DeviceSpec& device = prices.device;
  if (is_product(call.kind)) {
    const auto size = [&call](int index) { return static_cast<double>(call.shape[static_cast<std::size_t>(index)]); };
    return gemm_time(device, prices.peak_flops_per_second, {.m = size(0), .n = size(1), .k = size(2), .count = size(3)},
                     moved_bytes(prices, call));
  }
  if (is_convolution(call.kind))
    return gemm_time(device, prices.peak_flops_per_second, implicit_product(call), moved_bytes(prices, call));
  const double memory_seconds = moved_bytes(prices, call) / (device.memory_bytes_per_second * device.memory_efficiency);
  return device.kernel_fixed + Seconds{std::max(flops_seconds(prices, call), memory_seconds)};
}

Seconds kernel_time(const KernelPrices& prices, const KernelCall& call) {
  const auto& by_variant = prices.corrections[static_cast<std::size_t>(call.kind)];
  if (by_variant.empty()) return roofline_time(prices, call);
  const auto same = by_variant.find(variant_of(call.kind, call.shape));
  const auto& corrections = same != by_variant.end() ? same->second : by_variant.begin()->second;
  return roofline_time(prices, call) * correction_factor(corrections, call.shape);
}

KernelCall update_call(const KernelPrices& prices, const ParameterTensor& tensor, std::int64_t elements) {
  if (prices.update != KernelKind::kAdafactor) return kernel_call(prices.update, {elements});
  const std::vector<std::int64_t>& shape = tensor.shape;
  if (shape.size() < 2) return kernel_call(prices.update, {1, 0, elements});
  const std::int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  const std::int64_t matrices = std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, rows * columns));
  return kernel_call(prices.update, {matrices, std::max<std::int64_t>(1, elements / (matrices * columns)), columns});
}

}}  // namespace plumb::planner
