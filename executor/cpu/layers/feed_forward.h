#pragma once
// The feed-forward part of a transformer block, between its second norm and its residual: the MLP, or a mixture of
// experts. Symbols as in executor/cpu/layers/transformer.cpp; R own rows of the residual stream, T rows of all tokens.

#include <memory>
#include <vector>

#include "executor/cpu/layers/layer.h"

namespace plumb { inline namespace executor {

/// The tensors that it keeps of a micro-batch (slice).
struct FeedForwardSaved {
  Tensor up;          // [T, u], or u channels of each pick; after the input gradient its own gradient
  Tensor activation;  // [T, f], or f channels of each pick

  virtual ~FeedForwardSaved() = default;
  virtual std::vector<Tensor*> tensors() { return {&up, &activation}; }
  virtual std::vector<Tensor*> cheap() { return {&activation}; }
  virtual std::vector<Tensor*> narrowable() { return {&up, &activation}; }  ///< LayerSaved::narrowable
};

class FeedForward {
 public:
  virtual ~FeedForward() = default;

  virtual std::unique_ptr<FeedForwardSaved> make_saved() const = 0;

  /// input: [R, h]. Returns [T, h]; the sum over the tensor group is the output.
  virtual Tensor forward(const LayerCall& call, const Tensor& input, FeedForwardSaved& saved) const = 0;

  /// output_gradient: [R, h]. Returns [T, h]; the sum over the tensor group is the input's gradient. Adds the
  /// load-balancing loss, where there is one, to `balance_loss`, summed over the tokens on this rank.
  virtual Tensor input_grad(const LayerCall& call, const Tensor& output_gradient, FeedForwardSaved& saved,
                            double& balance_loss) const = 0;

  /// output_gradient, input: [R, h]
  virtual void weight_grad(const LayerCall& call, const Tensor& output_gradient, const Tensor& input,
                           FeedForwardSaved& saved) const = 0;

  /// Computes the activations again.
  virtual void activate(const LayerCall& call, FeedForwardSaved& saved) const = 0;
};

/// `layer` is a tensor rank's share.
std::unique_ptr<FeedForward> make_mlp(const TransformerLayer& layer);
std::unique_ptr<FeedForward> make_experts(const TransformerLayer& layer, const LayerSeat& seat);

}}  // namespace plumb::executor
