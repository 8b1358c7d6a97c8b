#pragma once
// Weights that travel (schedules/dependencies/weight_messages.h) in the dry run: where each message is delivered, and
// which actions beside the compute wait for one. These are the messages themselves and the RESHARDs.

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "schedules/dependencies/weight_messages.h"
#include "schedules/schedule.h"
#include "simulator/compile/step_writer.h"
#include "simulator/compile/turns.h"

namespace plumb { inline namespace simulator {

class WeightMailboxes {
 public:
  /// The arguments must outlive it.
  WeightMailboxes(const Schedule& schedule, StepWriter& writer, Turns& turns);

  /// True for the actions that are issued here.
  bool takes(const Action& action) const {
    return messages_.any() && (is_weight_message(action.op) || action.op == Op::kReshard);
  }
  void issue(int rank, const Action& action, std::int32_t id);

  /// Returns a delivery that a compute action waits for and that is not there yet, or null.
  const Register* missing_delivery(std::int32_t id) const;

  /// Appends the registers of the deliveries that a compute action waits for.
  void take_inputs(std::int32_t id, std::vector<Register>& inputs) const;

  /// True if no action waits for a delivery.
  bool empty() const;

 private:
  /// An action that is issued and waits for its turn.
  struct Waiting {
    Action action;
    std::int32_t id = 0;
    Register issued = kZeroRegister;
  };
  /// Sends of one channel, first in first out, or the RESHARDs of one rank.
  struct Line {
    int rank = 0;
    Register end = kZeroRegister;  ///< when the channel is free; the latest RESHARD
    std::vector<Waiting> waiting;
  };

  Line& line_of(int rank, const Action& action);
  bool is_ready(const Waiting& waiting) const;
  void start(Line& line, const Waiting& waiting, Register from);
  void serve(int rank);

  const Schedule& schedule_;
  StepWriter& writer_;
  Turns& turns_;
  WeightMessages messages_;
  std::vector<Register> delivered_;                 ///< [action id] of a SEND; zero until it is known
  std::vector<Register> receive_issued_;            ///< [action id] of a RECV, under rendezvous
  std::map<std::tuple<int, int, Op>, Line> lines_;  ///< by rank, destination rank and operation
  std::vector<std::vector<Line*>> lines_of_rank_;   ///< [rank]
};

}}  // namespace plumb::simulator
