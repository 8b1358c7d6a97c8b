#include "executor/layers/host/host_program.h"

#include <algorithm>

#include "executor/spec/division/tensor_division.h"

namespace plumb { inline namespace executor {

HostProgram::HostProgram(const Layer& layer, const LayerWork& work)
    : layer_(layer),
      share_(divide_layer(layer, work.tensor_parallel, work.experts.tensor)),
      work_(work),
      program_(layer_program(layer, work)),
      storage_of_(program_.tensors.size()),
      first_elements_(first_elements(program_.parameters)) {
  for (const Storage& storage : plumb::storages(program_)) {
    const std::size_t number = ends_.size();
    for (const int tensor : storage.tensors) storage_of_[static_cast<std::size_t>(tensor)] = number;
    ends_.push_back(storage.last_step);
    if (storage.first_pass != storage.last_pass) kept_.push_back(number);
    if (tensor(storage.tensors.front()).type == StoredType::kElement) numbers_.push_back(number);
  }
  for (const LayerStep& step : steps_of(program_, Pass::kForward))
    for (const int written : step.writes) {
      if (step.cheap && tensor(written).type == StoredType::kElement) cheap_.push_back(storage_of(written));
      if (program_.input >= 0 && storage_of(written) == storage_of(program_.input)) overwrites_input_ = true;
    }
}

bool HostProgram::is_handed(std::size_t storage, Pass pass) const {
  const auto is_of = [&](int tensor) { return tensor >= 0 && storage_of(tensor) == storage; };
  return pass == Pass::kForward ? is_of(program_.output) : pass == Pass::kInputGrad && is_of(program_.input_gradient);
}

}}  // namespace plumb::executor
