#include "simulator/compile/weight_mailboxes.h"

#include <algorithm>

namespace plumb { inline namespace simulator {

WeightMailboxes::WeightMailboxes(const Schedule& schedule, StepWriter& writer, Turns& turns)
    : schedule_(schedule),
      writer_(writer),
      turns_(turns),
      messages_(weight_messages(schedule)),
      delivered_(messages_.partner.size(), kZeroRegister),
      lines_of_rank_(messages_.any() ? schedule.ranks.size() : 0) {
  if (writer.sends() == Sends::kRendezvous) receive_issued_ = delivered_;
}

const Register* WeightMailboxes::missing_delivery(std::int32_t id) const {
  for (const std::int32_t send : messages_.awaited_by(id)) {
    if (delivered_[send] == kZeroRegister) return &delivered_[send];
  }
  return nullptr;
}

void WeightMailboxes::take_inputs(std::int32_t id, std::vector<Register>& inputs) const {
  for (const std::int32_t send : messages_.awaited_by(id)) inputs.push_back(delivered_[send]);
}

bool WeightMailboxes::empty() const {
  return std::ranges::all_of(lines_, [](const auto& line) { return line.second.waiting.empty(); });
}

WeightMailboxes::Line& WeightMailboxes::line_of(int rank, const Action& action) {
  const int destination = sends_weights(action.op) ? schedule_.stages[action.peer].rank : rank;
  const auto [line, is_new] = lines_.try_emplace({rank, destination, action.op}, Line{.rank = rank});
  if (is_new) {
    line->second.end = writer_.new_register();
    lines_of_rank_[rank].push_back(&line->second);
  }
  return line->second;
}

bool WeightMailboxes::is_ready(const Waiting& waiting) const {
  if (missing_delivery(waiting.id) != nullptr) return false;
  if (receive_issued_.empty() || !sends_weights(waiting.action.op)) return true;
  const std::int32_t receive = messages_.partner[waiting.id];
  return receive < 0 || receive_issued_[receive] != kZeroRegister;
}

void WeightMailboxes::issue(int rank, const Action& action, std::int32_t id) {
  if (receives_weights(action.op)) {
    if (receive_issued_.empty()) return;
    receive_issued_[id] = writer_.new_register();
    writer_.add({.kind = writer_.kinds().issue_of_receive(rank), .output = receive_issued_[id]}, id);
    return serve(schedule_.stages[action.peer].rank);
  }
  Line& line = line_of(rank, action);
  Waiting waiting{.action = action, .id = id};
  if (line.waiting.empty() && is_ready(waiting)) {
    start(line, waiting, rank_register(rank));
    return sends_weights(action.op) ? serve(schedule_.stages[action.peer].rank) : void();
  }
  waiting.issued = writer_.take_register();
  writer_.add({.kind = writer_.kinds().copy(rank_register(rank), kUnreadRegister), .output = waiting.issued});
  line.waiting.push_back(waiting);
}

/// Adds the step of an action that is ready, from the moment at which it was issued on.
void WeightMailboxes::start(Line& line, const Waiting& waiting, Register from) {
  const bool sends = sends_weights(waiting.action.op);
  std::vector<Register> inputs;
  if (waiting.issued != kZeroRegister) inputs.push_back(waiting.issued);
  take_inputs(waiting.id, inputs);
  if (const std::int32_t receive = messages_.partner[waiting.id]; sends && receive >= 0 && !receive_issued_.empty())
    inputs.push_back(receive_issued_[receive]);
  if (sends) inputs.push_back(line.end);
  const std::uint32_t kind = writer_.kinds().travelling(waiting.action, from, [&] {
    return StepKind{.rank = line.rank, .from = from, .to = sends ? line.end : kUnreadRegister, .channel = line.end};
  });
  if (sends) delivered_[waiting.id] = writer_.new_register();
  writer_.add({.kind = kind, .input = writer_.join(inputs), .output = sends ? delivered_[waiting.id] : kUnreadRegister},
              waiting.id);
  if (waiting.issued != kZeroRegister) writer_.give_back(waiting.issued);
  if (!sends) return;
  for (const int rank : {line.rank, schedule_.stages[waiting.action.peer].rank})
    turns_.arrived(rank, &delivered_[waiting.id]);
}

/// Starts what waits on that rank, and on those that it reaches, and has become ready.
void WeightMailboxes::serve(int first) {
  std::vector<int> ranks{first};
  while (!ranks.empty()) {
    const int rank = ranks.back();
    ranks.pop_back();
    for (std::size_t l = 0; l < lines_of_rank_[rank].size(); ++l) {
      Line& line = *lines_of_rank_[rank][l];
      while (!line.waiting.empty() && is_ready(line.waiting.front())) {
        const Waiting waiting = line.waiting.front();
        line.waiting.erase(line.waiting.begin());
        start(line, waiting, kZeroRegister);
        if (!sends_weights(waiting.action.op)) continue;
        ranks.push_back(schedule_.stages[waiting.action.peer].rank);
        ranks.push_back(rank);
      }
    }
  }
}

}}  // namespace plumb::simulator
