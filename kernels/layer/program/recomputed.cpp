#include "kernels/layer/program/recomputed.h"

#include <algorithm>

#include "kernels/layer/program/storage.h"

namespace plumb { inline namespace kernels {

std::vector<bool> results_of(const LayerProgram& program, const std::vector<bool>& steps) {
  std::vector<bool> results(program.tensors.size());
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    if (steps[i] && program.steps[i].pass == Pass::kForward)
      for (const int tensor : program.steps[i].writes) results[static_cast<std::size_t>(tensor)] = true;
  return results;
}

std::vector<bool> forgotten_tensors(const LayerProgram& program, Recompute what) {
  std::vector<bool> forgotten(program.tensors.size());
  if (what == Recompute::kNone) return forgotten;
  std::vector<bool> steps(program.steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = what != Recompute::kSelective || program.steps[i].cheap;
  forgotten = results_of(program, steps);
  if (what == Recompute::kSelective)
    for (std::size_t i = 0; i < forgotten.size(); ++i)
      if (program.tensors[i].type != StoredType::kElement) forgotten[i] = false;
  return forgotten;
}

std::vector<int> recomputed_steps(const LayerProgram& program, const std::vector<bool>& forgotten) {
  std::vector<bool> is_wanted(program.tensors.size()), is_there(program.tensors.size());
  for (const Storage& storage : storages(program)) {
    if (!storage.is_kept()) continue;
    const auto kept = static_cast<std::size_t>(storage.kept);
    (forgotten[kept] ? is_wanted : is_there)[kept] = true;
    if (const int handed = handed_tensor(program, storage); handed >= 0 && forgotten[kept])
      is_there[static_cast<std::size_t>(handed)] = true;  // nothing has taken its place yet
  }
  std::vector<int> again;
  for (int i = static_cast<int>(program.steps.size()); i-- > 0;) {
    const LayerStep& step = program.steps[static_cast<std::size_t>(i)];
    const bool is_needed = step.pass == Pass::kForward && std::ranges::any_of(step.writes, [&](int tensor) {
                             return is_wanted[static_cast<std::size_t>(tensor)];
                           });
    if (!is_needed) continue;
    again.push_back(i);
    for (const int tensor : step.reads) {
      const auto read = static_cast<std::size_t>(tensor);
      const bool is_made = program.tensors[read].origin == Origin::kStep;
      if (is_made && !is_there[read]) is_wanted[read] = true;
    }
  }
  std::ranges::reverse(again);
  return again;
}

std::vector<KernelCall> recomputed_kernels(const LayerProgram& program, Recompute what) {
  std::vector<KernelCall> calls;
  for (const int i : recomputed_steps(program, forgotten_tensors(program, what)))
    if (const KernelCall* call = program.steps[static_cast<std::size_t>(i)].call()) calls.push_back(*call);
  return calls;
}

}}  // namespace plumb::kernels
