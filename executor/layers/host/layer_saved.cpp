#include "executor/layers/host/layer_saved.h"

namespace plumb { inline namespace executor {

std::vector<Tensor*> LayerSaved::of(const std::vector<std::size_t>& storages) {
  std::vector<Tensor*> tensors;
  for (const std::size_t storage : storages) tensors.push_back(&held[storage]);
  return tensors;
}

std::vector<Tensor*> LayerSaved::tensors() {
  std::vector<Tensor*> all = of(program_->kept());
  all.push_back(&input);
  return all;
}

Tensor* LayerSaved::kept_input() {
  const int taken = program_->steps().input;
  if (taken < 0) return nullptr;
  return program_->overwrites_input() ? &input : &at(taken);
}

void drop_tensors(LayerSaved& saved) {
  for (Tensor& tensor : saved.held) tensor = {};
  saved.input = {};
  saved.is_narrow = false;
}

}}  // namespace plumb::executor
