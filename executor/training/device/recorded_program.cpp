#include "executor/training/device/recorded_program.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "executor/training/device/shared_exchange.h"
#include "executor/transport/transport.h"

namespace plumb { inline namespace executor {

void RecordedProgram::add(std::size_t call, CallTrack track, std::vector<RecordedPiece> pieces) {
  for (const RecordedPiece& piece : pieces)
    track.pieces.push_back({.communicator = piece.exchange ? piece.exchange->communicator : -1,
                            .bucket = piece.bucket,
                            .stream = piece.stream,
                            .behind = piece.behind});
  tracks_[call].push_back(std::move(track));
  pieces_[call].push_back(std::move(pieces));
}

void RecordedProgram::settle(const DeviceProgram& pipeline, int ranks, std::vector<std::string> names) {
  names_ = std::move(names);
  for (const DeviceCall& call : pipeline.calls) with_next_.push_back(call.with_next);
  world_ = world_calls(pipeline, std::exchange(tracks_, {}), ranks);
}

const RecordedPiece& RecordedProgram::piece_of(const WorldCall& call) const {
  return pieces_[static_cast<std::size_t>(call.call)][static_cast<std::size_t>(call.track)]
                [static_cast<std::size_t>(call.piece)];
}

/// [member] the parts of the call's exchange.
std::vector<const DeviceExchange*> RecordedProgram::members_of(const WorldCall& call) const {
  std::vector<const DeviceExchange*> members;
  const std::int32_t communicator = piece_of(call).exchange->communicator;
  for (const std::vector<RecordedPiece>& pieces : pieces_[static_cast<std::size_t>(call.call)]) {
    const auto& exchange = pieces[static_cast<std::size_t>(call.piece)].exchange;
    if (!exchange || exchange->communicator != communicator) continue;
    members.resize(std::max(members.size(), static_cast<std::size_t>(exchange->member) + 1));
    members[static_cast<std::size_t>(exchange->member)] = &*exchange;
  }
  return members;
}

void RecordedProgram::enqueue(DeviceMachine& machine, std::int64_t element_bytes) const {
  for (std::size_t i = 0; i < world_.calls.size(); ++i) {
    const WorldCall& call = world_.calls[i];
    const auto at = static_cast<std::size_t>(call.call);
    const CallTrack& track = world_.tracks[at][static_cast<std::size_t>(call.track)];
    const RecordedPiece& piece = piece_of(call);
    const DeviceStream stream = track.stream_of(static_cast<std::size_t>(call.piece));
    // A rank has an end of both messages of a group, next to each other, or of none.
    const bool opens = is_one_rank_ && with_next_[at], closes = is_one_rank_ && at > 0 && with_next_[at - 1];
    assert(!opens || (i + 1 < world_.calls.size() && world_.calls[i + 1].call == call.call + 1));
    if (opens) machine.begin_group();
    machine.begin_call(i, is_one_rank_ ? 0 : track.rank, stream, names_[at].c_str());
    for (const std::int32_t wait : call.waits) machine.wait_for(static_cast<std::size_t>(wait));
    if (piece.exchange && is_one_rank_) {
      machine.exchange(*piece.exchange);
    } else {
      const auto enqueue_on = [&machine](const auto& work) {
        DeviceKernels& kernels = machine.kernels();
        try {
          work(kernels);
        } catch (const RunError& error) {
          throw RunError(machine.text_of_fault(error.what()));
        }
      };
      for (const auto& work : piece.work) enqueue_on(work);
      if (piece.exchange)
        enqueue_on([&](DeviceKernels& kernels) {
          enqueue_share(kernels, members_of(call), static_cast<std::size_t>(piece.exchange->member), element_bytes);
        });
    }
    machine.end_call();
    if (closes) machine.end_group();
  }
}

std::vector<std::vector<CallTimes>> RecordedProgram::times(std::span<const CallTimes> of_world_calls) const {
  std::vector<std::vector<CallTimes>> times;
  for (const std::vector<CallTrack>& tracks : world_.tracks) times.emplace_back(tracks.size());
  for (std::size_t i = 0; i < world_.calls.size(); ++i) {
    const WorldCall& call = world_.calls[i];
    CallTimes& of = times[static_cast<std::size_t>(call.call)][static_cast<std::size_t>(call.track)];
    if (call.piece == 0) of = of_world_calls[i];
    of.end = std::max(of.end, of_world_calls[i].end);
  }
  return times;
}

}}  // namespace plumb::executor
