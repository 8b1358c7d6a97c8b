#include "kernels/layer/program/check_program.h"

#include <algorithm>

#include "kernels/layer/program/recomputed.h"
#include "kernels/layer/program/storage.h"

namespace plumb { inline namespace kernels {
namespace {

/// Follows the values in a program's storages from step to step.
class Values {
 public:
  explicit Values(const LayerProgram& program)
      : program_(program), first_(first_in_storage(program)), value_(program.tensors.size(), kNothing) {
    for (std::size_t i = 0; i < program.tensors.size(); ++i) {
      const Origin origin = program.tensors[i].origin;
      if (origin == Origin::kInput || origin == Origin::kLoaded || origin == Origin::kHeld)
        value_[static_cast<std::size_t>(first_[i])] = static_cast<int>(i);
    }
  }

  /// Notes that the layer behind hands over its gradient.
  void take_output_gradient() {
    if (program_.output_gradient >= 0) in_storage(program_.output_gradient) = program_.output_gradient;
  }

  bool holds(int tensor) { return in_storage(tensor) == tensor; }
  void set(int tensor) { in_storage(tensor) = tensor; }

  /// Returns the tensor in whose storage `tensor` lies at present, or kNothing.
  int& in_storage(int tensor) { return value_[static_cast<std::size_t>(first_[static_cast<std::size_t>(tensor)])]; }

  static constexpr int kNothing = -1;

 private:
  const LayerProgram& program_;
  std::vector<int> first_;
  std::vector<int> value_;  // [first tensor of a storage] tensor that it has
};

std::string name_of(const LayerProgram& program, int tensor) {
  return "'" + program.tensors[static_cast<std::size_t>(tensor)].name + "'";
}

/// Returns the fault of a step that reads a tensor that is not there.
std::string missing(const LayerProgram& program, Values& values, const LayerStep& step, int tensor) {
  const int other = values.in_storage(tensor);
  if (other == Values::kNothing)
    return step_text(step) + " reads " + name_of(program, tensor) + ", which no step before it writes";
  return step_text(step) + " reads " + name_of(program, tensor) + ", whose place " + name_of(program, other) +
         " has taken";
}

/// Returns the fault of a product whose operands have not the shapes of its call.
std::string product_fault(const LayerProgram& program, const LayerStep& step) {
  if (!step.is(KernelKind::kGemm)) return {};
  const std::vector<std::int64_t>& shape = step.call()->shape;
  const std::int64_t m = shape[0], n = shape[1], k = shape[2];
  if (shape[3] != 1) return {};  // experts, whose rows are counted together
  const auto form = static_cast<GemmForm>(shape[4]);
  const auto fits = [&](int tensor, std::int64_t rows, std::int64_t columns) {
    const LayerTensor& operand = program.tensors[static_cast<std::size_t>(tensor)];
    return operand.rows == rows && operand.columns == columns;
  };
  const auto weight_fits = [&](const Positions& weights, std::int64_t out, std::int64_t in) {
    return !weights.empty() &&
           program.parameters[static_cast<std::size_t>(weights.front())].shape == std::vector<std::int64_t>{out, in};
  };
  bool is_sound = false;
  if (adds_up(form)) {
    const bool at_once = !step.writes.empty() || weight_fits(step.gradients, m, n);  // or summed over ranks first
    is_sound = step.reads.size() >= 2 && fits(step.reads[0], k, m) && fits(step.reads[1], k, n) && at_once;
  } else {
    const bool forward = form != GemmForm::kInputGrad;
    is_sound = !step.reads.empty() && !step.writes.empty() && fits(step.reads[0], m, k) && fits(step.writes[0], m, n) &&
               weight_fits(step.parameters, forward ? n : k, forward ? k : n);
  }
  return is_sound ? std::string() : step_text(step) + " has operands of other shapes than its product";
}

/// Returns the first step behind `begin` that reads the tensor before it is written again, or null.
const LayerStep* later_reader(const LayerProgram& program, int tensor, std::size_t begin) {
  for (std::size_t i = begin + 1; i < program.steps.size(); ++i) {
    if (program.steps[i].reads.has(tensor)) return &program.steps[i];
    if (program.steps[i].writes.has(tensor)) return nullptr;
  }
  return nullptr;
}

std::string write_fault(const LayerProgram& program, Values& values, std::size_t index, int tensor) {
  const LayerStep& step = program.steps[index];
  const int old = values.in_storage(tensor);
  if (old == Values::kNothing || step.reads.has(tensor)) return {};
  if (old == tensor)
    return step_text(step) + " writes " + name_of(program, tensor) + " a second time without reading it";
  if (const LayerStep* reader = later_reader(program, old, index))
    return step_text(step) + " takes the place of " + name_of(program, old) + ", which " + step_text(*reader) +
           " still reads";
  return {};
}

std::string parameter_fault(const LayerProgram& program) {
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const auto parameter = static_cast<int>(i);
    const LayerStep* reader = nullptr;
    bool has_gradient = false;
    for (const LayerStep& step : program.steps) {
      if (step.pass == Pass::kForward && reader == nullptr && step.parameters.has(parameter)) reader = &step;
      has_gradient = has_gradient || step.gradients.has(parameter);
    }
    if (reader == nullptr) return "no step of the forward reads parameter " + program.parameters[i].name;
    if (!has_gradient)
      return "no step adds to the gradient of parameter " + program.parameters[i].name + ", which " +
             step_text(*reader) + " reads";
  }
  return {};
}

}  // namespace

std::string program_fault(const LayerProgram& program) {
  Values values(program);
  const auto handed = [&](int tensor, const char* what) -> std::string {
    if (tensor < 0 || values.holds(tensor)) return {};
    return std::string("no step writes ") + name_of(program, tensor) + ", the layer's " + what;
  };
  bool is_backward = false, hands_gradient = false;
  for (std::size_t i = 0; i <= program.steps.size(); ++i) {
    const Pass pass = i < program.steps.size() ? program.steps[i].pass : Pass::kOptimizer;
    if (!is_backward && pass > Pass::kForward) {
      is_backward = true;
      if (std::string fault = handed(program.output, "output"); !fault.empty()) return fault;
      values.take_output_gradient();
    }
    if (!hands_gradient && pass > Pass::kInputGrad) {
      hands_gradient = true;
      if (std::string fault = handed(program.input_gradient, "input gradient"); !fault.empty()) return fault;
    }
    if (i == program.steps.size()) break;
    const LayerStep& step = program.steps[i];
    for (const int tensor : step.reads)
      if (!values.holds(tensor)) return missing(program, values, step, tensor);
    for (const int tensor : step.writes)
      if (std::string fault = write_fault(program, values, i, tensor); !fault.empty()) return fault;
    for (const int tensor : step.writes) values.set(tensor);
    if (std::string fault = product_fault(program, step); !fault.empty()) return fault;
  }
  return parameter_fault(program);
}

std::string exchange_fault(std::span<const LayerProgram> ranks, ExchangeGroup group) {
  const auto exchanges = [&](const LayerProgram& program) {
    std::vector<const LayerStep*> steps;
    for (const LayerStep& step : program.steps)
      if (const Exchange* exchange = step.exchange(); exchange != nullptr && exchange->group == group)
        steps.push_back(&step);
    return steps;
  };
  const auto on_rank = [](std::size_t rank) { return " on rank " + std::to_string(rank); };
  const std::vector<const LayerStep*> first = exchanges(ranks.front());
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const std::vector<const LayerStep*> other = exchanges(ranks[rank]);
    for (std::size_t i = 0; i < std::max(first.size(), other.size()); ++i) {
      if (i >= other.size()) return step_text(*first[i]) + " on rank 0 has no counterpart" + on_rank(rank);
      if (i >= first.size()) return step_text(*other[i]) + on_rank(rank) + " has no counterpart on rank 0";
      if (first[i]->name != other[i]->name || first[i]->pass != other[i]->pass ||
          *first[i]->exchange() != *other[i]->exchange())
        return step_text(*first[i]) + " on rank 0 meets " + step_text(*other[i]) + on_rank(rank);
    }
  }
  return {};
}

std::string recomputation_fault(const LayerProgram& program, const std::vector<bool>& forgotten) {
  std::vector<bool> is_there(program.tensors.size());
  for (std::size_t i = 0; i < is_there.size(); ++i) is_there[i] = program.tensors[i].origin != Origin::kStep;
  const std::vector<Storage> all = storages(program);
  for (const Storage& storage : all) {
    if (!storage.is_kept()) continue;
    const auto kept = static_cast<std::size_t>(storage.kept);
    is_there[kept] = is_there[kept] || !forgotten[kept];
  }
  const auto absent = [&](const LayerStep& step, int tensor) {
    return step_text(step) + " reads " + name_of(program, tensor) + ", which is neither kept nor made again";
  };
  for (const int i : recomputed_steps(program, forgotten)) {
    const LayerStep& step = program.steps[static_cast<std::size_t>(i)];
    for (const int tensor : step.reads)
      if (!is_there[static_cast<std::size_t>(tensor)]) return absent(step, tensor);
    for (const int tensor : step.writes) is_there[static_cast<std::size_t>(tensor)] = true;
  }
  Values values(program);
  for (const Storage& storage : all)
    if (storage.is_kept())
      if (const int kept = storage.kept; is_there[static_cast<std::size_t>(kept)]) values.set(kept);
  values.take_output_gradient();
  for (const LayerStep& step : program.steps) {
    if (step.pass == Pass::kForward) continue;
    for (const int tensor : step.reads)
      if (!values.holds(tensor)) return absent(step, tensor);
    for (const int tensor : step.writes) values.set(tensor);
  }
  return {};
}

}}  // namespace plumb::kernels
