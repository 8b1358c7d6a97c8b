#pragma once
// Messages in the dry run: where each is delivered, and under rendezvous which sends wait for their receive.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/dependencies/channels.h"
#include "schedules/schedule.h"
#include "simulator/compile/step_writer.h"
#include "simulator/compile/turns.h"
#include "simulator/compile/units.h"

namespace plumb { inline namespace simulator {

class Mailboxes {
 public:
  /// The arguments must outlive it.
  Mailboxes(const Schedule& schedule, const StageNeighbors& neighbors, const Units& units, StepWriter& writer,
            Turns& turns);

  /// Returns the register at which an action's input from another rank is delivered (it holds the zero register until
  /// then), or null if the action takes none.
  Register* delivery_for(const Action& action);

  /// Issues a SEND or RECV. Throws ScheduleError if a send has no stage to go to.
  void send(int rank, const Action& action, std::int32_t id);
  void receive(int rank, const Action& action, std::int32_t id);

  /// Hands a delivery to its consumer and wakes the rank that waits for it.
  void deliver(const Action& send, Register delivered);

  /// Returns the register of the send's channel. Throws ScheduleError if the send has no stage to go to.
  Register channel_register(const Action& send) const { return channel_registers_[checked_channel(send)]; }

  /// Returns the send that the rank of `action` waits for and that nobody lists, if its input from another rank is
  /// missing.
  std::optional<Action> unlisted_send(const Action& action) const;

 private:
  struct Direction {
    std::vector<Register> deliveries;    ///< [unit of the consumer] register of the delivery; zero if there is none yet
    std::vector<std::int32_t> receives;  ///< [unit of the consumer] under rendezvous: register of its issue, or less
  };
  struct WaitingSend {
    std::int32_t id = 0;
    Action send;
    Register issued = kZeroRegister;
  };

  void list_receives();
  void serve_line(int channel);
  void transfer(Register issued, Register input, const Action& send, std::int32_t id);
  std::int32_t receive_of(const Action& send);
  Register issue_register(const Action& send);
  int checked_channel(const Action& send) const;
  int consumer_of(const Action& send) const {
    return (send.op == Op::kSendActivation ? neighbors_.successor : neighbors_.predecessor)[send.stage];
  }
  /// Returns the stage on another rank that makes the input of F, B or I, or -1.
  int remote_producer(const Action& action) const;

  const Schedule& schedule_;
  const StageNeighbors& neighbors_;
  const Units& units_;
  StepWriter& writer_;
  Turns& turns_;
  Channels channels_;
  std::array<Direction, 2> directions_;          ///< activations, gradients
  std::vector<Register> channel_registers_;      ///< [channel]
  std::vector<std::vector<WaitingSend>> lines_;  ///< [channel] sends whose receive is not issued yet
  Register waiting_send_ = kZeroRegister;        ///< the moment at which a send that waited was issued
};

}}  // namespace plumb::simulator
