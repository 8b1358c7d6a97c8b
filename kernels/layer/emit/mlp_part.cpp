// Emits the MLP of a decoder block: one product (or gate and up in one), the activation function, one product. A tensor
// rank has f/t channels of every row (Shoeybi et al. 2019).

#include "kernels/layer/emit/block_part.h"

namespace plumb { inline namespace kernels {
namespace {

class MlpPart : public BlockPart {
 public:
  MlpPart(ProgramBuilder& builder, const TransformerLayer& layer)
      : layer_(layer),
        ffn_(builder.share_of(layer).ffn),
        up_(builder.product(up_name(layer), up_products(layer) * ffn_, layer.hidden, 0, layer.linear_bias,
                            channels(layer, "ffn channels", ffn_))),
        down_(builder.product("down", layer.hidden, ffn_, 1, layer.linear_bias, {{"ffn channels", ffn_}})) {}

  int forward(ProgramBuilder& builder, int input) override {
    const std::int64_t tokens = builder.tokens();
    const int rows = builder.gathered(input);
    before_ = builder.tensor("up", tokens, up_.out);
    builder.multiply(up_, rows, before_);
    builder.add_bias(up_, before_);
    activation_ = builder.tensor("activation", tokens, ffn_);
    builder
        .kernel("activation", kernel_call(KernelKind::kActivationForward, {tokens, ffn_, is_gated(layer_)}), {before_},
                {activation_})
        .cheap = true;
    const int branch = builder.temporary(Room::kRows, "feed-forward branch", tokens, layer_.hidden);
    builder.multiply(down_, activation_, branch);
    return builder.summed(branch);
  }

  void add_output_bias(ProgramBuilder& builder, int result) const override { builder.add_bias(down_, result); }

  int input_grad(ProgramBuilder& builder, int output_gradient) override {
    const std::int64_t tokens = builder.tokens();
    const int rows = builder.gathered(output_gradient);
    const int gradient = builder.tensor("activation gradient", tokens, ffn_);
    builder.input_gradient(down_, rows, gradient);
    before_gradient_ = builder.in_place_of("up gradient", before_);
    builder.kernel("activation", kernel_call(KernelKind::kActivationBackward, {tokens, ffn_, is_gated(layer_)}),
                   {before_, gradient}, {before_gradient_});
    const int dinput = builder.temporary(Room::kRows, "norm2 output gradient", tokens, layer_.hidden);
    builder.input_gradient(up_, before_gradient_, dinput);
    return builder.summed(dinput);
  }

  void weight_grad(ProgramBuilder& builder, int output_gradient, int input) const override {
    builder.weight_gradient(down_, builder.gathered(output_gradient), activation_);
    builder.bias_gradient(down_, output_gradient, true);
    builder.weight_gradient(up_, before_gradient_, builder.gathered(input));
    builder.bias_gradient(up_, before_gradient_, false);
  }

 private:
  const TransformerLayer& layer_;
  std::int64_t ffn_;
  Product up_, down_;
  int before_ = -1, activation_ = -1, before_gradient_ = -1;
};

}  // namespace

std::unique_ptr<BlockPart> mlp_part(ProgramBuilder& builder, const TransformerLayer& layer) {
  return std::make_unique<MlpPart>(builder, layer);
}

}}  // namespace plumb::kernels
