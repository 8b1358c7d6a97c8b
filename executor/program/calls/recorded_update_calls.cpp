// Kernels of optimizers' updates and of the numbers that decide about them, recorded.

#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

void CallRecorder::sum_of_squares(float* partials, const float* x, std::int64_t elements, float limit) {
  add([=](DeviceKernels& kernels) { kernels.sum_of_squares(partials, x, elements, limit); });
}

void CallRecorder::decide_step(StepNumbers* numbers, const float* partials, std::int64_t count, float clip_norm) {
  add([=](DeviceKernels& kernels) { kernels.decide_step(numbers, partials, count, clip_norm); });
}

void CallRecorder::adamw_update(const DeviceUpdate& update, const AdamW& optimizer) {
  add([=](DeviceKernels& kernels) { kernels.adamw_update(update, optimizer); });
}

void CallRecorder::adamw_8bit_update(const DeviceUpdate& update, const DeviceByteMoments& moments,
                                     const AdamW& optimizer) {
  add([=](DeviceKernels& kernels) { kernels.adamw_8bit_update(update, moments, optimizer); });
}

void CallRecorder::sgd_update(const DeviceUpdate& update, const Sgd& optimizer) {
  add([=](DeviceKernels& kernels) { kernels.sgd_update(update, optimizer); });
}

void CallRecorder::lion_update(const DeviceUpdate& update, const Lion& optimizer) {
  add([=](DeviceKernels& kernels) { kernels.lion_update(update, optimizer); });
}

void CallRecorder::adafactor_update(const DeviceUpdate& update, const DeviceFactors& factors,
                                    const Adafactor& optimizer) {
  add([=](DeviceKernels& kernels) { kernels.adafactor_update(update, factors, optimizer); });
}

void CallRecorder::balance_update(const DeviceUpdate& update, float rate) {
  add([=](DeviceKernels& kernels) { kernels.balance_update(update, rate); });
}

}}  // namespace plumb::executor
