#include "simulator/compile/step_writer.h"

#include <utility>

namespace plumb { inline namespace simulator {

StepWriter::StepWriter(const Schedule& schedule, Sends sends) : kinds_(schedule) {
  compiled_.sends = sends;
  compiled_.ranks = static_cast<int>(schedule.ranks.size());
  compiled_.registers = rank_register(compiled_.ranks);
  compiled_.first_steps.assign(schedule.ranks.size(), -1);
  const auto steps = static_cast<std::size_t>(kinds_.compute_actions());
  compiled_.steps.reserve(steps);
  compiled_.action_ids.reserve(steps);
  compiled_.send_ids.reserve(steps);
}

Register StepWriter::take_register() {
  if (free_.empty()) return new_register();
  const Register taken = free_.back();
  free_.pop_back();
  return taken;
}

void StepWriter::add(const Step& step, std::int32_t action, std::int32_t send) {
  kinds_.count(step.kind);
  compiled_.steps.push_back(step);
  compiled_.action_ids.push_back(action);
  compiled_.send_ids.push_back(send);
}

void StepWriter::add_compute(int rank, const Step& step, std::int32_t action, std::int32_t send) {
  std::int64_t& first = compiled_.first_steps[rank];
  if (first < 0) first = static_cast<std::int64_t>(compiled_.steps.size());
  add(step, action, send);
}

Register StepWriter::join(const std::vector<Register>& inputs) {
  if (inputs.empty()) return kZeroRegister;
  if (inputs.size() == 1) return inputs.front();
  joined_ = held(joined_);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    add({.kind = kinds_.copy(i == 0 ? kZeroRegister : joined_, joined_), .input = inputs[i]});
  return joined_;
}

CompiledSchedule StepWriter::take() {
  compiled_.kinds = kinds_.take();
  return std::move(compiled_);
}

}}  // namespace plumb::simulator
