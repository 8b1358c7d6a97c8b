// Device code of every body of kernels/simt for every way of storing numbers.

#include "kernels/cuda/launch.cuh"
#include "kernels/simt/activation.h"
#include "kernels/simt/bias.h"
#include "kernels/simt/copy_columns.h"
#include "kernels/simt/copy_rows.h"
#include "kernels/simt/dropout.h"
#include "kernels/simt/embedding.h"
#include "kernels/simt/experts/expert_bias.h"
#include "kernels/simt/experts/router.h"
#include "kernels/simt/images/patches.h"
#include "kernels/simt/images/pooling.h"
#include "kernels/simt/losses/cross_entropy.h"
#include "kernels/simt/losses/squared_error.h"
#include "kernels/simt/norm.h"
#include "kernels/simt/optimizers/adafactor.h"
#include "kernels/simt/optimizers/adamw.h"
#include "kernels/simt/optimizers/adamw_8bit.h"
#include "kernels/simt/optimizers/balance.h"
#include "kernels/simt/optimizers/lion.h"
#include "kernels/simt/optimizers/sgd.h"
#include "kernels/simt/relu.h"
#include "kernels/simt/rotary.h"
#include "kernels/simt/state_spaces/causal_convolution.h"
#include "kernels/simt/state_spaces/gated_norm.h"
#include "kernels/simt/state_spaces/state_space.h"

namespace plumb { inline namespace kernels { namespace cuda {

#define PLUMB_INSTANTIATE(...) template cudaError_t launch(const __VA_ARGS__&, int, int, cudaStream_t)
#define PLUMB_INSTANTIATE_STORED(S)                      \
  PLUMB_INSTANTIATE(simt::NormForward<S>);               \
  PLUMB_INSTANTIATE(simt::NormBackward<S>);              \
  PLUMB_INSTANTIATE(simt::NormParameterParts<S>);        \
  PLUMB_INSTANTIATE(simt::GeluForward<S>);               \
  PLUMB_INSTANTIATE(simt::GeluBackward<S>);              \
  PLUMB_INSTANTIATE(simt::SwigluForward<S>);             \
  PLUMB_INSTANTIATE(simt::SwigluBackward<S>);            \
  PLUMB_INSTANTIATE(simt::CrossEntropy<S>);              \
  PLUMB_INSTANTIATE(simt::EmbeddingForward<S>);          \
  PLUMB_INSTANTIATE(simt::EmbeddingBackward<S>);         \
  PLUMB_INSTANTIATE(simt::PositionBackward<S>);          \
  PLUMB_INSTANTIATE(simt::Rotary<S>);                    \
  PLUMB_INSTANTIATE(simt::Dropout<S>);                   \
  PLUMB_INSTANTIATE(simt::AdamWUpdate<S, float>);        \
  PLUMB_INSTANTIATE(simt::AdamW8BitUpdate<S, float>);    \
  PLUMB_INSTANTIATE(simt::SgdUpdate<S, float>);          \
  PLUMB_INSTANTIATE(simt::LionUpdate<S, float>);         \
  PLUMB_INSTANTIATE(simt::BalanceUpdate<S>);             \
  PLUMB_INSTANTIATE(simt::AdafactorStep<S>);             \
  PLUMB_INSTANTIATE(simt::BiasForward<S>);               \
  PLUMB_INSTANTIATE(simt::BiasParts<S>);                 \
  PLUMB_INSTANTIATE(simt::PoolingForward<S>);            \
  PLUMB_INSTANTIATE(simt::PoolingBackward<S>);           \
  PLUMB_INSTANTIATE(simt::ImageToPatches<S>);            \
  PLUMB_INSTANTIATE(simt::PatchesToImage<S>);            \
  PLUMB_INSTANTIATE(simt::ReluForward<S>);               \
  PLUMB_INSTANTIATE(simt::ReluBackward<S>);              \
  PLUMB_INSTANTIATE(simt::SquaredError<S>);              \
  PLUMB_INSTANTIATE(simt::CopyColumns<S>);               \
  PLUMB_INSTANTIATE(simt::PlaceRows<S>);                 \
  PLUMB_INSTANTIATE(simt::SumPlacedRows<S>);             \
  PLUMB_INSTANTIATE(simt::ExpertBiasForward<S>);         \
  PLUMB_INSTANTIATE(simt::ExpertBiasBackward<S>);        \
  PLUMB_INSTANTIATE(simt::SumOfSquares<S>);              \
  PLUMB_INSTANTIATE(simt::CausalConvolutionForward<S>);  \
  PLUMB_INSTANTIATE(simt::CausalConvolutionBackward<S>); \
  PLUMB_INSTANTIATE(simt::StateSpaceForward<S>);         \
  PLUMB_INSTANTIATE(simt::StateSpaceBackward<S>);        \
  PLUMB_INSTANTIATE(simt::StateSpaceGroupSums<S>);       \
  PLUMB_INSTANTIATE(simt::GatedNormForward<S>);          \
  PLUMB_INSTANTIATE(simt::GatedNormGain<S>);             \
  PLUMB_INSTANTIATE(simt::GatedNormBackward<S>)

PLUMB_INSTANTIATE_STORED(float);
PLUMB_INSTANTIATE_STORED(Bf16);
PLUMB_INSTANTIATE_STORED(Fp16);
PLUMB_INSTANTIATE(simt::ColumnSumOfParts);
PLUMB_INSTANTIATE(simt::TokenOrder);
PLUMB_INSTANTIATE(simt::StateSpaceParameterSums);
PLUMB_INSTANTIATE(simt::RouterForward);
PLUMB_INSTANTIATE(simt::RouterBackward);
PLUMB_INSTANTIATE(simt::AddExcessPicks);
PLUMB_INSTANTIATE(simt::StepDecision);
PLUMB_INSTANTIATE(simt::AdafactorRows);
PLUMB_INSTANTIATE(simt::AdafactorColumns);
PLUMB_INSTANTIATE(simt::AdafactorMatrixDirection);
PLUMB_INSTANTIATE(simt::AdafactorVectorDirection);

}}}  // namespace plumb::kernels::cuda
