// How a run records its calls: each action of a rank as kernels over places in its arena.

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "executor/device/device_run.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {

void DeviceRun::record() {
  recorded_.emplace(program_.calls.size(), world_.is_one_rank());
  for (const DeviceCall& call : program_.calls)
    for (const DeviceWait& wait : call.waits)
      if (wait.bucket != DeviceWait::kEnd) hosts_of_buckets_.insert(wait.call);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < program_.calls.size(); ++i) {
    names.push_back(to_text(calls_[i].front().action));
    if (i == joint_step_) {
      record_joint_step(i);
      continue;
    }
    if (!world_.is_one_rank() || !is_send(calls_[i].front().action.op)) {
      record_call(i);
      continue;
    }
    record_message(i);
  }
  recorded_->settle(program_, world_.ranks(), std::move(names));
}

void DeviceRun::record_call(std::size_t index) {
  std::map<int, CallRecorder> parts;  // by rank of the world
  for (int lane = 0; lane < world_.lanes(); ++lane)
    for (const PlacedAction& placed : calls_[index]) {
      if (!is_here(static_cast<std::size_t>(placed.rank), lane)) continue;
      perform(parts[world_.rank_of(placed.rank, lane)], placed, index, lane);
    }
  std::map<int, std::vector<RecordedPiece>> pieces;
  std::size_t most = 0;
  for (auto& [rank, recorder] : parts) most = std::max(most, (pieces[rank] = recorder.take()).size());
  for (auto& [rank, own] : pieces) {
    if (calls_[index].front().action.op == Op::kOptimizerStep) own.resize(most);  // shares have parts as they are
    recorded_->add(
        index, {.rank = rank, .lane = world_.track_lane(rank), .stream = program_.calls[index].stream, .pieces = {}},
        std::move(own));
  }
}

void DeviceRun::move(CallRecorder& kernels, const PlacedAction& placed, int lane) const {
  std::byte* away = address(placed.away, lane);
  for (const ArenaPlace& place : {placed.early, placed.late}) {
    if (place.rank < 0) continue;
    std::byte* const here = address(place, lane);
    if (takes_away(placed.action.op))
      kernels.copy(away, here, place.bytes);
    else
      kernels.copy(here, away, place.bytes);
    away += place.bytes;
  }
}

void DeviceRun::perform(CallRecorder& kernels, const PlacedAction& placed, std::size_t call, int lane) {
  const Action& action = placed.action;
  const DeviceStage& stage = lane_stages(lane)[static_cast<std::size_t>(action.stage)];
  std::byte* weights = address(placed.gathered.rank >= 0 ? placed.gathered : placed.weights, lane);
  const bool is_backward = gives_input_gradient(action.op) || gives_weight_gradient(action.op);
  std::byte* const workspace = address(placed.workspace, lane);
  MovedLayers moves;
  const DevicePass pass{.microbatch = action.microbatch,
                        .slice = has_microbatch(action.op) ? action.part : 0,
                        .recorder = &kernels,
                        .early = address(placed.early, lane),
                        .late = address(placed.late, lane),
                        .rebuilt_early = address(placed.rebuilt_early, lane),
                        .rebuilt_late = address(placed.rebuilt_late, lane),
                        .workspace = workspace == nullptr ? nullptr : workspace + stage.moved_bytes(is_backward),
                        .incoming = address(placed.incoming, lane),
                        .outgoing = address(placed.outgoing, lane),
                        .weights = weights,
                        .whole_gradients = reinterpret_cast<float*>(address(placed.gradients, lane)),
                        .sequences = address(placed.sequences, lane),
                        .sequence_gradients = reinterpret_cast<float*>(address(placed.sequence_gradients, lane)),
                        .moved = workspace,
                        .moves = &moves};
  CallRecorder* buckets = hosts_of_buckets_.contains(static_cast<std::int32_t>(call)) ? &kernels : nullptr;
  complete_message(kernels, placed, lane);
  if (placed.opens_gradients) stage.open_gradients(kernels, pass);
  if (placed.opens_sequence_gradients) stage.open_sequence_gradients(kernels, pass);
  switch (action.op) {
    case Op::kForward:
      return stage.forward(kernels, pass);
    case Op::kRecompute:
      return stage.recompute(kernels, pass);
    case Op::kBackward:
      return stage.backward(kernels, pass, placed.recomputes, buckets);
    case Op::kInputGrad:
      return stage.input_grad(kernels, pass, placed.recomputes);
    case Op::kWeightGrad:
      return stage.weight_grad(kernels, pass, buckets);
    case Op::kSendActivation:
    case Op::kSendGradient:
      return send_here(kernels, placed, lane);
    case Op::kReduceGrad:
      if (is_reduced_here(placed.id)) stage.reduce(kernels, pass, static_cast<std::size_t>(action.part));
      return;
    case Op::kUnshard:
      return stage.gather(kernels, weights);
    case Op::kOffload:
    case Op::kReload:
    case Op::kEvict:
    case Op::kLoad:
      return move(kernels, placed, lane);
    case Op::kOptimizerStep:
      return stage.optimizer_step(
          kernels, placed.step, weights,
          measure(static_cast<std::size_t>(schedule_.stages[static_cast<std::size_t>(action.stage)].rank), lane),
          workspace);
    default:
      return;  // RESHARD: its place in the arena is free
  }
}

bool DeviceRun::is_reduced_here(std::int32_t id) const {
  const ActionPlace at = place_of(ids_, id);
  const auto position = static_cast<std::size_t>(at.position);
  const auto& placed = training_.replay.reductions[static_cast<std::size_t>(at.rank)];
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

}}  // namespace plumb::executor
