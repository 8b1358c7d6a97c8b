#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "executor/nccl/launch_order.h"
#include "executor/nccl/message_calls.h"
#include "executor/nccl/message_pairs.h"
#include "executor/nccl/nccl_order.h"
#include "executor/replay_groups.h"

namespace plumb { inline namespace executor {
namespace {

using RankCallIds = std::vector<std::int32_t>;

/// One rank's list, action by action, as executor/replay.cpp performs them.
class RankPlanner {
 public:
  RankPlanner(const OrderInputs& inputs, int rank, NcclCommunicators& communicators)
      : in_(inputs),
        replay_(inputs.plan.replay),
        rank_(rank),
        place_(coordinates_of(replay_.grid, rank)),
        communicators_(communicators),
        slices_(static_cast<std::size_t>(replay_.slices)),
        per_stage_(static_cast<std::size_t>(replay_.schedule.microbatches) * slices_),
        per_stage_state_(replay_.schedule.stages.size()),
        is_rebuilt_(per_stage_ * replay_.schedule.stages.size(), false),
        messages_(inputs, rank, calls_, communicators) {
    const auto along = [&](const char* name, Group group) {
      return seat_of(name, group_ranks(replay_.grid, group, rank));
    };
    seats_[static_cast<std::size_t>(ExchangeGroup::kTensor)] = along("tensor group", Group::kTensor);
    seats_[static_cast<std::size_t>(ExchangeGroup::kContext)] = along("context group", Group::kContext);
    seats_[static_cast<std::size_t>(ExchangeGroup::kExpert)] = along("expert group", Group::kExpert);
    if (replay_.policy.agrees) everyone_ = seat_of("all ranks", everyone_of(replay_.grid).ranks);
    const ReplayGroupRanks groups = replay_group_ranks(replay_, place_);
    const auto seats = [&](const std::vector<CommunicatorGroup>& all, std::vector<NcclSeat>& into) {
      for (const CommunicatorGroup& group : all) into.push_back(seat_of(group.name, group.ranks));
    };
    seats(groups.copies, copies_);
    seats(groups.expert_copies, expert_copies_);
    seats(groups.tied, tied_);
  }

  NcclRank plan() {
    const std::vector<Action>& actions = own_actions();
    for (std::size_t position = 0; position < actions.size(); ++position) {
      calls_.begin_action(static_cast<std::int32_t>(position));
      inside_ = &replay_.reductions[static_cast<std::size_t>(place_.pipeline)][position].inside;
      perform(position);
      for (const std::size_t reduction : replay_.reductions[static_cast<std::size_t>(place_.pipeline)][position].behind)
        reduce(actions[reduction]);
    }
    for (StageState& state : per_stage_state_) {
      calls_.await(state.reductions);
      calls_.await(state.gather);
    }
    calls_.compute();
    return calls_.take();
  }

 private:
  struct Ahead {
    std::size_t layer = 0;
    RankCallIds calls;
  };
  struct StageState {
    RankCallIds reductions, gather;
    std::array<std::optional<Ahead>, 2> ahead;  // by part
  };

  // Who is where.

  const std::vector<Action>& own_actions() const {
    return replay_.schedule.ranks[static_cast<std::size_t>(place_.pipeline)];
  }
  NcclSeat seat_of(const std::string& name, const std::vector<int>& ranks) {
    if (ranks.size() <= 1) return {};
    const auto member = std::ranges::find(ranks, rank_) - ranks.begin();
    return {communicators_.number_of(name, ranks), static_cast<std::int32_t>(member),
            static_cast<std::int32_t>(ranks.size())};
  }
  const NcclSeat& seat(ExchangeGroup group, int stage) const {
    if (group == ExchangeGroup::kCopies) return copies_[static_cast<std::size_t>(stage)];
    if (group == ExchangeGroup::kExpertCopies) return expert_copies_[static_cast<std::size_t>(stage)];
    return seats_[static_cast<std::size_t>(group)];
  }
  const StageExchanges& stage(int number) const { return in_.stages[static_cast<std::size_t>(number)]; }
  StageState& state(int number) { return per_stage_state_[static_cast<std::size_t>(number)]; }
  int pipeline_rank_of(int stage) const { return replay_.schedule.stages[static_cast<std::size_t>(stage)].rank; }
  std::size_t slot(const Action& action) const {
    return static_cast<std::size_t>(action.stage) * per_stage_ + static_cast<std::size_t>(action.microbatch) * slices_ +
           static_cast<std::size_t>(action.part);
  }
  bool is_here(int stage) const { return pipeline_rank_of(stage) == place_.pipeline; }

  // Actions.

  void perform(std::size_t position) {
    const Action& action = own_actions()[position];
    switch (action.op) {
      case Op::kForward:
        messages_.take(action, MessageKind::kActivation, seat(ExchangeGroup::kTensor, action.stage));
        require_weights(action.stage);
        forward(action);
        return messages_.made(action, MessageKind::kActivation);
      case Op::kBackward:
      case Op::kInputGrad:
        messages_.take(action, MessageKind::kGradient, seat(ExchangeGroup::kTensor, action.stage));
        require_weights(action.stage);
        backward(action, action.op == Op::kBackward);
        return messages_.made(action, MessageKind::kGradient);
      case Op::kWeightGrad:
        require_weights(action.stage);
        for (std::size_t layer = layers(action.stage); layer-- > 0;) weight_grad(layer, action, true);
        return calls_.compute();
      case Op::kRecompute:
        require_weights(action.stage);
        for (std::size_t group = 0; group < layers(action.stage); group += group_size(action.stage))
          rebuild_group(group, action);
        is_rebuilt_[slot(action)] = true;
        return calls_.compute();
      case Op::kSendActivation:
      case Op::kSendGradient:
      case Op::kRecvActivation:
      case Op::kRecvGradient:
        return messages_.message(position);
      case Op::kOptimizerStep:
        return optimizer_step(action.stage);
      case Op::kUnshard:
        state(action.stage).gather.clear();
        return start_parts(action.stage, state(action.stage).gather,
                           [](const PartExchanges& part) { return part.gather(); });
      case Op::kReshard:
        return require_weights(action.stage);
      case Op::kReduceGrad:  // started where ReplayPlan::reductions says
        return;
      case Op::kOffload:
      case Op::kReload:
      case Op::kEvict:
      case Op::kLoad:
        return calls_.compute();
    }
  }

  void require_weights(int number) {
    calls_.await(state(number).gather);
    state(number).gather.clear();
  }

  template <class List>
  void start_parts(int number, RankCallIds& started, List list) {
    for (const PartExchanges& part : stage(number).parts)
      for (const LayerExchange& exchange : list(part)) calls_.start(seat(exchange.group, number), exchange, started);
  }

  // A stage's passes, as executor/cpu/stage.cpp runs them.

  std::size_t layers(int number) const { return stage(number).layers.front().size(); }
  std::size_t group_size(int number) const {
    return in_.spec.rebuild == Rebuild::kLayers ? static_cast<std::size_t>(std::max(1, in_.spec.rebuild_layers))
                                                : std::max<std::size_t>(1, layers(number));
  }
  bool rebuilds(const Action& action) const {
    if (in_.spec.rebuild == Rebuild::kNothing) return false;
    return in_.spec.rebuild_which == RebuildWhich::kAll ||
           in_.rebuilt[static_cast<std::size_t>(action.stage)][static_cast<std::size_t>(action.microbatch)];
  }

  void pass(std::size_t layer, const Action& action, int number) {
    const auto& passes = stage(action.stage).layers[static_cast<std::size_t>(action.part)][layer];
    for (const LayerExchange& exchange : passes[static_cast<std::size_t>(number)])
      calls_.exchange(seat(exchange.group, action.stage), exchange);
  }

  void forward(const Action& action) {
    for (std::size_t layer = 0; layer < layers(action.stage); ++layer) forward_layer(layer, action);
    calls_.compute();
  }
  void forward_layer(std::size_t layer, const Action& action) {
    const bool has_next = layer + 1 < layers(action.stage) && !rebuilds(action);
    gather(layer, action, has_next ? std::optional(layer + 1) : std::nullopt);
    pass(layer, action, 0);
  }

  void rebuild_group(std::size_t first, const Action& action) {
    const std::size_t end = std::min(layers(action.stage), first + group_size(action.stage));
    for (std::size_t layer = first; layer < end; ++layer) {
      if (in_.spec.rebuild == Rebuild::kSelective)
        gather(layer, action, std::nullopt);
      else
        forward_layer(layer, action);
    }
  }

  void backward(const Action& action, bool is_whole) {
    for (std::size_t layer = layers(action.stage); layer-- > 0;) {
      const std::size_t first = layer / group_size(action.stage) * group_size(action.stage);
      const std::size_t end = std::min(layers(action.stage), first + group_size(action.stage));
      if (rebuilds(action) && !is_rebuilt_[slot(action)] && end == layer + 1) rebuild_group(first, action);
      gather_backward(layer, action);
      pass(layer, action, 1);
      if (is_whole) weight_grad(layer, action, false);
    }
    calls_.compute();
  }

  void weight_grad(std::size_t layer, const Action& action, bool gathers) {
    if (gathers) gather_backward(layer, action);
    pass(layer, action, 2);
    for (const PartExchanges& part : stage(action.stage).parts)
      for (const LayerExchange& exchange : part.layer_reduction(layer))
        calls_.exchange(seat(exchange.group, action.stage), exchange);
    complete_layer(layer, action.stage);
  }

  /// Starts the reduction of the bucket that ends with this layer, where one begins inside the action.
  void complete_layer(std::size_t layer, int number) {
    if (inside_->empty()) return;
    const std::vector<int>& buckets = in_.plan.bucket_layers[static_cast<std::size_t>(number)];
    std::size_t first = layers(number);
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      first -= static_cast<std::size_t>(buckets[bucket]);
      if (first != layer) continue;
      calls_.compute();
      for (const std::size_t reduction : *inside_)
        if (own_actions()[reduction].part == static_cast<int>(bucket)) reduce(own_actions()[reduction]);
    }
  }

  void gather_backward(std::size_t layer, const Action& action) {
    gather(layer, action, layer > 0 && !rebuilds(action) ? std::optional(layer - 1) : std::nullopt);
  }

  /// Layer by layer: this one's weights, those of the next ahead (executor/cpu/parameters/layer_moves.h).
  void gather(std::size_t layer, const Action& action, std::optional<std::size_t> next) {
    const std::vector<PartExchanges>& parts = stage(action.stage).parts;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      std::optional<Ahead>& ahead = state(action.stage).ahead[part];
      const auto begin = [&](std::size_t of, const std::vector<LayerExchange>& exchanges) {
        ahead.emplace(Ahead{.layer = of, .calls = {}});
        for (const LayerExchange& exchange : exchanges)
          calls_.start(seat(exchange.group, action.stage), exchange, ahead->calls);
      };
      const std::vector<LayerExchange> own = parts[part].layer_gather(layer);
      if (own.empty()) continue;
      if (ahead && ahead->layer != layer) calls_.await(ahead->calls);
      if (!ahead || ahead->layer != layer) begin(layer, own);
      calls_.await(ahead->calls);
      ahead.reset();
      if (!next) continue;
      if (const std::vector<LayerExchange> coming = parts[part].layer_gather(*next); !coming.empty())
        begin(*next, coming);
    }
  }

  // What copies do together, as executor/copy_collectives.cpp.

  void reduce(const Action& reduction) {
    if (copies_[static_cast<std::size_t>(reduction.stage)].number == NcclCall::kNone) return;
    StageState& own = state(reduction.stage);
    if (replay_.policy.zero >= 2) finish_reductions(reduction.stage);
    start_parts(reduction.stage, own.reductions,
                [&](const PartExchanges& part) { return part.reduction(static_cast<std::size_t>(reduction.part)); });
  }

  void finish_reductions(int number) {
    if (state(number).reductions.empty()) return;
    calls_.await(state(number).reductions);
    state(number).reductions.clear();
    calls_.compute();
  }

  void optimizer_step(int number) {
    if (!replay_.policy.agrees) {
      calls_.await(state(number).reductions);
      state(number).reductions.clear();
      sum_tied_tables(number);
      return calls_.compute();
    }
    if (!has_agreed_) {
      for (std::size_t own = 0; own < per_stage_state_.size(); ++own) {
        if (!is_here(static_cast<int>(own))) continue;
        finish_reductions(static_cast<int>(own));
        sum_tied_tables(static_cast<int>(own));
      }
      calls_.exchange(everyone_, {.elements = 2});
      has_agreed_ = true;
    }
    calls_.compute();
  }

  void sum_tied_tables(int number) {
    const auto is_end = [&](const TiedStages& tied) { return tied.embedding == number || tied.head == number; };
    if (tied_are_summed_ || std::ranges::none_of(replay_.tied, is_end)) return;
    tied_are_summed_ = true;
    RankCallIds gathers;
    for (const TiedStages& tied : replay_.tied)
      for (const bool is_head : {false, true}) {
        const int end = is_head ? tied.head : tied.embedding;
        if (!is_here(end)) continue;
        finish_reductions(end);
        const StageExchanges& of = stage(end);
        for (const LayerExchange& exchange : of.parts.front().range(is_head ? of.tied_head : of.tied_embedding))
          calls_.start(seat(exchange.group, end), exchange, gathers);
      }
    calls_.await(gathers);
    for (std::size_t pair = 0; pair < replay_.tied.size(); ++pair) {
      const TiedStages& tied = replay_.tied[pair];
      if (is_here(tied.embedding) == is_here(tied.head)) continue;
      const bool between_meshes =
          mesh_of(replay_.grid, pipeline_rank_of(tied.embedding)) != mesh_of(replay_.grid, pipeline_rank_of(tied.head));
      const ElementRange own = is_here(tied.head) ? stage(tied.head).tied_head : stage(tied.embedding).tied_embedding;
      calls_.exchange(tied_[pair], {.elements = between_meshes ? tied.elements : own.count});
    }
  }

  const OrderInputs& in_;
  const ReplayPlan& replay_;
  const int rank_;
  const GridCoordinates place_;
  NcclCommunicators& communicators_;
  const std::size_t slices_, per_stage_;
  std::array<NcclSeat, 3> seats_;  // tensor, context, expert
  NcclSeat everyone_;
  std::vector<NcclSeat> copies_, expert_copies_, tied_;
  std::vector<StageState> per_stage_state_;
  std::vector<bool> is_rebuilt_;  // [slot]
  const std::vector<std::size_t>* inside_ = nullptr;
  bool tied_are_summed_ = false, has_agreed_ = false;
  RankCalls calls_;
  MessageCalls messages_;  // behind calls_, into which it writes
};

}  // namespace

NcclOrder plan_nccl_order(const RunSpec& spec, const TrainingPlan& plan, const NcclOrderOptions& options) {
  OrderInputs inputs{.spec = spec, .plan = plan, .options = options, .stages = {}, .rebuilt = {}, .groups = {}};
  const int stages = static_cast<int>(plan.replay.schedule.stages.size());
  for (int stage = 0; stage < stages; ++stage) inputs.stages.push_back(stage_exchanges(spec, plan, stage));
  inputs.rebuilt.assign(inputs.stages.size(),
                        std::vector<bool>(static_cast<std::size_t>(plan.replay.schedule.microbatches), false));
  for (const auto& actions : plan.replay.schedule.ranks)
    for (const Action& action : actions)
      if (action.op == Op::kRecompute)
        inputs.rebuilt[static_cast<std::size_t>(action.stage)][static_cast<std::size_t>(action.microbatch)] = true;
  if (options.group_exchanges)
    for (const MessagePair& pair : message_pairs(plan.replay.schedule, plan.replay.grid))
      for (const NeighborPlace& end : pair.ends) inputs.groups.emplace(end.rank, end.position);
  NcclCommunicators communicators;
  NcclOrder order;
  for (int rank = 0; rank < world_size(plan.replay.grid); ++rank)
    order.ranks.push_back(RankPlanner(inputs, rank, communicators).plan());
  order.communicators = communicators.take();
  if (options.one_order) launch_in_one_order(order, plan.replay.schedule, plan.replay.grid);
  return order;
}

}}  // namespace plumb::executor
