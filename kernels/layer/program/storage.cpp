#include "kernels/layer/program/storage.h"

#include <algorithm>

namespace plumb { inline namespace kernels {
namespace {

/// Collects the uses of storages.
class Uses {
 public:
  explicit Uses(const LayerProgram& program)
      : program_(program), first_(first_in_storage(program)), all_(program.tensors.size()), used_(all_.size()) {}

  void add(int tensor, Pass pass, int step) {
    if (tensor < 0 || program_.tensors[static_cast<std::size_t>(tensor)].origin == Origin::kHeld) return;
    const auto root = static_cast<std::size_t>(first_[static_cast<std::size_t>(tensor)]);
    Storage& storage = all_[root];
    if (!used_[root]) {
      used_[root] = true;
      storage.first_pass = pass;
      storage.first_step = storage.last_step = step;
      storage.kept = tensor;
    }
    if (pass == Pass::kForward) storage.kept = tensor;  // steps read before they write
    storage.last_pass = std::max(storage.last_pass, pass);
    storage.last_step = std::max(storage.last_step, step);
    if (!storage.tensors.has(tensor)) storage.tensors.push_back(tensor);
  }

  std::vector<Storage> take() {
    std::vector<Storage> taken;
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (used_[i]) taken.push_back(all_[i]);
    return taken;
  }

 private:
  const LayerProgram& program_;
  std::vector<int> first_;
  std::vector<Storage> all_;  // by first tensor
  std::vector<char> used_;
};

}  // namespace

std::vector<int> first_in_storage(const LayerProgram& program) {
  std::vector<int> first(program.tensors.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    const int place = program.tensors[i].place;
    first[i] = place < 0 ? static_cast<int>(i) : first[static_cast<std::size_t>(place)];
  }
  return first;
}

std::vector<int> writers(const LayerProgram& program) {
  std::vector<int> writer(program.tensors.size(), -1);
  for (std::size_t step = 0; step < program.steps.size(); ++step)
    for (const int tensor : program.steps[step].writes)
      if (int& first = writer[static_cast<std::size_t>(tensor)]; first < 0) first = static_cast<int>(step);
  return writer;
}

std::vector<Storage> storages(const LayerProgram& program) {
  Uses uses(program);
  const auto count = static_cast<int>(program.steps.size());
  const auto begin_of = [&](Pass pass) {
    const auto first = std::ranges::lower_bound(program.steps, pass, {}, &LayerStep::pass);
    return static_cast<int>(first - program.steps.begin());
  };
  const int backward = begin_of(Pass::kInputGrad);
  uses.add(program.input, Pass::kForward, 0);
  bool has_gradient = false;  // the layer behind hands it over at the beginning of the input gradient
  for (int i = 0; i <= count; ++i) {
    if (i == backward && !has_gradient) {
      has_gradient = true;
      uses.add(program.output_gradient, Pass::kInputGrad, backward);
    }
    if (i == count) break;
    const LayerStep& step = program.steps[static_cast<std::size_t>(i)];
    for (const int tensor : step.reads) uses.add(tensor, step.pass, i);
    for (const int tensor : step.writes) uses.add(tensor, step.pass, i);
    for (const int tensor : step.holds) uses.add(tensor, step.pass, i);
  }
  uses.add(program.output, Pass::kForward, std::max(0, backward - 1));
  uses.add(program.input_gradient, Pass::kInputGrad, std::max(backward, begin_of(Pass::kWeightGrad) - 1));
  return uses.take();
}

int handed_tensor(const LayerProgram& program, const Storage& storage) {
  const int first = storage.tensors.front();
  return program.tensors[static_cast<std::size_t>(first)].origin == Origin::kStep ? -1 : first;
}

std::int64_t bytes_of(const LayerProgram& program, const Storage& storage, std::int64_t element_bytes) {
  std::int64_t bytes = 0;
  for (const int tensor : storage.tensors)
    bytes = std::max(bytes, program.tensors[static_cast<std::size_t>(tensor)].bytes(element_bytes));
  return bytes;
}

}}  // namespace plumb::kernels
