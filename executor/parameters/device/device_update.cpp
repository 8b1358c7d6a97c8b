#include "executor/parameters/device/device_update.h"

#include <cmath>

namespace plumb { inline namespace executor {
namespace {

StepNumbers corrections(const AdamW& adamw, std::int64_t step) {
  const auto correction = [step](float beta) {
    return static_cast<float>(1 - std::pow(double{beta}, static_cast<double>(step)));
  };
  return {.first_correction = correction(adamw.beta1), .second_correction = correction(adamw.beta2)};
}

struct Enqueue {
  DeviceKernels& kernels;
  const UpdatePart& part;
  const PartMemory& memory;

  float* floats(std::size_t field) const { return reinterpret_cast<float*>(memory.fields[field]); }

  /// Returns the update, with as many moments of optimizers that go by element.
  DeviceUpdate update(int moments) const {
    return {.weights = memory.weights,
            .master = memory.master,
            .gradients = memory.gradients,
            .first_moment = moments > 0 ? floats(0) : nullptr,
            .second_moment = moments > 1 ? floats(1) : nullptr,
            .elements = part.count,
            .numbers = memory.numbers};
  }
  template <class Settings>
  Settings decaying(Settings settings) const {
    if (!part.decays) settings.weight_decay = 0;
    return settings;
  }

  void operator()(const AdamW& adamw) const { kernels.adamw_update(update(2), decaying(adamw)); }
  void operator()(const AdamW8Bit& optimizer) const {
    const auto moment = [&](std::size_t field) {
      return QuantisedMoment{reinterpret_cast<std::uint8_t*>(memory.fields[field]), floats(field + 1)};
    };
    kernels.adamw_8bit_update(update(0),
                              {.first = moment(0),
                               .second = moment(2),
                               .signed_map = memory.constants,
                               .unsigned_map = memory.constants + signed_dynamic_map().size()},
                              decaying(optimizer.adamw));
  }
  void operator()(const Sgd& sgd) const { kernels.sgd_update(update(1), decaying(sgd)); }
  void operator()(const Lion& lion) const { kernels.lion_update(update(1), decaying(lion)); }
  void operator()(const Adafactor& adafactor) const {
    const bool is_vector = part.matrices.rows == 0;
    kernels.adafactor_update(update(0),
                             {.size = part.matrices,
                              .row_sums = floats(0),
                              .column_sums = is_vector ? nullptr : floats(1),
                              .squares = memory.squares},
                             decaying(adafactor));
  }
};

}  // namespace

StepNumbers update_numbers(const OptimizerSettings& optimizer, std::int64_t step) {
  if (const auto* adamw = std::get_if<AdamW>(&optimizer)) return corrections(*adamw, step);
  if (const auto* adamw = std::get_if<AdamW8Bit>(&optimizer)) return corrections(adamw->adamw, step);
  StepNumbers numbers;
  if (const auto* adafactor = std::get_if<Adafactor>(&optimizer))
    numbers.fresh_share =
        static_cast<float>(std::pow(static_cast<double>(step), -static_cast<double>(adafactor->decay_exponent)));
  return numbers;
}

std::vector<float> update_constants(const OptimizerSettings& optimizer) {
  if (!std::holds_alternative<AdamW8Bit>(optimizer)) return {};
  std::vector<float> maps(signed_dynamic_map().begin(), signed_dynamic_map().end());
  maps.insert(maps.end(), unsigned_dynamic_map().begin(), unsigned_dynamic_map().end());
  return maps;
}

void enqueue_update(DeviceKernels& kernels, const OptimizerSettings& optimizer, const UpdatePart& part,
                    const PartMemory& memory) {
  const Enqueue enqueue{.kernels = kernels, .part = part, .memory = memory};
  if (part.balance_rate > 0) return kernels.balance_update(enqueue.update(0), static_cast<float>(part.balance_rate));
  std::visit(enqueue, optimizer);
}

}}  // namespace plumb::executor
