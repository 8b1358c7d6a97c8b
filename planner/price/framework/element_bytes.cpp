#include "planner/price/framework/element_bytes.h"

namespace plumb { inline namespace planner {

ElementBytes element_bytes(const KernelPrices& kernels, const StackSpec& stack) {
  const auto activation = static_cast<double>(kernels.element_bytes);
  const auto gradient = static_cast<double>(kernels.gradient_bytes);
  const bool quantized = kernels.quantized_bytes > 0;
  const bool copied = stack.copied_gradient_bytes > 0 && stack.copied_gradient_bytes != gradient;
  return {.activation = activation,
          .gathered = quantized && stack.fp8.gathers ? kernels.quantized_bytes : activation,
          .gradient = gradient,
          .accumulated = (copied ? activation + gradient + gradient : activation) + 2 * gradient,
          .cast = quantized ? stack.fp8.cast_bytes : 0};
}

}}  // namespace plumb::planner
