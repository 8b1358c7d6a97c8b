#pragma once
// Makes the kernels of an optimizer's step from the bodies of kernels/simt (device/kernels/simt_kernels.h defines a
// Launcher).

#include <cstdint>
#include <utility>

#include "executor/kernels/simt_context_kernels.h"
#include "kernels/simt/optimizers/adafactor.h"
#include "kernels/simt/optimizers/adamw.h"
#include "kernels/simt/optimizers/adamw_8bit.h"
#include "kernels/simt/optimizers/balance.h"
#include "kernels/simt/optimizers/lion.h"
#include "kernels/simt/optimizers/sgd.h"

namespace plumb { inline namespace executor {

template <class S, class Launcher>
class SimtUpdateKernels : public SimtContextKernels<S, Launcher> {
  using Others = SimtContextKernels<S, Launcher>;

 protected:
  using Others::launcher_;
  using Others::stored;

 public:
  explicit SimtUpdateKernels(Launcher launcher) : Others(std::move(launcher)) {}

  void sum_of_squares(float* partials, const float* x, std::int64_t elements, float limit) override {
    launcher_.launch(simt::SumOfSquares<float>{partials, x, elements, kGradientPieces, limit}, kGradientPieces, kLanes);
  }
  void decide_step(StepNumbers* numbers, const float* partials, std::int64_t count, float clip_norm) override {
    launcher_.launch(simt::StepDecision{numbers, partials, count, clip_norm}, 1, kLanes);
  }

  void adamw_update(const DeviceUpdate& update, const AdamW& optimizer) override {
    launcher_.launch_elements(simt::AdamWUpdate<S, float>{.weights = stored(update.weights),
                                                          .master = update.master,
                                                          .gradients = update.gradients,
                                                          .first_moment = update.first_moment,
                                                          .second_moment = update.second_moment,
                                                          .elements = update.elements,
                                                          .optimizer = optimizer,
                                                          .numbers = update.numbers},
                              update.elements);
  }
  void adamw_8bit_update(const DeviceUpdate& update, const DeviceByteMoments& moments,
                         const AdamW& optimizer) override {
    launcher_.launch(simt::AdamW8BitUpdate<S, float>{.weights = stored(update.weights),
                                                     .master = update.master,
                                                     .gradients = update.gradients,
                                                     .first = moments.first,
                                                     .second = moments.second,
                                                     .signed_map = moments.signed_map,
                                                     .unsigned_map = moments.unsigned_map,
                                                     .elements = update.elements,
                                                     .optimizer = optimizer,
                                                     .numbers = update.numbers},
                     quantisation_blocks(update.elements), kLanes);
  }
  void balance_update(const DeviceUpdate& update, float rate) override {
    launcher_.launch_elements(simt::BalanceUpdate<S>{.weights = stored(update.weights),
                                                     .master = update.master,
                                                     .gradients = update.gradients,
                                                     .elements = update.elements,
                                                     .rate = rate,
                                                     .numbers = update.numbers},
                              update.elements);
  }
  void sgd_update(const DeviceUpdate& update, const Sgd& optimizer) override {
    launch_momentum_update<simt::SgdUpdate<S, float>>(update, optimizer);
  }
  void lion_update(const DeviceUpdate& update, const Lion& optimizer) override {
    launch_momentum_update<simt::LionUpdate<S, float>>(update, optimizer);
  }

  void adafactor_update(const DeviceUpdate& update, const DeviceFactors& factors, const Adafactor& optimizer) override {
    const MatrixStackSize& size = factors.size;
    const bool is_vector = factors.column_sums == nullptr;
    const std::int64_t matrices = is_vector ? 1 : size.matrices;
    if (is_vector) {
      launcher_.launch(simt::AdafactorVectorDirection{.gradients = update.gradients,
                                                      .squares = factors.squares,
                                                      .master = update.master,
                                                      .second_moment = factors.row_sums,
                                                      .elements = update.elements,
                                                      .pieces = kFactorPieces,
                                                      .epsilon = optimizer.gradient_epsilon,
                                                      .numbers = update.numbers},
                       kFactorPieces, kLanes);
    } else {
      launcher_.launch(simt::AdafactorRows{.row_sums = factors.row_sums,
                                           .gradients = update.gradients,
                                           .size = size,
                                           .epsilon = optimizer.gradient_epsilon,
                                           .numbers = update.numbers},
                       size.matrices * size.rows, kLanes);
      launcher_.launch(simt::AdafactorColumns{.column_sums = factors.column_sums,
                                              .gradients = update.gradients,
                                              .size = size,
                                              .epsilon = optimizer.gradient_epsilon,
                                              .numbers = update.numbers},
                       (size.matrices * size.columns + kSumColumns - 1) / kSumColumns, kLanes);
      launcher_.launch(simt::AdafactorMatrixDirection{.gradients = update.gradients,
                                                      .squares = factors.squares,
                                                      .master = update.master,
                                                      .row_sums = factors.row_sums,
                                                      .column_sums = factors.column_sums,
                                                      .size = size,
                                                      .pieces = kFactorPieces,
                                                      .numbers = update.numbers},
                       matrices * kFactorPieces, kLanes);
    }
    launcher_.launch(simt::AdafactorStep<S>{.weights = stored(update.weights),
                                            .master = update.master,
                                            .gradients = update.gradients,
                                            .squares = factors.squares,
                                            .matrices = matrices,
                                            .elements = update.elements / matrices,
                                            .pieces = kFactorPieces,
                                            .optimizer = optimizer,
                                            .numbers = update.numbers},
                     matrices * kFactorPieces, kLanes);
  }

 private:
  static constexpr int kLanes = 256;

  template <class Body, class Optimizer>
  void launch_momentum_update(const DeviceUpdate& update, const Optimizer& optimizer) {
    launcher_.launch_elements(Body{.weights = stored(update.weights),
                                   .master = update.master,
                                   .gradients = update.gradients,
                                   .momentum = update.first_moment,
                                   .elements = update.elements,
                                   .optimizer = optimizer,
                                   .numbers = update.numbers},
                              update.elements);
  }
};

}}  // namespace plumb::executor
