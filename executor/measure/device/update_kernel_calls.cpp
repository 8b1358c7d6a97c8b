#include "executor/measure/device/update_kernel_calls.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/optimizers/adamw_8bit.h"

namespace plumb { inline namespace executor {
namespace {

MatrixStackSize matrices_in(const KernelCall& call) {
  return {.matrices = call.shape[0], .rows = call.shape[1], .columns = call.shape[2]};
}

std::int64_t elements_of(const KernelCall& call) {
  if (call.kind != KernelKind::kAdafactor) return call.shape[0];
  const MatrixStackSize size = matrices_in(call);
  return size.matrices * std::max<std::int64_t>(1, size.rows) * size.columns;
}

QuantisedMoment moment_of(std::int64_t elements, DeviceOperands& with) {
  auto* const codes = reinterpret_cast<std::uint8_t*>(with.bytes(elements));
  return {.codes = codes, .scales = with.floats(quantisation_blocks(elements))};
}

void enqueue_adafactor(DeviceKernels& kernels, const DeviceUpdate& update, const KernelCall& call,
                       DeviceOperands& with) {
  const MatrixStackSize size = matrices_in(call);
  auto* const squares = reinterpret_cast<simt::AdafactorSquares*>(with.bytes(factor_square_bytes(size.matrices)));
  const bool is_vector = size.rows == 0;
  kernels.adafactor_update(update,
                           {.size = size,
                            .row_sums = with.floats(is_vector ? update.elements : size.matrices * size.rows),
                            .column_sums = is_vector ? nullptr : with.floats(size.matrices * size.columns),
                            .squares = squares},
                           Adafactor{});
}

}  // namespace

bool is_update_kernel(KernelKind kind) {
  return kind == KernelKind::kAdamW || (kind >= KernelKind::kAdamW8Bit && kind <= KernelKind::kAdafactor);
}

std::int64_t update_operand_bytes(const KernelCall& call, std::int64_t element_bytes) {
  const std::int64_t elements = elements_of(call);
  // The operands are weights, master, gradients; two moments, or the sums of one, and Adafactor's squares.
  const std::int64_t squares = call.kind == KernelKind::kAdafactor ? factor_square_bytes(call.shape[0]) : 0;
  return elements * (element_bytes + 8 + 8) + squares;
}

void enqueue_update_kernel(DeviceKernels& kernels, const KernelCall& call, DeviceOperands& with) {
  assert(is_update_kernel(call.kind));
  const std::int64_t elements = elements_of(call);
  DeviceUpdate update{.weights = with.stored(elements),
                      .master = with.floats(elements),
                      .gradients = with.floats(elements),
                      .elements = elements,
                      .numbers = with.numbers()};
  if (call.kind == KernelKind::kAdafactor) return enqueue_adafactor(kernels, update, call, with);
  if (call.kind == KernelKind::kAdamW8Bit) {
    const QuantisedMoment first = moment_of(elements, with), second = moment_of(elements, with);
    return kernels.adamw_8bit_update(update,
                                     {.first = first,
                                      .second = second,
                                      .signed_map = with.maps(),
                                      .unsigned_map = with.maps() + signed_dynamic_map().size()},
                                     AdamW{});
  }
  update.first_moment = with.floats(elements);
  if (call.kind == KernelKind::kSgd) return kernels.sgd_update(update, Sgd{});
  if (call.kind == KernelKind::kLion) return kernels.lion_update(update, Lion{});
  update.second_moment = with.floats(elements);
  kernels.adamw_update(update, AdamW{});
}

}}  // namespace plumb::executor
