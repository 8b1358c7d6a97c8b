#include "simulator/compile/mailboxes.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace simulator {
namespace {

// States of a receive; larger numbers are the register of its issue.
constexpr std::int32_t kNotListed = -1;
constexpr std::int32_t kNotIssued = 0;

}  // namespace

Mailboxes::Mailboxes(const Schedule& schedule, const StageNeighbors& neighbors, const Units& units, StepWriter& writer,
                     Turns& turns)
    : schedule_(schedule),
      neighbors_(neighbors),
      units_(units),
      writer_(writer),
      turns_(turns),
      channels_(channels_of(schedule, neighbors)),
      lines_(channels_.channels.size()) {
  for (Direction& direction : directions_) direction.deliveries.assign(units.count(), kZeroRegister);
  for (std::size_t c = 0; c < channels_.channels.size(); ++c) channel_registers_.push_back(writer.new_register());
  if (writer.sends() == Sends::kRendezvous) list_receives();
}

void Mailboxes::list_receives() {
  for (Direction& direction : directions_) direction.receives.assign(units_.count(), kNotListed);
  for (const auto& actions : schedule_.ranks) {
    for (const Action& a : actions) {
      if (is_recv(a.op)) directions_[a.op == Op::kRecvGradient].receives[units_.of(a)] = kNotIssued;
    }
  }
}

int Mailboxes::remote_producer(const Action& a) const {
  const bool forward = a.op == Op::kForward;
  if (!forward && !gives_input_gradient(a.op)) return -1;
  const int neighbor = (forward ? neighbors_.predecessor : neighbors_.successor)[a.stage];
  const bool remote = neighbor >= 0 && schedule_.stages[neighbor].rank != schedule_.stages[a.stage].rank;
  return remote ? neighbor : -1;
}

Register* Mailboxes::delivery_for(const Action& a) {
  if (remote_producer(a) < 0) return nullptr;
  return &directions_[a.op == Op::kForward ? 0 : 1].deliveries[units_.of(a)];
}

std::optional<Action> Mailboxes::unlisted_send(const Action& a) const {
  const int producer = remote_producer(a);
  if (producer < 0) return std::nullopt;
  const Action send{.op = a.op == Op::kForward ? Op::kSendActivation : Op::kSendGradient,
                    .part = a.part,
                    .stage = producer,
                    .microbatch = a.microbatch};
  const std::vector<Action>& actions = schedule_.ranks[schedule_.stages[producer].rank];
  return std::ranges::find(actions, send) == actions.end() ? std::optional(send) : std::nullopt;
}

int Mailboxes::checked_channel(const Action& send) const {
  const int channel = channel_of(channels_, send);
  if (channel < 0) throw ScheduleError(fmt::format("{} has no neighbour to send to: remove it", to_text(send)));
  return channel;
}

void Mailboxes::send(int rank, const Action& action, std::int32_t id) {
  if (writer_.sends() == Sends::kBuffered) return transfer(rank_register(rank), kZeroRegister, action, id);
  std::vector<WaitingSend>& line = lines_[checked_channel(action)];
  const std::int32_t receive = receive_of(action);
  if (line.empty() && receive != kNotIssued) {
    transfer(rank_register(rank), issue_register(action), action, id);
    return;
  }
  const Register issued = writer_.take_register();
  writer_.add({.kind = writer_.kinds().copy(rank_register(rank), kUnreadRegister), .output = issued});
  line.push_back({.id = id, .send = action, .issued = issued});
}

void Mailboxes::receive(int rank, const Action& action, std::int32_t id) {
  std::int32_t& known = directions_[action.op == Op::kRecvGradient].receives[units_.of(action)];
  if (known != kNotIssued) return;
  const Register issued = writer_.take_register();
  known = static_cast<std::int32_t>(issued);
  writer_.add({.kind = writer_.kinds().issue_of_receive(rank), .output = issued}, id);
  const bool forward = action.op == Op::kRecvActivation;
  const int producer = (forward ? neighbors_.predecessor : neighbors_.successor)[action.stage];
  if (producer >= 0) serve_line((forward ? channels_.of_activations : channels_.of_gradients)[producer]);
}

/// Starts the transfers at the head of the line whose receives are issued.
void Mailboxes::serve_line(int channel) {
  std::vector<WaitingSend>& line = lines_[channel];
  std::size_t served = 0;
  for (; served < line.size() && receive_of(line[served].send) != kNotIssued; ++served) {
    const WaitingSend& waiting = line[served];
    waiting_send_ = writer_.held(waiting_send_);
    writer_.add({.kind = writer_.kinds().copy(kZeroRegister, waiting_send_), .input = waiting.issued});
    writer_.give_back(waiting.issued);
    transfer(waiting_send_, issue_register(waiting.send), waiting.send, waiting.id);
  }
  line.erase(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(served));
}

std::int32_t Mailboxes::receive_of(const Action& send) {
  const int consumer = consumer_of(send);
  return directions_[send.op == Op::kSendGradient].receives[units_.of(consumer, send.microbatch, send.part)];
}

/// Returns the register of the issue of the send's receive, free for reuse afterwards; the zero register without a
/// receive.
Register Mailboxes::issue_register(const Action& send) {
  const std::int32_t receive = receive_of(send);
  if (receive <= 0) return kZeroRegister;
  writer_.give_back(static_cast<Register>(receive));
  return static_cast<Register>(receive);
}

/// Adds a send that takes its channel once `issued` and `input` allow it.
void Mailboxes::transfer(Register issued, Register input, const Action& send, std::int32_t id) {
  const std::uint32_t kind = writer_.kinds().transfer(send, issued, channel_register(send));
  const Register output = writer_.take_register();
  writer_.add({.kind = kind, .input = input, .output = output}, ActionTable::kNone, id);
  deliver(send, output);
}

void Mailboxes::deliver(const Action& send, Register delivered) {
  const int consumer = consumer_of(send);
  Register& delivery =
      directions_[send.op == Op::kSendGradient].deliveries[units_.of(consumer, send.microbatch, send.part)];
  if (delivery != kZeroRegister) return;
  delivery = delivered;
  const int rank = schedule_.stages[consumer].rank;
  turns_.arrived(rank, &delivery);
}

}}  // namespace plumb::simulator
