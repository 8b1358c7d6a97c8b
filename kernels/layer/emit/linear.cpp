// Emits linear layers and the MLP without a norm. They are whole on every rank.

#include "kernels/layer/emit/program_builder.h"

namespace plumb { inline namespace kernels {
namespace {

Product own_product(ProgramBuilder& builder, const LinearLayer& layer) {
  Product product{.name = "product", .out = layer.out, .in = layer.in};
  product.weight = builder.parameter("weight", {layer.out, layer.in});
  if (layer.bias) product.bias = builder.parameter("bias", {layer.out});
  return product;
}

}  // namespace

/// GELU keeps its input, whose gradient takes its place. Otherwise the output's gradient is changed in place.
void emit(ProgramBuilder& builder, const LinearLayer& layer) {
  const Product product = own_product(builder, layer);
  if (builder.parameters_only()) return;
  const std::int64_t rows = builder.tokens();
  const bool gelu = layer.activation == Activation::kGelu, relu = layer.activation == Activation::kRelu;
  constexpr std::int64_t kBitsInWord = 32;

  builder.begin(Pass::kForward);
  const int input = builder.input(rows, layer.in);
  const int before = builder.tensor(gelu ? "before activation" : "output", rows, layer.out);
  builder.multiply(product, input, before);
  builder.add_bias(product, before);
  int output = before, passed = -1;
  if (relu) {
    passed = builder.tensor("relu mask", 1, (rows * layer.out + kBitsInWord - 1) / kBitsInWord, StoredType::kInteger);
    builder.kernel("relu", kernel_call(KernelKind::kReluForward, {rows, layer.out}), {before}, {before, passed});
  }
  if (gelu) {
    output = builder.tensor("output", rows, layer.out);
    builder.kernel("activation", kernel_call(KernelKind::kActivationForward, {rows, layer.out, 0}), {before}, {output});
  }
  if (layer.dropout > 0) builder.dropout("dropout", output, output);
  builder.program().output = output;

  builder.begin(Pass::kInputGrad);
  int gradient = builder.output_gradient(rows, layer.out);
  if (layer.dropout > 0) builder.dropout("dropout", gradient, gradient);
  if (relu)
    builder.kernel("relu", kernel_call(KernelKind::kReluBackward, {rows, layer.out}), {gradient, passed}, {gradient});
  if (gelu) {
    const int before_gradient = builder.in_place_of("gradient before activation", before);
    builder.kernel("activation", kernel_call(KernelKind::kActivationBackward, {rows, layer.out, 0}), {before, gradient},
                   {before_gradient});
    gradient = before_gradient;
  }
  if (layer.input_grad) {
    const int dx = builder.tensor("input gradient", rows, layer.in);
    builder.input_gradient(product, gradient, dx);
    builder.program().input_gradient = dx;
  }

  builder.begin(Pass::kWeightGrad);
  builder.weight_gradient(product, gradient, input);
  builder.bias_gradient(product, gradient, false);
}

void emit(ProgramBuilder& builder, const MlpLayer& layer) {
  const Product up = builder.product("up", layer.ffn, layer.hidden, -1, true);
  const Product down = builder.product("down", layer.hidden, layer.ffn, -1, true);
  if (builder.parameters_only()) return;
  const std::int64_t rows = builder.tokens(), h = layer.hidden, f = layer.ffn;
  const std::vector<std::int64_t> stream = {rows, h};

  builder.begin(Pass::kForward);
  const int input = builder.input(rows, h);
  const int before = builder.tensor("up", rows, f);
  builder.multiply(up, input, before);
  builder.add_bias(up, before);
  const int activation = builder.tensor("activation", rows, f);
  builder.kernel("activation", kernel_call(KernelKind::kActivationForward, {rows, f, 0}), {before}, {activation});
  const int branch = builder.tensor("branch", rows, h);
  builder.multiply(down, activation, branch);
  builder.add_bias(down, branch);
  const int output = builder.in_place_of("output", branch);
  builder.kernel("output", kernel_call(KernelKind::kResidualAdd, stream), {input, branch}, {output});
  builder.program().output = output;

  builder.begin(Pass::kInputGrad);
  const int gradient = builder.output_gradient(rows, h);
  const int activation_gradient = builder.tensor("activation gradient", rows, f);
  builder.input_gradient(down, gradient, activation_gradient);
  const int before_gradient = builder.in_place_of("up gradient", before);
  builder.kernel("activation", kernel_call(KernelKind::kActivationBackward, {rows, f, 0}),
                 {before, activation_gradient}, {before_gradient});
  const int dx = builder.tensor("input gradient", rows, h);
  builder.input_gradient(up, before_gradient, dx);
  builder.kernel("input gradient", kernel_call(KernelKind::kResidualAdd, stream), {dx, gradient}, {dx});
  builder.program().input_gradient = dx;

  builder.begin(Pass::kWeightGrad);
  builder.weight_gradient(down, gradient, activation);
  builder.bias_gradient(down, gradient, false);
  builder.weight_gradient(up, before_gradient, input);
  builder.bias_gradient(up, before_gradient, false);
}

}}  // namespace plumb::kernels
