#pragma once
// The router of a mixture of experts: scores of all experts for each token, the picks of each token, and their places
// among the experts' rows. Tensor ranks route all tokens alike, and the first alone adds the router's gradient.

#include "kernels/layer/emit/program_builder.h"

namespace plumb { inline namespace kernels {

class ExpertRouter {
 public:
  ExpertRouter(ProgramBuilder& builder, const TransformerLayer& layer);  ///< declares its parameters

  /// Computes the picks of each token, their places, and the rows of each expert. rows: the tokens [T, h]
  void forward(ProgramBuilder& builder, int rows);

  int probabilities() const { return probabilities_; }       ///< [T, E]
  const Positions& routes() const { return routes_; }        ///< what dispatch and combination read
  const Positions& by_expert() const { return by_expert_; }  ///< rows of each expert

  /// Adds its part to the gradient `dinput` [T, h]. weight_gradients: [R] by pick
  void input_grad(ProgramBuilder& builder, int dinput, int weight_gradients);
  void weight_grad(ProgramBuilder& builder, int rows) const;

 private:
  KernelCall product_call(const ProgramBuilder& builder, GemmForm form) const;
  void gather_whole_sequences(ProgramBuilder& builder, std::int64_t lists) const;

  const TransformerLayer& layer_;
  std::int64_t picks_;  // R
  Product product_;
  int selection_bias_ = -1;  // parameter
  int probabilities_ = -1, score_gradient_ = -1;
  Positions routes_, by_expert_;
};

}}  // namespace plumb::kernels
