#include "kernels/layer/program/saved_tensors.h"

#include <algorithm>

#include "kernels/layer/program/recomputed.h"
#include "kernels/layer/program/storage.h"

namespace plumb { inline namespace kernels {

std::vector<SavedTensor> saved_tensors(const LayerProgram& program, Recompute what) {
  return saved_tensors(program, forgotten_tensors(program, what));
}

std::vector<SavedTensor> saved_tensors(const LayerProgram& program, const std::vector<bool>& forgotten) {
  std::vector<SavedTensor> saved;
  for (const Storage& storage : storages(program)) {
    const bool from_input_grad = storage.first_pass == Pass::kInputGrad && storage.last_pass == Pass::kWeightGrad;
    if (!storage.is_kept() && !from_input_grad) continue;
    auto index = static_cast<std::size_t>(storage.kept);
    if (const int handed = handed_tensor(program, storage); handed >= 0 && forgotten[index])
      index = static_cast<std::size_t>(handed);
    const LayerTensor& tensor = program.tensors[index];
    saved.push_back({.name = tensor.name,
                     .elements = tensor.elements(),
                     .single_precision = tensor.type != StoredType::kElement,
                     .needed_by_weight_grad = storage.last_pass == Pass::kWeightGrad,
                     .from_input_grad = from_input_grad,
                     .is_input = storage.tensors.has(program.input),
                     .recomputed = forgotten[index]});
  }
  return saved;
}

std::int64_t workspace_bytes(const LayerProgram& program, Pass pass, std::int64_t element_bytes) {
  std::vector<std::int64_t> change(program.steps.size() + 1);  // of the bytes in use, at each step
  for (const Storage& storage : storages(program)) {
    const bool is_handed = storage.tensors.has(program.output_gradient) || storage.tensors.has(program.input) ||
                           (pass == Pass::kForward && storage.tensors.has(program.output));
    if (storage.first_pass != pass || is_handed || storage.is_kept()) continue;
    const std::int64_t bytes = bytes_of(program, storage, element_bytes);
    change[static_cast<std::size_t>(storage.first_step)] += bytes;
    change[static_cast<std::size_t>(storage.last_step) + 1] -= bytes;
  }
  std::int64_t held = 0, peak = 0;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const LayerStep& step = program.steps[i];
    held += change[i];
    if (step.pass != pass) continue;
    const std::int64_t beside =
        step.beside ? program.tensors[static_cast<std::size_t>(step.writes.front())].bytes(element_bytes) : 0;
    peak = std::max(peak, held + beside);
  }
  return peak;
}

}}  // namespace plumb::kernels
