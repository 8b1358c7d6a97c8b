#pragma once
// The GPU kernels of an optimizer's step as a stage calls them (executor/parameters/device/device_update.h), and of the
// decision about the step, beyond those of device_kernels.h.

#include <cstdint>

#include "kernels/cpu/optimizers/adamw_8bit.h"
#include "kernels/optimizer.h"
#include "kernels/simt/optimizers/adafactor.h"
#include "kernels/step_numbers.h"

namespace plumb { inline namespace executor {

/// The tensors of one optimizer's update; parameters, moments and gradients have [elements].
struct DeviceUpdate {
  void* weights = nullptr;  ///< stored; may be master itself in fp32
  float* master = nullptr;
  float* gradients = nullptr;
  float* first_moment = nullptr;   ///< SGD and Lion: the momentum (8-bit AdamW and Adafactor: below)
  float* second_moment = nullptr;  ///< AdamW's
  std::int64_t elements = 0;
  const StepNumbers* numbers = nullptr;
};

/// Moments of a byte an element, of a whole tensor or of whole blocks of it, and the maps [256] of their codes.
struct DeviceByteMoments {
  QuantisedMoment first, second;
  const float* signed_map = nullptr;
  const float* unsigned_map = nullptr;
};

/// Number of pieces of one tensor's update by Adafactor, and bytes of the sums of their squares.
inline constexpr std::int64_t kFactorPieces = 256;
constexpr std::int64_t factor_square_bytes(std::int64_t matrices) {
  return matrices * kFactorPieces * static_cast<std::int64_t>(sizeof(simt::AdafactorSquares));
}

/// Adafactor's state of one parameter.
struct DeviceFactors {
  MatrixStackSize size;                       ///< no rows: a vector
  float* row_sums = nullptr;                  ///< [matrices, rows]; for a vector the second moment [elements]
  float* column_sums = nullptr;               ///< [matrices, columns]; for a vector null
  simt::AdafactorSquares* squares = nullptr;  ///< scratch, factor_square_bytes()
};

/// Number of partial sums of a stage's gradients.
inline constexpr std::int64_t kGradientPieces = 256;

class DeviceUpdateKernels {
 public:
  virtual ~DeviceUpdateKernels() = default;

  /// Writes partial sums of squares [kGradientPieces]; one is not finite if an element of x is beyond `limit` or NaN.
  virtual void sum_of_squares(float* partials, const float* x, std::int64_t elements, float limit) = 0;
  /// Fills in the step's decision from the partial sums of all gradients [count]; clip_norm 0: not clipped.
  virtual void decide_step(StepNumbers* numbers, const float* partials, std::int64_t count, float clip_norm) = 0;

  // All updates zero the gradients.

  virtual void adamw_update(const DeviceUpdate& update, const AdamW& optimizer) = 0;
  virtual void adamw_8bit_update(const DeviceUpdate& update, const DeviceByteMoments& moments,
                                 const AdamW& optimizer) = 0;
  virtual void sgd_update(const DeviceUpdate& update, const Sgd& optimizer) = 0;
  virtual void lion_update(const DeviceUpdate& update, const Lion& optimizer) = 0;
  virtual void adafactor_update(const DeviceUpdate& update, const DeviceFactors& factors,
                                const Adafactor& optimizer) = 0;
  /// Moves a bias of picks, which has no state (kernels/simt/optimizers/balance.h).
  virtual void balance_update(const DeviceUpdate& update, float rate) = 0;
};

}}  // namespace plumb::executor
