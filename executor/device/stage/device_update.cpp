#include "executor/device/stage/device_update.h"

#include <cassert>
#include <cmath>

namespace plumb {

bool has_device_update(const OptimizerSettings& optimizer) {
  return std::holds_alternative<AdamW>(optimizer) || std::holds_alternative<Sgd>(optimizer) ||
         std::holds_alternative<Lion>(optimizer);
}

int moments_of(const OptimizerSettings& optimizer) {
  assert(has_device_update(optimizer));
  return std::holds_alternative<AdamW>(optimizer) ? 2 : 1;
}

StepNumbers update_numbers(const OptimizerSettings& optimizer, std::int64_t step) {
  assert(has_device_update(optimizer));
  const auto* adamw = std::get_if<AdamW>(&optimizer);
  if (adamw == nullptr) return {};
  const auto correction = [step](float beta) {
    return static_cast<float>(1 - std::pow(double{beta}, static_cast<double>(step)));
  };
  return {.first_correction = correction(adamw->beta1), .second_correction = correction(adamw->beta2)};
}

void enqueue_update(DeviceKernels& kernels, const OptimizerSettings& optimizer, bool decays,
                    const DeviceUpdate& update) {
  assert(has_device_update(optimizer));
  const auto decaying = [decays](auto settings) {
    if (!decays) settings.weight_decay = 0;
    return settings;
  };
  if (const auto* adamw = std::get_if<AdamW>(&optimizer)) return kernels.adamw_update(update, decaying(*adamw));
  if (const auto* sgd = std::get_if<Sgd>(&optimizer)) return kernels.sgd_update(update, decaying(*sgd));
  if (const auto* lion = std::get_if<Lion>(&optimizer)) return kernels.lion_update(update, decaying(*lion));
}

}  // namespace plumb
