#include "executor/parameters/optimizer_state.h"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <utility>

#include "kernels/cpu/optimizers/adafactor.h"
#include "kernels/cpu/optimizers/adamw_8bit.h"
#include "kernels/cpu/optimizers/lion.h"
#include "kernels/cpu/optimizers/sgd.h"

namespace plumb { inline namespace executor {
namespace {

struct FieldsOf {
  const ParameterTensor& tensor;
  std::int64_t elements;
  std::int64_t single = kSingleBytes * elements;

  std::vector<OptimizerField> operator()(const AdamW&) const {
    return {{"first_moment", single}, {"second_moment", single}};
  }
  std::vector<OptimizerField> operator()(const AdamW8Bit&) const {
    const std::int64_t scales = kSingleBytes * quantisation_blocks(elements);
    return {{"first_moment.codes", elements},
            {"first_moment.scales", scales},
            {"second_moment.codes", elements},
            {"second_moment.scales", scales}};
  }
  std::vector<OptimizerField> operator()(const Sgd&) const { return {{"momentum", single}}; }
  std::vector<OptimizerField> operator()(const Lion&) const { return {{"momentum", single}}; }
  std::vector<OptimizerField> operator()(const Adafactor&) const {
    if (tensor.is_vector()) return {{"second_moment", single}};
    const MatrixStackSize stack = matrices_of(tensor);
    return {{"row_sums", kSingleBytes * stack.matrices * stack.rows},
            {"column_sums", kSingleBytes * stack.matrices * stack.columns}};
  }
};

struct Update {
  const CpuKernelSet& kernels;
  const ParameterUpdate& of;
  std::int64_t step;

  float* field(std::size_t index) const { return of.state[index].data(); }

  template <class Settings>
  Settings for_tensor(Settings settings) const {
    if (of.tensor.is_vector()) settings.weight_decay = 0;
    return settings;
  }

  void operator()(const AdamW& adamw) const {
    kernels.adamw_update(of.weights, of.gradients, field(0), field(1), of.elements, for_tensor(adamw), step);
  }
  void operator()(const AdamW8Bit& optimizer) const {
    const auto moment = [&](std::size_t index) {
      return QuantisedMoment{reinterpret_cast<std::uint8_t*>(of.state[index].bytes().data()), field(index + 1)};
    };
    adamw_8bit_update(of.weights, of.gradients, moment(0), moment(2), of.elements, for_tensor(optimizer.adamw), step);
  }
  void operator()(const Sgd& sgd) const {
    sgd_update(of.weights, of.gradients, field(0), of.elements, for_tensor(sgd));
  }
  void operator()(const Lion& lion) const {
    lion_update(of.weights, of.gradients, field(0), of.elements, for_tensor(lion));
  }
  void operator()(const Adafactor& adafactor) const {
    if (of.tensor.is_vector())
      return adafactor_update_vector(of.weights, of.gradients, field(0), of.elements, for_tensor(adafactor), step);
    const MatrixStackSize stack = matrices_of(of.tensor);
    for (std::int64_t i = 0; i < stack.matrices; ++i) {
      const std::int64_t first = i * stack.rows * stack.columns;
      adafactor_update_matrix(of.weights + first, of.gradients + first, field(0) + i * stack.rows,
                              field(1) + i * stack.columns, stack.rows, stack.columns, adafactor, step);
    }
  }
};

/// Moves a bias of picks against the excess of picks that its gradient has counted.
void balance(const ParameterUpdate& of) {
  const auto rate = static_cast<float>(of.tensor.balance_rate);
  for (std::int64_t i = 0; i < of.elements; ++i) {
    const float excess = std::exchange(of.gradients[i], 0.0F);
    if (excess != 0) of.weights[i] += excess > 0 ? -rate : rate;
  }
}

}  // namespace

MatrixStackSize matrices_of(const ParameterTensor& tensor) {
  const std::vector<std::int64_t>& shape = tensor.shape;
  if (tensor.is_vector()) return {};
  MatrixStackSize size{.rows = shape[shape.size() - 2], .columns = shape.back()};
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) size.matrices *= shape[i];
  return size;
}

bool is_elementwise(const OptimizerSettings& optimizer) {
  return !std::holds_alternative<AdamW8Bit>(optimizer) && !std::holds_alternative<Adafactor>(optimizer);
}

std::vector<OptimizerField> optimizer_fields(const OptimizerSettings& optimizer, const ParameterTensor& tensor,
                                             std::int64_t elements) {
  if (tensor.balance_rate > 0) return {};
  assert(is_elementwise(optimizer) || elements == element_count(tensor));
  return std::visit(FieldsOf{.tensor = tensor, .elements = elements}, optimizer);
}

std::vector<Tensor> fresh_state(const OptimizerSettings& optimizer, const ParameterTensor& tensor,
                                std::int64_t elements, TensorPool& pool) {
  std::vector<Tensor> state;
  for (const OptimizerField& field : optimizer_fields(optimizer, tensor, elements)) {
    state.push_back(pool.take_bytes(field.bytes));
    std::ranges::fill(state.back().bytes(), std::byte{0});
  }
  return state;
}

void update_parameter(const CpuKernelSet& kernels, const OptimizerSettings& optimizer, const ParameterUpdate& update,
                      std::int64_t step) {
  if (update.tensor.balance_rate > 0) return balance(update);
  std::visit(Update{.kernels = kernels, .of = update, .step = step}, optimizer);
}

}}  // namespace plumb::executor
