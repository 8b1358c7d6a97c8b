#include "kernels/layer/emit/program_builder.h"

#include <algorithm>
#include <cassert>

namespace plumb { inline namespace kernels {

int ProgramBuilder::parameter(std::string name, std::vector<std::int64_t> shape, int split,
                              std::vector<DividedPiece> pieces) {
  ParameterTensor& added = program_.parameters.emplace_back();
  added.name = std::move(name);
  added.shape = std::move(shape);
  added.split_dimension = split;
  added.pieces = std::move(pieces);
  if (added.is_vector()) added.initial = InitialValues::kZeros;
  return static_cast<int>(program_.parameters.size()) - 1;
}

Product ProgramBuilder::product(const std::string& name, std::int64_t out, std::int64_t in, int split, bool has_bias,
                                std::vector<DividedPiece> pieces) {
  Product product{.name = name, .out = out, .in = in, .weight = parameter(name + ".weight", {out, in}, split, pieces)};
  if (!has_bias) return product;
  product.bias = split == 0 ? parameter(name + ".bias", {out}, 0, std::move(pieces)) : parameter(name + ".bias", {out});
  return product;
}

Norm ProgramBuilder::norm(const std::string& name, NormKind kind, std::int64_t columns) {
  Norm norm;
  norm.name = name;
  norm.kind = kind;
  norm.columns = columns;
  norm.gain = parameter(name + ".gain", {columns});
  parameter_at(norm.gain).initial = InitialValues::kOnes;
  if (kind == NormKind::kLayerNorm) norm.bias = parameter(name + ".bias", {columns});
  norm.sums_gradients = divides_rows();
  return norm;
}

int ProgramBuilder::tensor(std::string name, std::int64_t rows, std::int64_t columns, StoredType type, Origin origin) {
  program_.tensors.push_back(
      {.name = std::move(name), .rows = rows, .columns = columns, .type = type, .origin = origin});
  return static_cast<int>(program_.tensors.size()) - 1;
}

int ProgramBuilder::in_place_of(std::string name, int other) {
  LayerTensor tensor = at(other);
  tensor.name = std::move(name);
  tensor.origin = Origin::kStep;
  tensor.place = other;
  program_.tensors.push_back(std::move(tensor));
  return static_cast<int>(program_.tensors.size()) - 1;
}

int ProgramBuilder::temporary(Room room, std::string name, std::int64_t rows, std::int64_t columns, StoredType type) {
  const int added = tensor(std::move(name), rows, columns, type);
  if (!on_device() || own_memory_) return added;
  int& first = rooms_[static_cast<std::size_t>(room)];
  if (first < 0) {
    first = added;
  } else {
    program_.tensors.back().place = first;
  }
  return added;
}

int ProgramBuilder::input(std::int64_t rows, std::int64_t columns) {
  return program_.input = tensor("input", rows, columns, StoredType::kElement, Origin::kInput);
}

int ProgramBuilder::output_gradient(std::int64_t rows, std::int64_t columns) {
  return program_.output_gradient =
             tensor("output gradient", rows, columns, StoredType::kElement, Origin::kOutputGradient);
}

LayerStep& ProgramBuilder::step(std::string name, std::variant<KernelCall, Exchange> does, const Positions& reads,
                                const Positions& writes) {
  assert(program_.steps.empty() || program_.steps.back().pass <= pass_);
  LayerStep& added = program_.steps.emplace_back();
  added.name = std::move(name);
  added.pass = pass_;
  added.section = section_;
  added.does = std::move(does);
  added.reads = reads;
  added.writes = writes;
  return added;
}

LayerStep& ProgramBuilder::kernel(std::string name, KernelCall call, const Positions& reads, const Positions& writes) {
  return step(std::move(name), std::move(call), reads, writes);
}

LayerStep& ProgramBuilder::exchange(std::string name, Exchange exchange, const Positions& reads,
                                    const Positions& writes) {
  return step(std::move(name), exchange, reads, writes);
}

int ProgramBuilder::gathered(int own, Room room) {
  if (!divides_rows()) return own;
  const std::int64_t columns = at(own).columns;
  const int all = temporary(room, "all rows of " + at(own).name, tokens(), columns);
  exchange(at(own).name + " gathered",
           {.kind = ExchangeKind::kAllGather, .group = ExchangeGroup::kTensor, .elements = tokens() * columns}, {own},
           {all});
  return all;
}

int ProgramBuilder::summed(int partial, bool moved) {
  if (work_.tensor_parallel == 1) return partial;
  Exchange sum{.kind = ExchangeKind::kAllReduce, .group = ExchangeGroup::kTensor, .elements = at(partial).elements()};
  const std::string name = at(partial).name;
  if (!divides_rows()) {
    exchange(name + " summed", sum, {partial}, {partial});
    return partial;
  }
  sum.kind = ExchangeKind::kReduceScatter;
  const int own = tensor("own rows of " + name, own_rows(), at(partial).columns);
  if (on_device() && !moved) program_.tensors.back().place = partial;
  exchange(name + " summed", sum, {partial}, {own});
  return own;
}

void ProgramBuilder::add_gradients(LayerStep& step, const Positions& parameters, std::int64_t columns, bool summed) {
  if (!summed) {
    step.gradients = parameters;
    return;
  }
  const std::string name = step.name;
  const std::size_t index = program_.steps.size() - 1;
  constexpr std::int64_t kGainAndBias = 2;
  const auto rows = static_cast<std::int64_t>(parameters.size());
  const int own = temporary(Room::kReplicated, "own gradients of " + name, on_device() ? kGainAndBias : rows, columns,
                            StoredType::kSingle);
  program_.steps[index].writes.push_back(own);
  exchange(name + " gradients summed",
           {.kind = ExchangeKind::kAllReduce,
            .group = ExchangeGroup::kTensor,
            .elements = rows * columns,
            .type = StoredType::kSingle},
           {own}, {own})
      .gradients = parameters;
}

LayerStep& ProgramBuilder::copy_columns(const std::string& name, std::int64_t first_column, int from, int to,
                                        bool beside) {
  const std::int64_t elements = std::min(at(from).elements(), at(to).elements());
  const Positions reads = beside ? Positions{from, to} : Positions{from};
  LayerStep& step = kernel(name, kernel_call(KernelKind::kCopy, {elements}), reads, {to});
  step.first_column = first_column;
  return step;
}

LayerStep& ProgramBuilder::norm_forward(Norm& norm, int input, int output) {
  const std::int64_t rows = at(output).elements() / norm.columns;
  const std::int64_t is_layer_norm = norm.kind == NormKind::kLayerNorm ? 1 : 0;
  norm.statistics = {tensor(norm.name + " deviations", rows, 1, StoredType::kSingle)};
  if (is_layer_norm != 0) norm.statistics.push_back(tensor(norm.name + " means", rows, 1, StoredType::kSingle));
  Positions writes = {output};
  writes.append(norm.statistics);
  LayerStep& step =
      kernel(norm.name, kernel_call(KernelKind::kNormForward, {rows, norm.columns, is_layer_norm}), {input}, writes);
  step.cheap = true;
  step.parameters = {norm.gain};
  if (norm.bias >= 0) step.parameters.push_back(norm.bias);
  return step;
}

void ProgramBuilder::norm_backward(const Norm& norm, int output_gradient, int past, int input, int input_gradient) {
  const std::int64_t is_layer_norm = norm.kind == NormKind::kLayerNorm ? 1 : 0;
  Positions reads = {output_gradient, input};
  if (past >= 0) reads.push_back(past);
  reads.append(norm.statistics);
  const std::int64_t rows = at(output_gradient).elements() / norm.columns;
  LayerStep& step = kernel(norm.name, kernel_call(KernelKind::kNormBackward, {rows, norm.columns, is_layer_norm}),
                           reads, {input_gradient});
  step.parameters = {norm.gain};
  Positions gradients = {norm.gain};
  if (norm.bias >= 0) gradients.push_back(norm.bias);
  add_gradients(step, gradients, norm.columns, norm.sums_gradients);
}

void ProgramBuilder::multiply(const Product& product, int x, int y) {
  kernel(product.name, gemm_call(at(x).rows, product.out, product.in, GemmForm::kForward), {x}, {y}).parameters = {
      product.weight};
}

void ProgramBuilder::add_bias(const Product& product, int y) {
  if (product.bias < 0) return;
  kernel(product.name + " bias", kernel_call(KernelKind::kBiasForward, {at(y).rows, product.out}), {y}, {y})
      .parameters = {product.bias};
}

void ProgramBuilder::input_gradient(const Product& product, int dy, int dx) {
  kernel(product.name, gemm_call(at(dy).rows, product.in, product.out, GemmForm::kInputGrad), {dy}, {dx}).parameters = {
      product.weight};
}

void ProgramBuilder::weight_gradient(const Product& product, int dy, int x) {
  kernel(product.name, gemm_call(product.out, product.in, at(dy).rows, GemmForm::kWeightGrad), {dy, x}, {})
      .gradients = {product.weight};
}

void ProgramBuilder::replicated_weight_gradient(const Product& product, int dy, int x) {
  LayerStep& step =
      kernel(product.name, gemm_call(product.out, product.in, at(dy).rows, GemmForm::kWeightGrad), {dy, x}, {});
  add_gradients(step, {product.weight}, product.out * product.in, divides_rows());
}

void ProgramBuilder::bias_gradient(const Product& product, int dy, bool row_parallel) {
  if (product.bias < 0) return;
  LayerStep& step =
      kernel(product.name + " bias", kernel_call(KernelKind::kBiasBackward, {at(dy).rows, product.out}), {dy}, {});
  if (row_parallel) return add_gradients(step, {product.bias}, product.out, divides_rows());
  step.gradients = {product.bias};
}

void ProgramBuilder::dropout(const std::string& name, int x, int y, BlockDropout mask) {
  kernel(name, kernel_call(KernelKind::kDropout, {at(x).rows, at(x).columns}), {x}, {y}).mask = mask;
}

}}  // namespace plumb::kernels
