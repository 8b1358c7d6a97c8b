#pragma once
// The parts of a decoder block between its norms and its residual sums: attention, latent attention and state mixers,
// which mix tokens, and an MLP or a mixture of experts. Each has a file, which emits the part's steps of all passes.

#include <memory>

#include "kernels/layer/emit/program_builder.h"

namespace plumb { inline namespace kernels {

class BlockPart {
 public:
  virtual ~BlockPart() = default;

  /// Emits the forward and returns its result [R, h], summed over the tensor group. input: norm's output [R, h]
  virtual int forward(ProgramBuilder& builder, int input) = 0;

  /// Adds the output's bias, if there is one, to the result.
  virtual void add_output_bias(ProgramBuilder&, int) const {}

  /// Emits the input gradient and returns it [R, h], summed. output_gradient: [R, h]
  virtual int input_grad(ProgramBuilder& builder, int output_gradient) = 0;

  /// Emits the weight gradients. input: [R, h] what forward() got
  virtual void weight_grad(ProgramBuilder& builder, int output_gradient, int input) const = 0;
};

// These declare the part's parameters.
std::unique_ptr<BlockPart> attention_part(ProgramBuilder& builder, const TransformerLayer& layer);
std::unique_ptr<BlockPart> latent_attention_part(ProgramBuilder& builder, const TransformerLayer& layer);
std::unique_ptr<BlockPart> chunked_states_part(ProgramBuilder& builder, const TransformerLayer& layer);
std::unique_ptr<BlockPart> selective_scan_part(ProgramBuilder& builder, const TransformerLayer& layer);
std::unique_ptr<BlockPart> mlp_part(ProgramBuilder& builder, const TransformerLayer& layer);
std::unique_ptr<BlockPart> experts_part(ProgramBuilder& builder, const TransformerLayer& layer);

/// Returns the name of an MLP's first product.
inline const char* up_name(const TransformerLayer& layer) {
  return layer.mlp == MlpKind::kSwiglu ? "gate_up" : "up";
}

/// Returns the pieces of an MLP's first product: gate and up, or up alone.
inline std::vector<DividedPiece> channels(const TransformerLayer& layer, std::string_view unit, std::int64_t ffn) {
  return std::vector<DividedPiece>(static_cast<std::size_t>(up_products(layer)), {unit, ffn});
}

inline std::int64_t is_gated(const TransformerLayer& layer) {
  return layer.mlp == MlpKind::kSwiglu ? 1 : 0;
}

/// Adds the rows [T, h] of a part to those of the sum, in place.
inline LayerStep& add_rows(ProgramBuilder& builder, const char* name, std::int64_t hidden, int sum, int part) {
  return builder.kernel(name, kernel_call(KernelKind::kResidualAdd, {builder.tokens(), hidden}), {sum, part}, {sum});
}

inline Positions with(Positions first, const Positions& others) {
  first.append(others);
  return first;
}

}}  // namespace plumb::kernels
