#include "planner/price/framework/kernel_time.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace plumb { inline namespace planner {
namespace {

double memory_rate(const DeviceSpec& device) {
  return device.memory_bytes_per_second * device.memory_efficiency;
}

/// Returns the factor on the time of a product whose rows are not aligned to 16 bytes.
double misalignment(const DeviceSpec& device, const DeviceKernel& kernel) {
  if (kernel.alignment % 8 == 0) return 1;
  if (!kernel.batched) return device.misaligned_rows;
  return kernel.alignment % 4 == 0 ? device.misaligned_by_4 : device.misaligned_by_2;
}

/// Returns the share of an equally large product's rate that a product of routed experts reaches. Fill and drain of
/// each expert's own product cost as much as so many rows of it, and casts or biases between them keep the streams
/// apart.
double grouped_share(const KernelPrices& prices, const StackSpec& stack, const DeviceKernel& kernel, bool measured) {
  if (!kernel.routed || kernel.wide) return 1;
  const double rows = kernel.form == GemmForm::kWeightGrad ? kernel.shape.k : kernel.shape.m;
  const double filled = measured || stack.expert_half_rows <= 0 ? 1 : rows / (rows + stack.expert_half_rows);
  const bool apart = prices.quantized_bytes > 0 || kernel.biased;
  return filled * (apart && kernel.narrow ? stack.expert_gemm_share : 1);
}

Seconds gemm_kernel_time(const KernelPrices& prices, const StackSpec& stack, const DeviceKernel& kernel) {
  const auto& by_form = prices.corrections[static_cast<std::size_t>(KernelKind::kGemm)];
  const double grouped = grouped_share(prices, stack, kernel, !by_form.empty());
  const double narrow =
      prices.peak_flops_per_second * grouped * (prices.quantized_bytes > 0 ? stack.fp8.gemm_factor : 1);
  const double peak = kernel.batched || kernel.wide ? prices.wide_flops_per_second : narrow;
  const Seconds modelled =
      gemm_time(prices.device, peak, kernel.shape, kernel.bytes) * misalignment(prices.device, kernel);
  if (by_form.empty() || kernel.batched) return modelled;
  const auto form = static_cast<std::int64_t>(kernel.form);
  const auto same = by_form.find(form);
  const auto size = [](double value) { return static_cast<std::int64_t>(std::llround(std::max(1.0, value))); };
  return modelled * correction_factor((same != by_form.end() ? same : by_form.begin())->second,
                                      {size(kernel.shape.m), size(kernel.shape.n), size(kernel.shape.k),
                                       size(kernel.shape.count), form});
}

Seconds attention_kernel_time(const KernelPrices& prices, const StackSpec& stack, const DeviceKernel& kernel) {
  const DeviceSpec& device = prices.device;
  const bool forward = kernel.kind == DeviceKernel::Kind::kAttentionForward;
  double rate = device.attention_efficiency;
  if (const auto known = device.attention.find(std::string(attention_kernel_name(stack.attention)));
      known != device.attention.end()) {
    const AttentionRate& known_rate = known->second;
    const double half = forward ? known_rate.half_sequence : known_rate.backward_half_sequence;
    rate = (forward ? known_rate.forward : known_rate.backward) * kernel.sequence / (kernel.sequence + half);
  }
  return kernel.launches * device.kernel_fixed +
         Seconds{std::max(kernel.flops / (prices.wide_flops_per_second * rate), kernel.bytes / memory_rate(device))};
}

}  // namespace

Seconds device_kernel_time(const KernelPrices& prices, const StackSpec& stack, const DeviceKernel& kernel) {
  switch (kernel.kind) {
    case DeviceKernel::Kind::kGemm:
      return gemm_kernel_time(prices, stack, kernel);
    case DeviceKernel::Kind::kAttentionForward:
    case DeviceKernel::Kind::kAttentionBackward:
      return attention_kernel_time(prices, stack, kernel);
    case DeviceKernel::Kind::kTraffic:
      break;
  }
  return prices.device.kernel_fixed + Seconds{kernel.bytes * stack.memory_traffic / memory_rate(prices.device)};
}

Seconds fixed_time(const StackSpec& stack, const KernelExchange& exchange, int ranks) {
  if (exchange.group != Group::kTensor) return Seconds{0};
  const int steps = (exchange.kind == CollectiveKind::kAllReduce ? 2 : 1) * (ranks - 1);
  return stack.tensor_collective + steps * stack.tensor_step;
}

}}  // namespace plumb::planner
