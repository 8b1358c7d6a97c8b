#include "kernels/layer/emit/shared_expert.h"

#include "kernels/layer/emit/block_part.h"

namespace plumb { inline namespace kernels {
namespace {

constexpr std::string_view kUnit = "channels of the shared expert";

}  // namespace

SharedExpert::SharedExpert(ProgramBuilder& builder, const TransformerLayer& layer)
    : layer_(layer),
      ffn_(builder.share_of(layer).shared_ffn),
      up_(builder.product(std::string("shared.") + up_name(layer), up_products(layer) * ffn_, layer.hidden, 0, false,
                          channels(layer, kUnit, ffn_))),
      down_(builder.product("shared.down", layer.hidden, ffn_, 1, false, {{kUnit, ffn_}})) {}

void SharedExpert::multiply_up(ProgramBuilder& builder, int rows) {
  before_ = builder.tensor("shared up", builder.tokens(), up_.out);
  builder.multiply(up_, rows, before_);
}

void SharedExpert::activate(ProgramBuilder& builder) {
  const std::int64_t tokens = builder.tokens();
  activation_ = builder.tensor("shared activation", tokens, ffn_);
  builder
      .kernel("shared activation", kernel_call(KernelKind::kActivationForward, {tokens, ffn_, is_gated(layer_)}),
              {before_}, {activation_})
      .cheap = true;
}

void SharedExpert::add_output(ProgramBuilder& builder, int branch) const {
  const int shared = builder.tensor("shared output", builder.tokens(), layer_.hidden);
  builder.multiply(down_, activation_, shared);
  add_rows(builder, "shared output", layer_.hidden, branch, shared);
}

void SharedExpert::input_grad(ProgramBuilder& builder, int dinput, int rows) {
  const std::int64_t tokens = builder.tokens();
  const int gradient = builder.tensor("shared activation gradient", tokens, ffn_);
  builder.input_gradient(down_, rows, gradient);
  before_gradient_ = builder.in_place_of("shared up gradient", before_);
  builder.kernel("shared activation", kernel_call(KernelKind::kActivationBackward, {tokens, ffn_, is_gated(layer_)}),
                 {before_, gradient}, {before_gradient_});
  const int part = builder.temporary(Room::kTokens, "gradient through the shared expert", tokens, layer_.hidden);
  builder.input_gradient(up_, before_gradient_, part);
  add_rows(builder, "gradient through the shared expert", layer_.hidden, dinput, part);
}

void SharedExpert::weight_grad(ProgramBuilder& builder, int output_rows, int rows) const {
  builder.weight_gradient(down_, output_rows, activation_);
  builder.weight_gradient(up_, before_gradient_, rows);
}

}}  // namespace plumb::kernels
