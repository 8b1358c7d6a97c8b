#pragma once
// A replay as it is enqueued: the recorded pieces of all calls of the ranks that are here, in the order of the world's
// program.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/machines/device_machine.h"
#include "executor/program/calls/recorded_calls.h"
#include "executor/program/device/world_calls.h"

namespace plumb { inline namespace executor {

class RecordedProgram {
 public:
  /// is_one_rank: the other ranks are on machines of their own.
  RecordedProgram(std::size_t calls, bool is_one_rank) : is_one_rank_(is_one_rank), tracks_(calls), pieces_(calls) {}

  /// Adds a call of the pipeline's program on one rank. Ranks come in ascending order.
  void add(std::size_t call, CallTrack track, std::vector<RecordedPiece> pieces);

  /// Makes the world's program, when all calls are there. names: [call], for profilers.
  void settle(const DeviceProgram& pipeline, int ranks, std::vector<std::string> names);

  const WorldProgram& world() const { return world_; }

  /// Enqueues a replay. element_bytes: size of an element as activations are stored.
  void enqueue(DeviceMachine& machine, std::int64_t element_bytes) const;

  /// [call][track] times from the first piece's start to the last piece's end.
  std::vector<std::vector<CallTimes>> times(std::span<const CallTimes> of_world_calls) const;

 private:
  const RecordedPiece& piece_of(const WorldCall& call) const;
  std::vector<const DeviceExchange*> members_of(const WorldCall& call) const;

  bool is_one_rank_;
  std::vector<std::vector<CallTrack>> tracks_;                   // [call][track] until all are there
  std::vector<std::vector<std::vector<RecordedPiece>>> pieces_;  // [call][track][piece]
  WorldProgram world_;
  std::vector<std::string> names_;
  std::vector<bool> with_next_;  // [call] of the pipeline's program
};

}}  // namespace plumb::executor
