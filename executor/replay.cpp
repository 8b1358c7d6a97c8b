#include "executor/replay.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace plumb {
namespace {

/// A tensor that waits for its consumer: made here, or on its way.
struct Inbox {
  Tensor tensor;
  TicketPtr receive;
  std::size_t span = 0;  // of the RECV
};

/// Spans whose times are known only when the transfer, or the collective, is over.
struct OpenSpan {
  std::size_t span = 0;
  TicketPtr ticket;
};
struct OpenSum {
  std::size_t span = 0;
  CollectiveTicket ticket;
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
        sums_(plan.schedule.stages.size()) {}

  RankTimeline run() {
    timeline_.spans.reserve(actions_.size());
    timeline_.memory.push_back({now(), seat_.pool->live_bytes()});
    for (std::size_t position = 0; position < actions_.size(); ++position) {
      at_place(position, [&] {
        perform(position);
        const std::int64_t drawn = plan_.sums_gradients[static_cast<std::size_t>(seat_.place.pipeline)][position];
        if (drawn >= 0) join_sum(actions_[position].stage, static_cast<std::size_t>(drawn));
      });
    }
    for (const OpenSpan& open : sends_)
      at_place(open.span, [&] { close(open.span, seat_.transport->wait_sent(open.ticket)); });
    return std::move(timeline_);
  }

 private:
  using Slots = std::vector<Tensor>;

  /// Names rank and action in whatever goes wrong there. Spans and actions share their positions.
  template <class Work>
  void at_place(std::size_t position, Work work) {
    try {
      work();
    } catch (const RunAborted&) {
      throw;
    } catch (const std::exception& error) {
      throw RunError(fmt::format("rank {}{}, action {} ({}): {}", seat_.place.pipeline, other_coordinates(), position,
                                 to_text(actions_[position]), error.what()));
    }
  }

  /// " of replica 1, tensor rank 0"; only what there is more than one of.
  std::string other_coordinates() const {
    std::string text;
    const auto add = [&](const char* name, int coordinate, int count) {
      if (count > 1) text += fmt::format("{} {} {}", text.empty() ? " of" : ",", name, coordinate);
    };
    add("replica", seat_.place.data, plan_.grid.data);
    add("context rank", seat_.place.context, plan_.grid.context);
    add("tensor rank", seat_.place.tensor, plan_.grid.tensor);
    return text;
  }

  void perform(std::size_t position) {
    const Action& action = actions_[position];
    timeline_.spans.push_back({.start = now(), .end = now(), .action = action, .stream = stream_of(action.op)});
    switch (action.op) {
      case Op::kForward:
        return forward(action);
      case Op::kBackward:
      case Op::kInputGrad:
        return backward(action);
      case Op::kWeightGrad:
        return compute([&] { stage(action.stage).weight_grad(slice_of(action)); });
      case Op::kRecompute:
        return compute([&] { stage(action.stage).recompute(slice_of(action)); });
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
      case Op::kReduceGrad:  // joined where plan_.sums_gradients says; with one copy there is nothing to sum
      case Op::kUnshard:     // groups of one: plan_replay refuses others
      case Op::kReshard:
        return;
      case Op::kOffload:
      case Op::kEvict:
        return compute([&] { take_away(action); });
      case Op::kReload:
      case Op::kLoad:
        return compute([&] { bring_back(action); });
    }
  }

  void forward(const Action& action) {
    Tensor input = take(arrived_activations_[slot(action)]);
    Tensor output;
    compute([&] { output = stage(action.stage).forward(slice_of(action), std::move(input)); });
    hand_over(action, std::move(output), plan_.neighbors.successor, arrived_activations_, leaving_activations_);
  }

  void backward(const Action& action) {
    Tensor gradient = take(arrived_gradients_[slot(action)]);
    compute([&] {
      Stage& own = stage(action.stage);
      gradient = action.op == Op::kBackward ? own.backward(slice_of(action), std::move(gradient))
                                            : own.input_grad(slice_of(action), std::move(gradient));
    });
    hand_over(action, std::move(gradient), plan_.neighbors.predecessor, arrived_gradients_, leaving_gradients_);
  }

  /// Activations go to the host's memory, or to that of the partner rank p-1-r.
  void take_away(const Action& action) {
    std::vector<Tensor>& away = away_[slot(action)];
    away = stage(action.stage).take_activations(slice_of(action));
    const int partner = plan_.grid.pipeline - 1 - seat_.place.pipeline;
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

  /// Runs compute or a move inside the newest span, with the memory at its peak from its start and what remains from
  /// its end. The peak since the span before counts too: a partner may have come and gone.
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

  /// A tensor goes to the neighbouring stage: at once on the same rank, otherwise with the SEND that follows.
  void hand_over(const Action& action, Tensor tensor, const std::vector<int>& neighbors, std::vector<Inbox>& arrived,
                 Slots& leaving) {
    const int neighbor = neighbors[static_cast<std::size_t>(action.stage)];
    if (neighbor < 0) return;
    if (rank_of(neighbor) == seat_.place.pipeline)
      arrived[slot(neighbor, slice_of(action))].tensor = std::move(tensor);
    else
      leaving[slot(action)] = std::move(tensor);
  }

  /// The input of a compute action; waits for it if it comes from another rank.
  Tensor take(Inbox& inbox) {
    if (inbox.receive == nullptr) return std::move(inbox.tensor);
    Received received = seat_.transport->wait_received(inbox.receive);
    inbox.receive = nullptr;
    timeline_.spans[inbox.span].end = received.times.end - origin_;  // its start stays the moment it was issued
    return std::move(received.tensor);
  }

  void send(const Action& action, Slots& leaving, const std::vector<int>& neighbors) {
    const int neighbor = neighbors[static_cast<std::size_t>(action.stage)];
    const Channel channel{world_rank(seat_.place.pipeline), world_rank(rank_of(neighbor)), kind_of(action.op)};
    sends_.push_back(
        {timeline_.spans.size() - 1, seat_.transport->send(channel, {action.stage, action.microbatch, action.part},
                                                           std::move(leaving[slot(action)]))});
  }

  void receive(const Action& action, std::vector<Inbox>& arrived, const std::vector<int>& neighbors,
               std::int64_t elements) {
    const int neighbor = neighbors[static_cast<std::size_t>(action.stage)];
    const Channel channel{world_rank(rank_of(neighbor)), world_rank(seat_.place.pipeline), kind_of(action.op)};
    Inbox& inbox = arrived[slot(action)];
    inbox.span = timeline_.spans.size() - 1;
    inbox.receive =
        seat_.transport->receive(channel, {neighbor, action.microbatch, action.part}, seat_.pool->take(elements));
  }

  /// Joins the sum of a stage's gradients over its copies and replicas; `span` is drawn as the collective.
  void join_sum(int stage_number, std::size_t span) {
    const auto stage_index = static_cast<std::size_t>(stage_number);
    sums_[stage_index] = {span, seat_.groups->copies[stage_index]->start(all_reduce(stage(stage_number).gradients()))};
  }

  void finish_sum(int stage_number) {
    OpenSum& open = sums_[static_cast<std::size_t>(stage_number)];
    if (!open.ticket.is_open()) return;
    close(open.span, seat_.groups->copies[static_cast<std::size_t>(stage_number)]->wait(open.ticket));
    open.ticket = {};
  }

  void optimizer_step(int stage_number) {
    finish_sum(stage_number);
    for (std::size_t i = 0; i < plan_.tied.size(); ++i)
      if (plan_.tied[i].embedding == stage_number || plan_.tied[i].head == stage_number) sum_tied(i);
    compute([&] { stage(stage_number).optimizer_step(); });
  }

  /// Both ends of a tied table get embedding's + head's gradient. On one rank the first step of either does it for
  /// both.
  void sum_tied(std::size_t pair) {
    const TiedStages& tied = plan_.tied[pair];
    const int embedding_rank = rank_of(tied.embedding), head_rank = rank_of(tied.head);
    if (embedding_rank == head_rank) {
      if (!summed_tied_.insert(pair).second) return;
      finish_sum(tied.embedding);
      finish_sum(tied.head);
      const std::span<float> first = stage(tied.embedding).tied_gradients(ModelEnd::kEmbedding);
      const std::span<float> last = stage(tied.head).tied_gradients(ModelEnd::kHead);
      for (std::size_t i = 0; i < first.size(); ++i) last[i] = first[i] = first[i] + last[i];
      return;
    }
    const bool is_first = embedding_rank == seat_.place.pipeline;
    const std::span<float> values = is_first ? stage(tied.embedding).tied_gradients(ModelEnd::kEmbedding)
                                             : stage(tied.head).tied_gradients(ModelEnd::kHead);
    seat_.groups->tied[pair]->run(all_reduce(values));
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
  const std::size_t per_stage_;             // micro-batches and their slices
  std::vector<Inbox> arrived_activations_;  // [stage, micro-batch, slice], of the consumer
  std::vector<Inbox> arrived_gradients_;
  Slots leaving_activations_;  // [stage, micro-batch, slice], of the producer
  Slots leaving_gradients_;
  std::vector<std::vector<Tensor>> away_;  // [stage, micro-batch, slice] what OFFLOAD or EVICT has taken
  std::vector<OpenSum> sums_;              // [stage]
  std::vector<OpenSpan> sends_;
  std::set<std::size_t> summed_tied_;
  RankTimeline timeline_;
};

}  // namespace

ReplayGroups connect_groups(const ReplayPlan& plan, Transport& transport, const GridCoordinates& place,
                            const Clock& clock) {
  const ProcessGrid& grid = plan.grid;
  const std::vector<StagePlace>& stages = plan.schedule.stages;
  const int rank = world_rank_of(grid, place);
  const auto connect = [&](std::string name, std::vector<int> ranks) {
    return std::make_unique<Communicator>(transport, CommunicatorGroup{std::move(name), std::move(ranks)}, rank, clock);
  };
  ReplayGroups groups{.copies = std::vector<std::unique_ptr<Communicator>>(stages.size()),
                      .tied = std::vector<std::unique_ptr<Communicator>>(plan.tied.size())};
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    if (stages[stage].rank != place.pipeline) continue;
    std::vector<int> ranks;
    GridCoordinates member = place;
    for (member.data = 0; member.data < grid.data; ++member.data)
      for (member.context = 0; member.context < grid.context; ++member.context)
        for (const StagePlace& copy : stages) {
          if (copy.model_part != stages[stage].model_part) continue;
          member.pipeline = copy.rank;
          ranks.push_back(world_rank_of(grid, member));
        }
    if (ranks.size() > 1)
      groups.copies[stage] =
          connect(fmt::format("gradients of model part {}", stages[stage].model_part), std::move(ranks));
  }
  for (std::size_t pair = 0; pair < plan.tied.size(); ++pair) {
    GridCoordinates first = place, last = place;
    first.pipeline = stages[static_cast<std::size_t>(plan.tied[pair].embedding)].rank;
    last.pipeline = stages[static_cast<std::size_t>(plan.tied[pair].head)].rank;
    if (first == last || (first != place && last != place)) continue;
    groups.tied[pair] =
        connect(fmt::format("tied tables {}", pair), {world_rank_of(grid, first), world_rank_of(grid, last)});
  }
  return groups;
}

RankTimeline replay(const ReplayPlan& plan, const ReplaySeat& seat, SimTime origin) {
  return Replay(plan, seat, origin).run();
}

}  // namespace plumb
