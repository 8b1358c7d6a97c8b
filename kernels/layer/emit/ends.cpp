// Emits the layers that begin and end a model: token embedding and head, samples of real numbers and losses.

#include "kernels/layer/emit/program_builder.h"

namespace plumb { inline namespace kernels {

/// A tensor rank has V/t rows of the table, and the ranks' rows are summed. A host sums in place. A device that has
/// some tokens of each sequence brings their positions together, and their gradients back.
void emit(ProgramBuilder& builder, const EmbeddingLayer& layer) {
  const std::int64_t tokens = builder.tokens(), h = layer.hidden;
  const bool has_positions = layer.positions > 0;
  Positions tables = {
      builder.parameter("tokens.weight", {rank_share(layer, builder.work().tensor_parallel).vocab, h}, 0)};
  if (has_positions) tables.push_back(builder.parameter("positions.weight", {layer.positions, h}));
  if (builder.parameters_only()) return;
  const std::vector<std::int64_t> shape = {tokens, h, has_positions ? 1 : 0};

  builder.begin(Pass::kForward);
  const int ids =
      builder.tensor("tokens", tokens, 1, StoredType::kInteger, builder.on_device() ? Origin::kHeld : Origin::kLoaded);
  const int rows = builder.tensor("rows of the table", tokens, h);
  const LayerWork& work = builder.work();
  const bool has_own_positions = has_positions && builder.on_device() && (work.context_parallel > 1 || work.is_slice());
  const std::int64_t own_tokens = tokens / work.microbatch;
  Positions writes = {rows};
  if (has_own_positions) writes.push_back(builder.tensor("positions of own tokens", own_tokens, h));
  builder.kernel("embedding", kernel_call(KernelKind::kEmbeddingForward, shape), {ids}, writes).parameters = tables;
  const int output = builder.summed(rows, true);
  if (layer.dropout > 0) builder.dropout("dropout", output, output);
  builder.program().output = output;

  builder.begin(Pass::kInputGrad);
  const int gradient = builder.output_gradient(builder.own_rows(), h);
  builder.begin(Pass::kWeightGrad);
  if (layer.dropout > 0) builder.dropout("dropout", gradient, gradient);
  const int all = builder.gathered(gradient);
  Positions of_positions;
  if (has_own_positions)
    of_positions.push_back(builder.tensor("gradients of own positions", own_tokens, h, StoredType::kSingle));
  builder.kernel("embedding", kernel_call(KernelKind::kEmbeddingBackward, shape), {all, ids}, of_positions).gradients =
      tables;
}

/// Tensor ranks have V/t rows of the projection. They exchange the maximum, the sum and the target's logit of their part
/// of each softmax. The logits hold their own gradient from the forward on.
void emit(ProgramBuilder& builder, const HeadLayer& layer) {
  const std::int64_t tokens = builder.tokens(), own = builder.own_rows(), h = layer.hidden;
  const int ranks = builder.work().tensor_parallel;
  Norm norm = builder.norm("norm", layer.norm, h);
  const Product projection = builder.product("projection", rank_share(layer, ranks).vocab, h, 0, false);
  if (builder.parameters_only()) return;

  builder.begin(Pass::kForward);
  const int input = builder.input(own, h);
  const int normed = builder.tensor("norm output", own, h);
  builder.norm_forward(norm, input, normed);
  const int logits = builder.tensor("logits", tokens, projection.out);
  builder.multiply(projection, builder.gathered(normed), logits);
  const int targets =
      builder.tensor("targets", tokens, 1, StoredType::kInteger, builder.on_device() ? Origin::kHeld : Origin::kLoaded);
  Positions reads = {logits, targets};
  if (ranks > 1) {
    constexpr std::int64_t kParts = 3;
    const int parts = builder.tensor("parts of each softmax", kParts * ranks, tokens, StoredType::kSingle);
    builder.exchange("parts of each softmax",
                     {.kind = ExchangeKind::kAllGather,
                      .group = ExchangeGroup::kTensor,
                      .elements = kParts * ranks * tokens,
                      .type = StoredType::kSingle},
                     {logits, targets}, {parts});
    reads.push_back(parts);
  }
  const int logits_gradient = builder.in_place_of("gradient of logits", logits);
  builder.kernel("cross-entropy", kernel_call(KernelKind::kCrossEntropy, {tokens, projection.out}), reads,
                 {logits_gradient});

  builder.begin(Pass::kInputGrad);
  const int dnorm = builder.tensor("norm output gradient", tokens, h);
  builder.input_gradient(projection, logits_gradient, dnorm);
  const int summed = builder.summed(dnorm);
  const int dx =
      builder.on_device() ? builder.tensor("input gradient", own, h) : builder.in_place_of("input gradient", input);
  builder.norm_backward(norm, summed, -1, input, dx);
  builder.program().input_gradient = dx;

  builder.begin(Pass::kWeightGrad);
  builder.weight_gradient(projection, logits_gradient, builder.gathered(normed));
}

void emit(ProgramBuilder& builder, const InputLayer& layer) {
  if (builder.parameters_only()) return;
  const std::int64_t samples = builder.tokens(), columns = ends_of(layer).handed;
  builder.begin(Pass::kForward);
  if (!builder.on_device()) {
    builder.program().output = builder.tensor("samples", samples, columns, StoredType::kElement, Origin::kLoaded);
    return;
  }
  const int held = builder.tensor("samples", samples, columns, StoredType::kElement, Origin::kHeld);
  const int output = builder.tensor("output", samples, columns);
  builder.kernel("samples", kernel_call(KernelKind::kCopy, {samples * columns}), {held}, {output});
  builder.program().output = output;
}

/// The gradient takes the place of the predictions. A device copies it to the layer before.
void emit(ProgramBuilder& builder, const LossLayer& layer) {
  if (builder.parameters_only()) return;
  const std::int64_t samples = builder.tokens(), width = layer.width;
  const bool classes = layer.loss == LossKind::kCrossEntropy;
  builder.begin(Pass::kForward);
  const int predictions = builder.input(samples, width);
  const int targets =
      builder.tensor("targets", samples, classes ? 1 : width, classes ? StoredType::kInteger : StoredType::kSingle,
                     builder.on_device() ? Origin::kHeld : Origin::kLoaded);
  const int gradient = builder.in_place_of("gradient of predictions", predictions);
  builder.kernel("loss", kernel_call(classes ? KernelKind::kCrossEntropy : KernelKind::kSquaredError, {samples, width}),
                 {predictions, targets}, {gradient});
  builder.begin(Pass::kInputGrad);
  builder.program().input_gradient = gradient;
  if (!builder.on_device()) return;
  const int handed = builder.tensor("input gradient", samples, width);
  builder.kernel("input gradient", kernel_call(KernelKind::kCopy, {samples * width}), {gradient}, {handed});
  builder.program().input_gradient = handed;
}

}}  // namespace plumb::kernels
