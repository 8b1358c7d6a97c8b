#pragma once
// The expert that every token passes besides those that it picks (Dai et al. 2024): an MLP over all tokens of the rank,
// whose tensor ranks have f/t channels each. Its steps stand among those of the routed experts.

#include "kernels/layer/emit/program_builder.h"

namespace plumb { inline namespace kernels {

class SharedExpert {
 public:
  SharedExpert(ProgramBuilder& builder, const TransformerLayer& layer);  ///< declares its parameters

  // The forward. rows: the tokens [T, h]; branch: the sum [T, h] of the routed experts
  void multiply_up(ProgramBuilder& builder, int rows);
  void activate(ProgramBuilder& builder);
  void add_output(ProgramBuilder& builder, int branch) const;

  /// Adds its part to the gradient `dinput` [T, h]. rows: the output's gradient [T, h]
  void input_grad(ProgramBuilder& builder, int dinput, int rows);
  void weight_grad(ProgramBuilder& builder, int output_rows, int rows) const;

 private:
  const TransformerLayer& layer_;
  std::int64_t ffn_;
  Product up_, down_;
  int before_ = -1, activation_ = -1, before_gradient_ = -1;
};

}}  // namespace plumb::kernels
