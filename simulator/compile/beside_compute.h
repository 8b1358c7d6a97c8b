#pragma once
// The actions that run beside the compute, in the dry run: UNSHARD and RESHARD; REDUCE_GRAD, by itself or together with
// those of a stage's copies; OFFLOAD and RELOAD; EVICT and LOAD. Each operation has a channel of its own on every rank.

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "schedules/dependencies/joint_reductions.h"
#include "schedules/schedule.h"
#include "simulator/compile/own_inputs.h"
#include "simulator/compile/step_writer.h"
#include "simulator/compile/turns.h"
#include "simulator/compile/units.h"

namespace plumb { inline namespace simulator {

class BesideCompute {
 public:
  /// The arguments must outlive it.
  BesideCompute(const Schedule& schedule, const ActionIds& ids, const Units& units, OwnInputs& own, StepWriter& writer,
                Turns& turns);

  void issue(int rank, const Action& action, std::int32_t id);

  /// Starts the REDUCE_GRADs of the rank that are issued and start inside `host`, which is about to run with that
  /// input.
  void start_inside(int rank, const Action& host, std::int32_t host_id, Register input);

  /// Returns the end of a reduction for which an OPTIMIZER_STEP waits and which cannot start yet, or null.
  const Register* missing_reduction(const Action& compute) const;

  /// Appends the registers that a compute action has to wait for; they need not be waited for again on its rank.
  void take_inputs(const Action& compute, std::vector<Register>& inputs);

  /// True if no REDUCE_GRAD waits for copies.
  bool empty() const { return queues_.empty(); }

 private:
  struct RankState {
    Register unshards = kZeroRegister;    ///< its channel of UNSHARD
    Register reductions = kZeroRegister;  ///< its channel of REDUCE_GRAD
    std::array<Register, 4> moves{};      ///< its channels of OFFLOAD, RELOAD, EVICT and LOAD
    Register horizon = kZeroRegister;     ///< the latest end of actions that nobody waits for
    std::vector<std::int64_t> hosts;      ///< [position] hosts_of_reductions, once one is issued
    std::vector<std::int32_t> inner;      ///< ids of issued REDUCE_GRADs whose host has not run
  };
  struct StageState {
    Register parameters = kZeroRegister;  ///< the end of its last UNSHARD
    bool must_gather = false;             ///< no compute action has waited for `parameters` yet
    Register reduction = kZeroRegister;   ///< the end of its last REDUCE_GRAD
    bool must_reduce = false;             ///< no OPTIMIZER_STEP has waited for `reduction` yet
    int reductions_under_way = 0;         ///< REDUCE_GRADs that are issued and wait for copies
    Register joint = kZeroRegister;       ///< the moment at which the stage is ready for a collective of copies
  };
  /// The activations' ways out and back: registers, zero while they are not on that way.
  struct MovedUnit {
    std::array<Register, 2> gone{};  ///< the ends of OFFLOAD and EVICT
    std::array<Register, 2> back{};  ///< the ends of RELOAD and LOAD
  };
  /// A REDUCE_GRAD that is issued and waits for those of the stage's copies.
  struct WaitingReduction {
    Action action;
    Register issued = kZeroRegister;
  };

  bool has_host(int rank, std::int32_t id);
  void collective(int rank, const Action& action, std::int32_t id, Register& channel, Register end, Reason reason);
  void drop(int rank, const Action& action, std::int32_t id);
  void move(int rank, const Action& action, std::int32_t id);
  void reduce(int rank, const Action& action, std::int32_t id);
  void reduce_together(const std::vector<std::int32_t>& members);
  void join_copies(const std::vector<Action>& copies, Register latest);

  const Schedule& schedule_;
  const ActionIds& ids_;
  const Units& units_;
  OwnInputs& own_;
  StepWriter& writer_;
  Turns& turns_;
  bool copies_;
  JointReductions joint_;
  ReductionQueues queues_;
  std::vector<RankState> ranks_;
  std::vector<StageState> stages_;
  std::vector<MovedUnit> moved_;                                 ///< [unit]; empty until activations move
  std::map<std::int32_t, WaitingReduction> waiting_reductions_;  ///< by action id
  Register latest_copy_ = kZeroRegister;
};

}}  // namespace plumb::simulator
