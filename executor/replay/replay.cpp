#include "executor/replay/replay.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "executor/replay/copy_collectives.h"
#include "executor/replay/stage_messages.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {
namespace {

/// A span whose times are known only when its transfer is over.
struct OpenSpan {
  std::size_t span = 0;
  std::vector<TicketPtr> tickets;
};

/// One replay of one rank's list.
class Replay {
 public:
  Replay(const ReplayPlan& plan, const ReplaySeat& seat, SimTime origin)
      : plan_(plan),
        seat_(seat),
        origin_(origin),
        actions_(plan.schedule.ranks[static_cast<std::size_t>(seat.place.pipeline)]),
        slices_(static_cast<std::size_t>(plan.slices)),
        per_stage_(static_cast<std::size_t>(plan.schedule.microbatches) * slices_),
        arrived_activations_(plan.schedule.stages.size() * per_stage_),
        arrived_gradients_(arrived_activations_.size()),
        leaving_activations_(arrived_activations_.size()),
        leaving_gradients_(arrived_activations_.size()),
        away_(arrived_activations_.size()),
        messages_(plan, seat),
        copies_(plan, seat, [this](std::size_t span, const TransferTimes& times) { close(span, times); }) {}

  RankTimeline run() {
    timeline_.spans.reserve(actions_.size());
    timeline_.memory.push_back({now(), seat_.pool->live_bytes()});
    for (std::size_t position = 0; position < actions_.size(); ++position) {
      const PlacedReductions& reductions = reductions_at(position);
      if (!reductions.inside.empty())
        stage(actions_[position].stage).watch_buckets([&](int bucket) { reduce_inside(reductions, bucket); });
      if (begins_pair(position))
        perform_pair(position);
      else if (position == 0 || !begins_pair(position - 1))
        at_place(position, [&] { perform(position); });
      at_place(position, [&] {
        for (const std::size_t reduction : reductions.behind) reduce(reduction);
      });
    }
    if (!actions_.empty()) at_place(actions_.size() - 1, [&] { copies_.finish(); });
    for (const OpenSpan& open : sends_)
      at_place(open.span, [&] { close(open.span, messages_.wait_sent(open.tickets)); });
    return so_far();
  }

  RankTimeline so_far() { return std::move(timeline_); }

 private:
  using Slots = std::vector<Tensor>;

  /// Does `work` and names the rank and the action in any exception from it. Spans and actions have the same positions.
  template <class Work>
  void at_place(std::size_t position, Work work) {
    try {
      work();
    } catch (const RunAborted&) {
      throw;
    } catch (const std::exception& error) {
      throw RunError(fmt::format("rank {}{}, action {} ({}): {}", seat_.place.pipeline, other_coordinates(), position,
                                 to_text(actions_[position]), sentence_of(error)));
    }
  }

  /// Returns text like " of replica 1, tensor rank 0", with only those coordinates of which there is more than one.
  std::string other_coordinates() const {
    std::string text;
    const auto add = [&](const char* name, int coordinate, int count) {
      if (count > 1) text += fmt::format("{} {} {}", text.empty() ? " of" : ",", name, coordinate);
    };
    const StageMesh& mesh = mesh_of(plan_.grid, seat_.place.pipeline);
    add("replica", seat_.place.data, mesh.data);
    add("context rank", seat_.place.context, plan_.grid.grid.context);
    add("tensor rank", seat_.place.tensor, mesh.tensor);
    return text;
  }

  void open_span(const Action& action) {
    timeline_.spans.push_back({.start = now(), .end = now(), .action = action, .stream = stream_of(action.op)});
  }

  void perform(std::size_t position) {
    const Action& action = actions_[position];
    open_span(action);
    switch (action.op) {
      case Op::kForward:
      case Op::kBackward:
      case Op::kInputGrad:
      case Op::kWeightGrad:
      case Op::kRecompute: {
        Tensor input = input_of(action), output;
        compute([&] { output = pass(action, std::move(input)); });
        return deliver(action, std::move(output));
      }
      case Op::kSendActivation:
        return send(action, leaving_activations_, plan_.neighbors.successor);
      case Op::kSendGradient:
        return send(action, leaving_gradients_, plan_.neighbors.predecessor);
      case Op::kRecvActivation:
        return receive(action, arrived_activations_, plan_.neighbors.predecessor,
                       stage(action.stage).input_elements(action.part));
      case Op::kRecvGradient:
        return receive(action, arrived_gradients_, plan_.neighbors.successor,
                       stage(action.stage).output_elements(action.part));
      case Op::kOptimizerStep:
        return optimizer_step(action.stage);
      case Op::kReduceGrad:  // started by reduce(), where plan_.reductions places it
        return;
      case Op::kUnshard:
        return copies_.gather(action.stage, position);
      case Op::kReshard:
        return copies_.drop(action.stage);
      case Op::kOffload:
      case Op::kEvict:
        return compute([&] { take_away(action); });
      case Op::kReload:
      case Op::kLoad:
        return compute([&] { bring_back(action); });
      case Op::kSendWeights:
      case Op::kRecvWeights:
      case Op::kSendWeightGrad:
      case Op::kRecvWeightGrad:  // plan_replay refuses weights that travel
        return;
    }
  }

  /// True if an overlapped pair of passes begins at the position. An OPTIMIZER_STEP has its own turn in any case.
  bool begins_pair(std::size_t position) const {
    return actions_[position].overlaps_next && actions_[position].op != Op::kOptimizerStep &&
           actions_[position + 1].op != Op::kOptimizerStep;
  }

  void perform_pair(std::size_t position) {
    struct Part {
      std::size_t position;
      Tensor input, output;
    };
    std::array<Part, 2> parts{Part{.position = position}, Part{.position = position + 1}};
    for (const Part& part : parts) open_span(actions_[part.position]);
    for (Part& part : parts) at_place(part.position, [&] { part.input = input_of(actions_[part.position]); });
    const auto work_of = [this](Part& part) {
      return [this, &part] {
        at_place(part.position, [&] { part.output = pass(actions_[part.position], std::move(part.input)); });
      };
    };
    compute([&] { seat_.run_pair(actions_[position], actions_[position + 1], work_of(parts[0]), work_of(parts[1])); });
    Span& first = timeline_.spans[position];
    first.start = timeline_.spans.back().start;
    first.end = timeline_.spans.back().end;
    for (Part& part : parts) at_place(part.position, [&] { deliver(actions_[part.position], std::move(part.output)); });
  }

  /// Returns what a pass takes from a neighbouring stage, and waits for it and for the weights.
  Tensor input_of(const Action& action) {
    Tensor input;
    if (action.op == Op::kForward) input = take(arrived_activations_[slot(action)]);
    if (gives_input_gradient(action.op)) input = take(arrived_gradients_[slot(action)]);
    copies_.require_weights(action.stage);
    return input;
  }

  /// Runs F, B, I, W or R and returns what the neighbouring stage takes of it.
  Tensor pass(const Action& action, Tensor input) {
    Stage& own = stage(action.stage);
    const MicrobatchSlice of = slice_of(action);
    switch (action.op) {
      case Op::kForward:
        return own.forward(of, std::move(input));
      case Op::kBackward:
        return own.backward(of, std::move(input));
      case Op::kInputGrad:
        return own.input_grad(of, std::move(input));
      case Op::kWeightGrad:
        own.weight_grad(of);
        return {};
      default:
        own.recompute(of);
        return {};
    }
  }

  void deliver(const Action& action, Tensor output) {
    const bool is_forward = action.op == Op::kForward;
    if (!is_forward && !gives_input_gradient(action.op)) return;
    hand_over(action, std::move(output), is_forward ? plan_.neighbors.successor : plan_.neighbors.predecessor,
              is_forward ? arrived_activations_ : arrived_gradients_,
              is_forward ? leaving_activations_ : leaving_gradients_);
  }

  /// Copies activations to the host's memory, or to the memory of the partner rank p-1-r.
  void take_away(const Action& action) {
    std::vector<Tensor>& away = away_[slot(action)];
    away = stage(action.stage).take_activations(slice_of(action));
    const int partner = plan_.grid.grid.pipeline - 1 - seat_.place.pipeline;
    for (Tensor& tensor : away)
      tensor = action.op == Op::kOffload ? seat_.host_pool->take_copy(tensor)
                                         : seat_.transport->copy_to(world_rank(partner), tensor);
  }

  void bring_back(const Action& action) {
    std::vector<Tensor> away = std::move(away_[slot(action)]);
    for (Tensor& tensor : away)
      tensor = action.op == Op::kReload ? seat_.pool->take_copy(tensor)
                                        : seat_.transport->copy_to(world_rank(seat_.place.pipeline), tensor);
    stage(action.stage).put_activations(slice_of(action), std::move(away));
  }

  /// Runs compute or a copy inside the newest span. The memory samples are the peak at the span's start and the live
  /// bytes at its end. The peak since the span before counts too, because a partner's activations may have come and
  /// gone.
  template <class Work>
  void compute(Work work) {
    Span& span = timeline_.spans.back();
    const std::int64_t peak_before = seat_.pool->peak_bytes();
    seat_.pool->reset_peak();
    span.start = now();
    work();
    span.end = now();
    timeline_.memory.push_back({span.start, std::max(peak_before, seat_.pool->peak_bytes())});
    timeline_.memory.push_back({span.end, seat_.pool->live_bytes()});
  }

  /// Passes a tensor to the neighbouring stage: at once on the same rank, otherwise with the SEND that follows.
  void hand_over(const Action& action, Tensor tensor, const std::vector<int>& neighbors, std::vector<Inbox>& arrived,
                 Slots& leaving) {
    const int neighbor = neighbors[static_cast<std::size_t>(action.stage)];
    if (neighbor < 0) return;
    if (rank_of(neighbor) == seat_.place.pipeline)
      arrived[slot(neighbor, slice_of(action))].tensor = std::move(tensor);
    else
      leaving[slot(action)] = std::move(tensor);
  }

  /// Returns the input of a compute action; waits for it if it comes from another rank.
  Tensor take(Inbox& inbox) {
    const bool is_on_its_way = inbox.is_on_its_way();
    Received received = messages_.take(inbox);
    if (is_on_its_way)
      timeline_.spans[inbox.span].end = received.times.end - origin_;  // the start stays the moment of issue
    return std::move(received.tensor);
  }

  void send(const Action& action, Slots& leaving, const std::vector<int>& neighbors) {
    const int neighbor = neighbors[static_cast<std::size_t>(action.stage)];
    sends_.push_back({timeline_.spans.size() - 1, messages_.send(rank_of(neighbor), kind_of(action.op),
                                                                 {action.stage, action.microbatch, action.part},
                                                                 std::move(leaving[slot(action)]))});
  }

  void receive(const Action& action, std::vector<Inbox>& arrived, const std::vector<int>& neighbors,
               std::int64_t elements) {
    const int neighbor = neighbors[static_cast<std::size_t>(action.stage)];
    Inbox& inbox = arrived[slot(action)];
    inbox.span = timeline_.spans.size() - 1;
    messages_.receive(rank_of(neighbor), kind_of(action.op), {neighbor, action.microbatch, action.part}, elements,
                      inbox);
  }

  const PlacedReductions& reductions_at(std::size_t position) const {
    return plan_.reductions[static_cast<std::size_t>(seat_.place.pipeline)][position];
  }

  void reduce(std::size_t reduction) { copies_.reduce(actions_[reduction].stage, actions_[reduction].part, reduction); }

  void reduce_inside(const PlacedReductions& reductions, int bucket) {
    for (const std::size_t reduction : reductions.inside)
      if (actions_[reduction].part == bucket) reduce(reduction);
  }

  void optimizer_step(int stage_number) {
    const StepScale scale = copies_.before_step(stage_number);
    compute([&] { stage(stage_number).optimizer_step(scale); });
  }

  void close(std::size_t span, const TransferTimes& times) {
    timeline_.spans[span].start = times.start - origin_;
    timeline_.spans[span].end = times.end - origin_;
  }

  static MessageKind kind_of(Op op) {
    return op == Op::kSendActivation || op == Op::kRecvActivation ? MessageKind::kActivation : MessageKind::kGradient;
  }
  SimTime now() const { return seat_.clock() - origin_; }
  Stage& stage(int number) const { return *seat_.stages[static_cast<std::size_t>(number)]; }
  int rank_of(int stage_number) const { return plan_.schedule.stages[static_cast<std::size_t>(stage_number)].rank; }
  int world_rank(int pipeline_rank) const {
    GridCoordinates place = seat_.place;
    place.pipeline = pipeline_rank;
    return world_rank_of(plan_.grid, place);
  }
  static MicrobatchSlice slice_of(const Action& action) { return {action.microbatch, action.part}; }
  std::size_t slot(int stage_number, MicrobatchSlice of) const {
    return static_cast<std::size_t>(stage_number) * per_stage_ + static_cast<std::size_t>(of.microbatch) * slices_ +
           static_cast<std::size_t>(of.slice);
  }
  std::size_t slot(const Action& action) const { return slot(action.stage, slice_of(action)); }

  const ReplayPlan& plan_;
  const ReplaySeat& seat_;
  const SimTime origin_;
  const std::vector<Action>& actions_;
  const std::size_t slices_;
  const std::size_t per_stage_;             // slots of a stage: its micro-batches times their slices
  std::vector<Inbox> arrived_activations_;  // [stage, micro-batch, slice], by consumer
  std::vector<Inbox> arrived_gradients_;
  Slots leaving_activations_;  // [stage, micro-batch, slice], by producer
  Slots leaving_gradients_;
  std::vector<std::vector<Tensor>> away_;  // [stage, micro-batch, slice] tensors that OFFLOAD or EVICT has taken
  StageMessages messages_;
  std::vector<OpenSpan> sends_;
  CopyCollectives copies_;
  RankTimeline timeline_;
};

}  // namespace

RankTimeline replay(const ReplayPlan& plan, const ReplaySeat& seat, SimTime origin) {
  Replay replay(plan, seat, origin);
  try {
    return replay.run();
  } catch (const std::exception&) {
    if (seat.interrupted) seat.interrupted(replay.so_far());
    throw;
  }
}

}}  // namespace plumb::executor
