#pragma once
// Makes the kernels of Mamba-2's blocks from the bodies of kernels/simt (executor/kernels/simt_kernels.h defines a
// Launcher).

#include <cstdint>
#include <utility>

#include "executor/kernels/simt_image_kernels.h"
#include "kernels/simt/state_spaces/causal_convolution.h"
#include "kernels/simt/state_spaces/gated_norm.h"
#include "kernels/simt/state_spaces/state_space.h"

namespace plumb { inline namespace executor {

template <class S, class Launcher>
class SimtStateSpaceKernels : public SimtImageKernels<S, Launcher> {
  using Others = SimtImageKernels<S, Launcher>;

 protected:
  using Others::launcher_;
  using Others::stored;

 public:
  explicit SimtStateSpaceKernels(Launcher launcher) : Others(std::move(launcher)) {}

  void causal_convolution_forward(void* y, const void* x, const void* weight, const float* bias,
                                  const CausalConvolutionSize& size) override {
    launcher_.launch_elements(simt::CausalConvolutionForward<S>{stored(y), stored(x), stored(weight), bias, size},
                              size.batch * size.sequence * size.channels);
  }
  void causal_convolution_backward(void* x, float* dweight, float* dbias, const void* dy, const void* weight,
                                   const float* bias, const CausalConvolutionSize& size) override {
    launcher_.launch_elements(
        simt::CausalConvolutionBackward<S>{stored(x), dweight, dbias, stored(dy), stored(weight), bias, size},
        size.channels);
  }

  void state_space_forward(void* y, const void* xbc, const void* steps, float* scratch,
                           const StateSpaceParameters& parameters, const StateSpaceSize& size) override {
    launcher_.launch(simt::StateSpaceForward<S>{stored(y), stored(xbc), stored(steps), scratch, parameters, size},
                     size.batch * size.heads, kStateLanes);
  }
  void state_space_backward(void* xbc, void* steps, float* scratch, const StateSpaceGradients& gradients,
                            const void* dy, const StateSpaceParameters& parameters,
                            const StateSpaceSize& size) override {
    launcher_.launch(simt::StateSpaceBackward<S>{stored(xbc), stored(steps), scratch, stored(dy), parameters, size},
                     size.batch * size.heads, kStateLanes);
    launcher_.launch_elements(simt::StateSpaceGroupSums<S>{stored(xbc), scratch, size},
                              size.batch * size.sequence * 2 * size.groups * size.state_size);
    launcher_.launch_elements(simt::StateSpaceParameterSums{gradients, scratch, size}, 3 * size.heads);
  }

  void gated_norm_forward(void* out, float* rstd, const void* y, const void* z, const float* gain,
                          const GatedNormSize& size, float epsilon) override {
    launcher_.launch(simt::GatedNormForward<S>{stored(out), rstd, stored(y), stored(z), gain, size, epsilon},
                     size.rows * size.groups, kGroupLanes);
  }
  void gated_norm_backward(void* dy, void* z, float* dgain, const void* dout, const void* y, const float* rstd,
                           const float* gain, const GatedNormSize& size) override {
    launcher_.launch_elements(simt::GatedNormGain<S>{dgain, stored(dout), stored(y), stored(z), rstd, size},
                              size.columns);
    launcher_.launch(simt::GatedNormBackward<S>{stored(dy), stored(z), stored(dout), stored(y), rstd, gain, size},
                     size.rows * size.groups, kGroupLanes);
  }

 private:
  static constexpr int kStateLanes = 256;
  static constexpr int kGroupLanes = 128;
};

}}  // namespace plumb::executor
