#include "executor/training/device/joint_step.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace executor {

void require_joint_step(const Schedule& schedule) {
  for (const std::vector<Action>& actions : schedule.ranks) {
    const auto first_step = std::ranges::find(actions, Op::kOptimizerStep, &Action::op);
    for (auto action = first_step; action != actions.end(); ++action)
      if (gives_weight_gradient(action->op) || action->op == Op::kReduceGrad)
        throw SpecError(
            fmt::format("a device sums tied tables when a rank's gradients are complete, and {} comes behind its first "
                        "OPTIMIZER_STEP: move the steps to the end, or use --backend cpu",
                        to_text(*action)));
  }
}

JointStep::JointStep(const TrainingPlan& training, const DeviceWorld& world, const DeviceGroupTable& groups,
                     const DeviceStages& stages, bool agrees)
    : training_(training),
      schedule_(training.replay.schedule),
      world_(world),
      groups_(groups),
      stages_(stages),
      agrees_(agrees) {}

bool JointStep::is_tied_end(int stage) const {
  return std::ranges::any_of(training_.replay.tied,
                             [stage](const TiedStages& tied) { return tied.embedding == stage || tied.head == stage; });
}

bool JointStep::is_between_meshes(const TiedStages& pair) const {
  const auto rank = [&](int stage) { return schedule_.stages[static_cast<std::size_t>(stage)].rank; };
  return !world_.are_alike(rank(pair.embedding), rank(pair.head));
}

std::optional<std::size_t> JointStep::find(const std::vector<std::vector<PlacedAction>>& calls) const {
  const auto found = std::ranges::find_if(calls, [&](const std::vector<PlacedAction>& actions) {
    const Action& action = actions.front().action;
    return action.op == Op::kOptimizerStep && (agrees_ || is_tied_end(action.stage));
  });
  if (found == calls.end()) return {};
  return static_cast<std::size_t>(found - calls.begin());
}

bool JointStep::joins(std::size_t pipeline) const {
  if (agrees_) return true;
  for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage)
    if (is_on(static_cast<int>(stage), pipeline) && is_tied_end(static_cast<int>(stage))) return true;
  return false;
}

/// Lanes speak for different elements: the bytes are those of the lane with most partial sums of each stage.
std::int64_t JointStep::measure_bytes(std::size_t pipeline) const {
  if (!agrees_) return 0;
  std::int64_t partials = 0;
  for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage) {
    if (!is_on(static_cast<int>(stage), pipeline)) continue;
    std::int64_t most = 0;
    for (int lane = 0; lane < world_.lanes(); ++lane)
      most = std::max(most, stages_.at(lane, stage).parameters().partial_count());
    partials += most;
  }
  return static_cast<std::int64_t>(sizeof(StepNumbers)) + partials * std::int64_t{sizeof(float)};
}

std::int64_t JointStep::whole_table_bytes(std::size_t pipeline) const {
  std::int64_t elements = 0;
  for (const TiedStages& pair : training_.replay.tied)
    if (is_between_meshes(pair) && (is_on(pair.embedding, pipeline) || is_on(pair.head, pipeline)))
      elements = std::max(elements, pair.elements);
  return elements * std::int64_t{sizeof(float)};
}

void JointStep::allocate(DeviceMachine& machine) {
  const StepNumbers unscaled;
  const auto is_here = [&](std::size_t rank, int lane) {
    return world_.is_here(world_.rank_of(static_cast<int>(rank), lane));
  };
  for (int lane = 0; agrees_ && lane < world_.lanes(); ++lane)
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      measures_.push_back(is_here(rank, lane) ? reinterpret_cast<StepNumbers*>(machine.allocate(measure_bytes(rank)))
                                              : nullptr);
      if (measures_.back() != nullptr) machine.upload(measures_.back(), std::as_bytes(std::span(&unscaled, 1)));
    }
  for (int lane = 0; lane < world_.lanes(); ++lane)
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      const std::int64_t bytes = whole_table_bytes(rank);
      whole_tables_.push_back(is_here(rank, lane) && bytes > 0 ? reinterpret_cast<float*>(machine.allocate(bytes))
                                                               : nullptr);
    }
}

StepNumbers* JointStep::measure(std::size_t pipeline, int lane) const {
  return measures_.empty() ? nullptr : measures_[index(pipeline, lane)];
}

/// The two ends are divided differently: the first replica of each gives its rows of the whole table.
void JointStep::sum_between_meshes(CallRecorder& sums, std::size_t pair, std::size_t pipeline, int lane) const {
  const TiedStages& tied = training_.replay.tied[pair];
  const bool has_first = is_on(tied.embedding, pipeline);
  const ModelEnd end = has_first ? ModelEnd::kEmbedding : ModelEnd::kHead;
  const DeviceStage& own = stage_of(lane, has_first ? tied.embedding : tied.head);
  const GridCoordinates place = world_.place(static_cast<int>(pipeline), lane);
  const std::int64_t rows = own.tied_table(end).count;
  const std::int64_t first = std::min(tied.elements, place.tensor * rows);
  const std::int64_t bytes = std::min(rows, tied.elements - first) * std::int64_t{sizeof(float)};
  float* const table = whole_tables_[index(pipeline, lane)];
  sums.fill_zero(table, tied.elements);
  if (place.data == 0 && place.context == 0 && bytes > 0) sums.copy(table + first, own.tied_gradients(end), bytes);
  const CommunicatorSeat& seat = groups_.tied(world_.rank_of(static_cast<int>(pipeline), lane), pair);
  sums.exchange({.kind = CollectiveKind::kAllReduce,
                 .communicator = seat.number,
                 .member = seat.member,
                 .values = reinterpret_cast<std::byte*>(table),
                 .elements = tied.elements});
  sums.open_piece();
  if (bytes > 0) sums.copy(own.tied_gradients(end), table + first, bytes);
}

void JointStep::sum_ends(CallRecorder& sums, std::size_t pair, std::size_t pipeline, int lane) const {
  const TiedStages& tied = training_.replay.tied[pair];
  const bool has_embedding = is_on(tied.embedding, pipeline), has_head = is_on(tied.head, pipeline);
  if (!has_embedding && !has_head) return;
  const ModelEnd end = has_embedding ? ModelEnd::kEmbedding : ModelEnd::kHead;
  const DeviceStage& own = stage_of(lane, has_embedding ? tied.embedding : tied.head);
  const std::int64_t elements = own.tied_table(end).count;
  if (has_embedding && has_head) {
    float* const first = own.tied_gradients(end);
    float* const last = stage_of(lane, tied.head).tied_gradients(ModelEnd::kHead);
    sums.add_gradients(first, first, last, elements);
    sums.copy(last, first, elements * std::int64_t{sizeof(float)});
  } else if (is_between_meshes(tied)) {
    sum_between_meshes(sums, pair, pipeline, lane);
  } else {
    const CommunicatorSeat& seat = groups_.tied(world_.rank_of(static_cast<int>(pipeline), lane), pair);
    sums.exchange({.kind = CollectiveKind::kAllReduce,
                   .communicator = seat.number,
                   .member = seat.member,
                   .values = reinterpret_cast<std::byte*>(own.tied_gradients(end)),
                   .elements = elements});
  }
}

void JointStep::measure_gradients(CallRecorder& measures, std::size_t pipeline, int lane) const {
  StepNumbers* const numbers = measure(pipeline, lane);
  auto* const partials = reinterpret_cast<float*>(numbers + 1);
  std::int64_t count = 0;
  for (std::size_t number = 0; number < schedule_.stages.size(); ++number) {
    if (!is_on(static_cast<int>(number), pipeline)) continue;
    const DeviceStage& own = stages_.at(lane, number);
    own.measure_gradients(measures, partials + count);
    count += own.parameters().partial_count();
  }
  measures.decide_step(numbers, partials, count, 0);
  static_assert(offsetof(StepNumbers, square_sum) == offsetof(StepNumbers, skips) + sizeof(float));
  const CommunicatorSeat& seat = groups_.everyone(world_.rank_of(static_cast<int>(pipeline), lane));
  if (seat.members > 1)  // how many overflow, and the sum
    measures.exchange({.kind = CollectiveKind::kAllReduce,
                       .communicator = seat.number,
                       .member = seat.member,
                       .values = reinterpret_cast<std::byte*>(&numbers->skips),
                       .elements = 2});
}

std::vector<std::vector<RecordedPiece>> JointStep::phases(std::size_t pipeline, int lane) const {
  const std::vector<TiedStages>& tied = training_.replay.tied;
  std::vector<std::vector<RecordedPiece>> phases;
  for (const ModelEnd end : {ModelEnd::kEmbedding, ModelEnd::kHead}) {  // ends of several pairs may be copies
    CallRecorder gathers;
    for (const TiedStages& pair : tied)
      if (const int number = end == ModelEnd::kHead ? pair.head : pair.embedding; is_on(number, pipeline))
        stage_of(lane, number).gather_tied(gathers, end);
    phases.push_back(gathers.take());
  }
  for (std::size_t pair = 0; pair < tied.size(); ++pair) {
    CallRecorder sums;
    sum_ends(sums, pair, pipeline, lane);
    phases.push_back(sums.take());
  }
  CallRecorder measures;
  for (const TiedStages& pair : tied) {
    if (is_on(pair.embedding, pipeline)) stage_of(lane, pair.embedding).finish_tied(measures, ModelEnd::kEmbedding);
    if (is_on(pair.head, pipeline)) stage_of(lane, pair.head).finish_tied(measures, ModelEnd::kHead);
  }
  if (agrees_) measure_gradients(measures, pipeline, lane);
  phases.push_back(measures.take());
  return phases;
}

}}  // namespace plumb::executor
