#pragma once
// Writes the steps of a compiled schedule, and gives out its registers.

#include <cstdint>
#include <vector>

#include "schedules/dependencies/action_table.h"
#include "simulator/compile/compiled_schedule.h"
#include "simulator/compile/step_kinds.h"

namespace plumb { inline namespace simulator {

class StepWriter {
 public:
  /// Throws ScheduleError as StepKinds does.
  StepWriter(const Schedule& schedule, Sends sends);

  StepKinds& kinds() { return kinds_; }
  Sends sends() const { return compiled_.sends; }

  Register new_register() { return compiled_.registers++; }
  /// Returns the register itself, or a new one where there is none yet.
  Register held(Register known) { return known == kZeroRegister ? new_register() : known; }
  /// Returns a register for a while. The last one given back comes first: few are in use, and those are in the cache.
  Register take_register();
  void give_back(Register taken) { free_.push_back(taken); }

  /// Adds a step, at whose start an action starts and with which a send departs, if any.
  void add(const Step& step, std::int32_t action = ActionTable::kNone, std::int32_t send = ActionTable::kNone);
  /// Adds the step of a compute action.
  void add_compute(int rank, const Step& step, std::int32_t action, std::int32_t send);

  /// Returns a register with the latest of several; the zero register for none.
  Register join(const std::vector<Register>& inputs);

  CompiledSchedule take();

 private:
  StepKinds kinds_;
  CompiledSchedule compiled_;
  std::vector<Register> free_;
  Register joined_ = kZeroRegister;
};

}}  // namespace plumb::simulator
