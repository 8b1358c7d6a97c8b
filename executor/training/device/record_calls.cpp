#include "executor/training/device/record_calls.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "executor/program/calls/interleaved_pieces.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

/// Calls inside which the reduction of a bucket starts.
std::set<std::int32_t> hosts_of_buckets(const DeviceProgram& program) {
  std::set<std::int32_t> hosts;
  for (const DeviceCall& call : program.calls)
    for (const DeviceWait& wait : call.waits)
      if (wait.bucket != DeviceWait::kEnd) hosts.insert(wait.call);
  return hosts;
}

class CallsRecording {
 public:
  CallsRecording(const RecordingInputs& inputs, DeviceGroupTable& groups)
      : in_(inputs),
        groups_(groups),
        world_(inputs.world),
        schedule_(inputs.training.replay.schedule),
        messages_(inputs.training, inputs.world, inputs.stages),
        hosts_of_buckets_(hosts_of_buckets(inputs.program)),
        recorded_(inputs.program.calls.size(), inputs.world.is_one_rank()) {}

  RecordedProgram record() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < in_.calls.size(); ++i) {
      const Action& first = in_.calls[i].front().action;
      names.push_back(to_text(first));
      if (i == in_.joint_call)
        record_joint_step(i);
      else if (world_.is_one_rank() && is_send(first.op))
        record_message(i);
      else
        record_call(i);
    }
    recorded_.settle(in_.program, world_.ranks(), std::move(names));
    return std::move(recorded_);
  }

 private:
  bool is_here(std::size_t pipeline, int lane) const {
    return world_.is_here(world_.rank_of(static_cast<int>(pipeline), lane));
  }
  std::byte* address(ArenaPlace place, int lane) const { return in_.arenas.address(place, lane); }
  CallTrack track_of(int rank, DeviceStream stream) const {
    return {.rank = rank, .lane = world_.track_lane(rank), .stream = stream, .pieces = {}};
  }

  /// Records a call on all ranks that are here: those of one pipeline rank, or of copies of a stage that do something
  /// together.
  void record_call(std::size_t index) {
    std::map<int, std::vector<CallRecorder>> parts;  // by rank of the world; two for a pair whose actions take turns
    for (int lane = 0; lane < world_.lanes(); ++lane)
      for (const PlacedAction& placed : in_.calls[index]) {
        if (!is_here(static_cast<std::size_t>(placed.rank), lane)) continue;
        std::vector<CallRecorder>& own = parts[world_.rank_of(placed.rank, lane)];
        if (own.empty() || takes_turns(placed)) own.emplace_back();
        perform(own.back(), placed, index, lane);
      }
    std::map<int, std::vector<RecordedPiece>> pieces;
    std::size_t most = 0;
    for (auto& [rank, own] : parts) {
      pieces[rank] = own.size() == 1 ? own[0].take() : interleaved_pieces(own[0].take(), own[1].take());
      most = std::max(most, pieces[rank].size());
    }
    for (auto& [rank, own] : pieces) {
      if (in_.calls[index].front().action.op == Op::kOptimizerStep) own.resize(most);  // shares have parts as they are
      recorded_.add(index, track_of(rank, in_.program.calls[index].stream), std::move(own));
    }
  }

  /// True for the second action of an overlapped pair whose passes take turns.
  bool takes_turns(const PlacedAction& placed) const {
    const ActionPlace at = place_of(ids_, placed.id);
    if (at.position == 0) return false;
    const Action& before =
        schedule_.ranks[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(at.position) - 1];
    return before.overlaps_next && interleaves(in_.training.replay.policy, before, placed.action);
  }

  void record_joint_step(std::size_t index) {
    const DeviceCall& call = in_.program.calls[index];
    struct Part {
      CallTrack track;
      std::vector<std::vector<RecordedPiece>> phases;
    };
    std::vector<Part> parts;
    for (std::size_t pipeline = 0; pipeline < schedule_.ranks.size(); ++pipeline)
      for (int lane = 0; lane < world_.lanes(); ++lane) {
        if (!in_.joint.joins(pipeline) || !is_here(pipeline, lane)) continue;
        const int rank = world_.rank_of(static_cast<int>(pipeline), lane);
        parts.push_back({.track = track_of(rank, call.stream), .phases = in_.joint.phases(pipeline, lane)});
        CallRecorder own;
        if (static_cast<std::size_t>(call.rank) == pipeline) perform(own, in_.calls[index].front(), index, lane);
        parts.back().phases.push_back(own.take());
      }
    std::ranges::sort(parts, {}, [](const Part& part) { return part.track.rank; });
    for (std::size_t phase = 0; !parts.empty() && phase < parts.front().phases.size(); ++phase) {
      std::size_t most = 0;
      for (const Part& part : parts) most = std::max(most, part.phases[phase].size());
      for (Part& part : parts) part.phases[phase].resize(most);
    }
    for (Part& part : parts) {
      std::vector<RecordedPiece> pieces;
      for (std::vector<RecordedPiece>& phase : part.phases) {
        const auto before = static_cast<std::int32_t>(pieces.size());
        for (RecordedPiece& piece : phase)
          for (std::int32_t& former : piece.behind) former += before;
        std::ranges::move(phase, std::back_inserter(pieces));
      }
      recorded_.add(index, std::move(part.track), std::move(pieces));
    }
  }

  /// Records the ends of a message between machines that are here.
  void record_message(std::size_t index) {
    const PlacedAction& send = in_.calls[index].front();
    const DeviceMessage message = messages_.message_of(send);
    const bool forward = message.kind == MessageKind::kActivation;
    CallRecorder sends, receives;
    int source = -1, destination = -1;
    for (const MessagePiece& piece : messages_.pieces(message)) {
      DeviceExchange exchange{.communicator = groups_.channel(message.kind, piece.source, piece.destination),
                              .elements = piece.words};  // all ranks have asked for it
      if (!world_.is_here(piece.source) && !world_.is_here(piece.destination)) continue;
      if (world_.is_here(piece.source)) {
        source = piece.source;
        exchange.kind = CollectiveKind::kSend;
        exchange.peer = 1;
        exchange.values = address(send.incoming, 0) + 4 * piece.from;
        sends.exchange(exchange);
      } else {
        destination = piece.destination;
        exchange.kind = CollectiveKind::kReceive;
        exchange.member = 1;
        exchange.peer = 0;
        exchange.values = address(send.outgoing, 0) + 4 * piece.to;
        receives.exchange(exchange);
      }
    }
    // A rank that is sent nothing gets the message from its tensor group: the buffer that had the place is over with
    // this call on it, too.
    if (const int there = world_.rank_of(message.to, 0); world_.is_here(there)) destination = there;
    const auto add = [&](int rank, DeviceStream stream, CallRecorder& recorder) {
      if (rank >= 0) recorded_.add(index, track_of(rank, stream), recorder.take());
    };
    add(source, in_.program.calls[index].stream, sends);
    add(destination, forward ? DeviceStream::kReceiveActivation : DeviceStream::kReceiveGradient, receives);
  }

  /// Records a message between ranks that share a device: copies of its sender.
  void send_here(CallRecorder& recorder, const PlacedAction& send, int lane) const {
    const int own = world_.rank_of(send.rank, lane);
    recorder.open_piece();
    for (const MessagePiece& piece : messages_.pieces(messages_.message_of(send)))
      if (piece.source == own)
        recorder.copy(address(send.outgoing, world_.lane_of(piece.destination)) + 4 * piece.to,
                      address(send.incoming, lane) + 4 * piece.from, 4 * piece.words);
  }

  /// Copies activations of a micro-batch between their places and those where they are away.
  void move(CallRecorder& recorder, const PlacedAction& placed, int lane) const {
    std::byte* away = address(placed.away, lane);
    for (const ArenaPlace& place : {placed.early, placed.late}) {
      if (place.rank < 0) continue;
      std::byte* const here = address(place, lane);
      if (takes_away(placed.action.op))
        recorder.copy(away, here, place.bytes);
      else
        recorder.copy(here, away, place.bytes);
      away += place.bytes;
    }
  }

  DevicePass pass_of(const PlacedAction& placed, std::size_t call, int lane, const DeviceStage& stage) const {
    const Action& action = placed.action;
    const bool is_backward = gives_input_gradient(action.op) || gives_weight_gradient(action.op);
    std::byte* const workspace = address(placed.workspace, lane);
    return {.microbatch = action.microbatch,
            .slice = has_microbatch(action.op) ? action.part : 0,
            .recomputes = placed.recomputes,
            .completes_buckets = hosts_of_buckets_.contains(static_cast<std::int32_t>(call)),
            .early = address(placed.early, lane),
            .late = address(placed.late, lane),
            .rebuilt_early = address(placed.rebuilt_early, lane),
            .rebuilt_late = address(placed.rebuilt_late, lane),
            .workspace = workspace == nullptr ? nullptr : workspace + stage.parameters().moved_bytes(is_backward),
            .incoming = address(placed.incoming, lane),
            .outgoing = address(placed.outgoing, lane),
            .parameters = {.weights = address(placed.gathered.rank >= 0 ? placed.gathered : placed.weights, lane),
                           .whole_gradients = reinterpret_cast<float*>(address(placed.gradients, lane)),
                           .moved = workspace},
            .sequences = address(placed.sequences, lane),
            .sequence_gradients = reinterpret_cast<float*>(address(placed.sequence_gradients, lane))};
  }

  void perform(CallRecorder& recorder, const PlacedAction& placed, std::size_t call, int lane) {
    const Action& action = placed.action;
    const DeviceStage& stage = in_.stages.at(lane, static_cast<std::size_t>(action.stage));
    std::byte* const weights = address(placed.gathered.rank >= 0 ? placed.gathered : placed.weights, lane);
    const DevicePass pass = pass_of(placed, call, lane, stage);
    const CommunicatorSeat& tensor = groups_.tensor(world_.rank_of(placed.rank, lane));
    if (const auto completion = messages_.completion(placed, tensor, address(placed.incoming, lane)))
      recorder.exchange(*completion);
    if (placed.opens_gradients) stage.parameters().open_gradients(recorder, pass.parameters.whole_gradients);
    if (placed.opens_sequence_gradients) stage.open_sequence_gradients(recorder, pass.sequence_gradients);
    switch (action.op) {
      case Op::kForward:
        return stage.forward(recorder, pass);
      case Op::kRecompute:
        return stage.recompute(recorder, pass);
      case Op::kBackward:
        return stage.backward(recorder, pass);
      case Op::kInputGrad:
        return stage.input_grad(recorder, pass);
      case Op::kWeightGrad:
        return stage.weight_grad(recorder, pass);
      case Op::kSendActivation:
      case Op::kSendGradient:
        return send_here(recorder, placed, lane);
      case Op::kReduceGrad:
        if (is_reduced_here(placed.id))
          stage.parameters().reduce(recorder, pass.parameters.whole_gradients, static_cast<std::size_t>(action.part));
        return;
      case Op::kUnshard:
        return stage.parameters().gather(recorder, weights);
      case Op::kOffload:
      case Op::kReload:
      case Op::kEvict:
      case Op::kLoad:
        return move(recorder, placed, lane);
      case Op::kOptimizerStep:
        return stage.optimizer_step(
            recorder, placed.step, weights,
            in_.joint.measure(static_cast<std::size_t>(schedule_.stages[static_cast<std::size_t>(action.stage)].rank),
                              lane),
            address(placed.workspace, lane));
      default:
        return;  // RESHARD: its place in the arena is free
    }
  }

  /// True if a REDUCE_GRAD sums a bucket: where several stand before one step, the last of them does.
  bool is_reduced_here(std::int32_t id) const {
    const ActionPlace at = place_of(ids_, id);
    const auto position = static_cast<std::size_t>(at.position);
    const auto& placed = in_.training.replay.reductions[static_cast<std::size_t>(at.rank)];
    for (std::size_t anchor = 0; anchor < placed.size(); ++anchor) {
      const auto stands = [&](const std::vector<std::size_t>& list) {
        return std::ranges::find(list, position) != list.end();
      };
      if (stands(placed[anchor].inside)) return true;  // its call waits for the bucket, wherever that is in the list
      if (!stands(placed[anchor].behind)) continue;
      if (anchor > position)
        throw SpecError(
            fmt::format("a device does not sum gradients later than REDUCE_GRAD stands ({} of rank {}): "
                        "put it behind the last gradient, or use --backend cpu",
                        to_text(schedule_.ranks[static_cast<std::size_t>(at.rank)][position]), at.rank));
      return true;
    }
    return false;
  }

  const RecordingInputs& in_;
  DeviceGroupTable& groups_;
  const DeviceWorld& world_;
  const Schedule& schedule_;
  const DeviceMessages messages_;
  const ActionIds ids_ = action_ids(schedule_);
  const std::set<std::int32_t> hosts_of_buckets_;
  RecordedProgram recorded_;
};

}  // namespace

RecordedProgram record_calls(const RecordingInputs& inputs, DeviceGroupTable& groups) {
  return CallsRecording(inputs, groups).record();
}

}}  // namespace plumb::executor
