#include "kernels/cpu/optimizers/adamw_8bit.h"
#include "tests/executor/kernels/kernel_cases.h"

namespace plumb::test {
namespace {

/// Numbers of the third step, with scaled and clipped gradients.
StepNumbers numbers_of_a_step(bool skips) {
  return {.first_correction = 0.271F,
          .second_correction = 0.142F,
          .loss_scale = 8,
          .gradient_factor = 0.1F,
          .skips = skips ? 1.0F : 0.0F,
          .fresh_share = 0.4F};
}

/// Second moments are no less than 0: here there are none yet.
DeviceUpdate update(KernelOperands& with, std::int64_t elements) {
  const std::vector<float> none(static_cast<std::size_t>(elements), 0.01F);
  return {.weights = with.weights(elements),
          .master = with.floats(elements),
          .gradients = with.floats(elements),
          .first_moment = with.floats(elements, 0.1F),
          .second_moment = with.floats_of(none),
          .elements = elements,
          .numbers = with.numbers(numbers_of_a_step(with.size(0, 7) == 0))};
}

CaseCall decision(KernelOperands& with) {
  const std::int64_t elements = with.size(1, 9000);
  const float* gradients = with.floats(elements);
  float* partials = with.float_room(kGradientPieces);
  StepNumbers* numbers = with.numbers({.loss_scale = 8, .gradient_factor = 0.125F});
  const float clip_norm = with.coin() ? 1.0F : 0.0F;
  return [=](DeviceKernels& kernels) {
    kernels.sum_of_squares(partials, gradients, elements, 1e30F);
    kernels.decide_step(numbers, partials, kGradientPieces, clip_norm);
  };
}

CaseCall adamw(KernelOperands& with) {
  const DeviceUpdate own = update(with, with.size(1, 5000));
  return [=](DeviceKernels& kernels) { kernels.adamw_update(own, AdamW{}); };
}
CaseCall sgd(KernelOperands& with) {
  const DeviceUpdate own = update(with, with.size(1, 5000));
  return [=](DeviceKernels& kernels) { kernels.sgd_update(own, Sgd{.weight_decay = 0.1F}); };
}
/// Lion in steps so small that it is no matter where rounding decides about a sign.
CaseCall lion(KernelOperands& with) {
  const DeviceUpdate own = update(with, with.size(1, 5000));
  return [=](DeviceKernels& kernels) { kernels.lion_update(own, Lion{.learning_rate = 1e-6F}); };
}

CaseCall balance(KernelOperands& with) {
  const DeviceUpdate own = update(with, with.size(1, 500));
  return [=](DeviceKernels& kernels) { kernels.balance_update(own, 0.001F); };
}

CaseCall adamw_8bit(KernelOperands& with) {
  const std::int64_t elements = with.size(1, 9000), blocks = quantisation_blocks(elements);
  const DeviceUpdate own = update(with, elements);
  const std::vector<float> scales(static_cast<std::size_t>(blocks), 0.05F);
  const DeviceByteMoments moments{
      .first = {.codes = with.bytes(elements, Values::kCodes), .scales = with.floats_of(scales)},
      .second = {.codes = with.bytes(elements, Values::kCodes), .scales = with.floats_of(scales)},
      .signed_map = with.floats_of(signed_dynamic_map()),
      .unsigned_map = with.floats_of(unsigned_dynamic_map())};
  return [=](DeviceKernels& kernels) { kernels.adamw_8bit_update(own, moments, AdamW{}); };
}

CaseCall adafactor(KernelOperands& with) {
  const bool is_vector = with.coin();
  const MatrixStackSize size{.matrices = is_vector ? 1 : with.size(1, 3),
                             .rows = is_vector ? 0 : with.size(1, 60),
                             .columns = with.size(1, 200)};
  const std::int64_t elements = is_vector ? size.columns : size.matrices * size.rows * size.columns;
  const DeviceUpdate own = update(with, elements);
  const auto past = [&](std::int64_t count) {
    return with.floats_of(std::vector<float>(static_cast<std::size_t>(count), 0.3F));
  };
  const DeviceFactors factors{
      .size = size,
      .row_sums = past(is_vector ? elements : size.matrices * size.rows),
      .column_sums = is_vector ? nullptr : past(size.matrices * size.columns),
      .squares = reinterpret_cast<simt::AdafactorSquares*>(with.float_room(factor_square_bytes(size.matrices) / 4))};
  return [=](DeviceKernels& kernels) { kernels.adafactor_update(own, factors, Adafactor{}); };
}

}  // namespace

void append_update_cases(std::vector<KernelCase>& cases) {
  cases.insert(cases.end(), {{"gradients' norm and the step's decision", decision},
                             {"AdamW", adamw},
                             {"SGD", sgd},
                             {"Lion", lion},
                             {"a bias of picks", balance},
                             {"8-bit AdamW", adamw_8bit},
                             {"Adafactor", adafactor}});
}

}  // namespace plumb::test
