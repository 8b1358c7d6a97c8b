// What ranks do together before their first OPTIMIZER_STEPs, in the order of the cpu backend.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "executor/device/device_run.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {

bool DeviceRun::is_tied_end(int stage) const {
  return std::ranges::any_of(training_.replay.tied,
                             [stage](const TiedStages& tied) { return tied.embedding == stage || tied.head == stage; });
}

bool DeviceRun::joins(std::size_t pipeline) const {
  if (agrees_) return true;
  for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage)
    if (static_cast<std::size_t>(schedule_.stages[stage].rank) == pipeline && is_tied_end(static_cast<int>(stage)))
      return true;
  return false;
}

/// Ranks meet when all of their gradients are complete.
void DeviceRun::require_joint_step() const {
  if (!waits_for_all_) return;
  for (const std::vector<Action>& actions : schedule_.ranks) {
    const auto first_step = std::ranges::find(actions, Op::kOptimizerStep, &Action::op);
    for (auto action = first_step; action != actions.end(); ++action)
      if (gives_weight_gradient(action->op) || action->op == Op::kReduceGrad)
        throw SpecError(
            fmt::format("a device sums tied tables when a rank's gradients are complete, and {} comes behind its first "
                        "OPTIMIZER_STEP: move the steps to the end, or use --backend cpu",
                        to_text(*action)));
  }
}

std::optional<std::size_t> DeviceRun::find_joint_step() const {
  if (!waits_for_all_) return {};
  const auto found = std::ranges::find_if(calls_, [&](const std::vector<PlacedAction>& actions) {
    const Action& action = actions.front().action;
    return action.op == Op::kOptimizerStep && (agrees_ || is_tied_end(action.stage));
  });
  if (found == calls_.end()) return {};
  return static_cast<std::size_t>(found - calls_.begin());
}

std::int64_t DeviceRun::measure_bytes(std::size_t pipeline) const {
  if (!agrees_) return 0;
  std::int64_t partials = 0;
  for (std::size_t stage = 0; stage < schedule_.stages.size(); ++stage)
    if (static_cast<std::size_t>(schedule_.stages[stage].rank) == pipeline) partials += most_partials(stage);
  return static_cast<std::int64_t>(sizeof(StepNumbers)) + partials * std::int64_t{sizeof(float)};
}

/// Lanes speak for different elements.
std::int64_t DeviceRun::most_partials(std::size_t stage) const {
  std::int64_t most = 0;
  for (int lane = 0; lane < world_.lanes(); ++lane) most = std::max(most, lane_stages(lane)[stage].partial_count());
  return most;
}

void DeviceRun::allocate_measures() {
  if (!agrees_) return;
  const StepNumbers unscaled;
  for (int lane = 0; lane < world_.lanes(); ++lane)
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      measures_.push_back(is_here(rank, lane) ? reinterpret_cast<StepNumbers*>(machine_.allocate(measure_bytes(rank)))
                                              : nullptr);
      if (measures_.back() != nullptr) machine_.upload(measures_.back(), std::as_bytes(std::span(&unscaled, 1)));
    }
}

bool DeviceRun::is_between_meshes(const TiedStages& pair) const {
  const auto rank = [&](int stage) { return schedule_.stages[static_cast<std::size_t>(stage)].rank; };
  return !are_like_meshes(rank(pair.embedding), rank(pair.head));
}

void DeviceRun::allocate_tied_tables() {
  for (int lane = 0; lane < world_.lanes(); ++lane)
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      const std::int64_t bytes = whole_table_bytes(rank);
      whole_tables_.push_back(is_here(rank, lane) && bytes > 0 ? reinterpret_cast<float*>(machine_.allocate(bytes))
                                                               : nullptr);
    }
}

std::int64_t DeviceRun::whole_table_bytes(std::size_t pipeline) const {
  std::int64_t elements = 0;
  for (const TiedStages& pair : training_.replay.tied)
    for (const int end : {pair.embedding, pair.head})
      if (is_between_meshes(pair) &&
          static_cast<std::size_t>(schedule_.stages[static_cast<std::size_t>(end)].rank) == pipeline)
        elements = std::max(elements, pair.elements);
  return elements * std::int64_t{sizeof(float)};
}

/// The two ends are divided differently: the first replica of each gives its rows of the whole table.
void DeviceRun::sum_between_meshes(CallRecorder& sums, std::size_t pair, std::size_t pipeline, int lane) const {
  const TiedStages& tied = training_.replay.tied[pair];
  const bool has_first =
      static_cast<std::size_t>(schedule_.stages[static_cast<std::size_t>(tied.embedding)].rank) == pipeline;
  const ModelEnd end = has_first ? ModelEnd::kEmbedding : ModelEnd::kHead;
  const DeviceStage& own = lane_stages(lane)[static_cast<std::size_t>(has_first ? tied.embedding : tied.head)];
  const GridCoordinates place = world_.place(static_cast<int>(pipeline), lane);
  const std::int64_t rows = own.tied_table(end).count;
  const std::int64_t first = std::min(tied.elements, place.tensor * rows);
  const std::int64_t bytes = std::min(rows, tied.elements - first) * std::int64_t{sizeof(float)};
  float* const table = whole_tables_[static_cast<std::size_t>(lane) * schedule_.ranks.size() + pipeline];
  sums.fill_zero(table, tied.elements);
  if (place.data == 0 && place.context == 0 && bytes > 0) sums.copy(table + first, own.tied_gradients(end), bytes);
  const NcclSeat& seat = groups_.tied(world_.rank_of(static_cast<int>(pipeline), lane), pair);
  sums.exchange({.kind = NcclKind::kAllReduce,
                 .communicator = seat.number,
                 .member = seat.member,
                 .values = reinterpret_cast<std::byte*>(table),
                 .elements = tied.elements});
  sums.open_piece();
  if (bytes > 0) sums.copy(own.tied_gradients(end), table + first, bytes);
}

std::vector<std::vector<RecordedPiece>> DeviceRun::joint_step(std::size_t pipeline, int lane) {
  const int rank = world_.rank_of(static_cast<int>(pipeline), lane);
  const auto is_own = [&](int stage) {
    return static_cast<std::size_t>(schedule_.stages[static_cast<std::size_t>(stage)].rank) == pipeline;
  };
  const auto stage = [&](int number) -> const DeviceStage& {
    return lane_stages(lane)[static_cast<std::size_t>(number)];
  };
  const std::vector<TiedStages>& tied = training_.replay.tied;
  std::vector<std::vector<RecordedPiece>> phases;
  for (const ModelEnd end : {ModelEnd::kEmbedding, ModelEnd::kHead}) {  // ends of several pairs may be copies
    CallRecorder gathers;
    for (const TiedStages& pair : tied)
      if (const int number = end == ModelEnd::kHead ? pair.head : pair.embedding; is_own(number))
        stage(number).gather_tied(gathers, end);
    phases.push_back(gathers.take());
  }
  for (std::size_t i = 0; i < tied.size(); ++i) {
    CallRecorder sums;
    const bool has_embedding = is_own(tied[i].embedding), has_head = is_own(tied[i].head);
    const ModelEnd end = has_embedding ? ModelEnd::kEmbedding : ModelEnd::kHead;
    const DeviceStage& own = stage(has_embedding ? tied[i].embedding : tied[i].head);
    const std::int64_t elements = own.tied_table(end).count;
    if (has_embedding && has_head) {
      float *const first = own.tied_gradients(end), *const last = stage(tied[i].head).tied_gradients(ModelEnd::kHead);
      sums.add_gradients(first, first, last, elements);
      sums.copy(last, first, elements * std::int64_t{sizeof(float)});
    } else if ((has_embedding || has_head) && is_between_meshes(tied[i])) {
      sum_between_meshes(sums, i, pipeline, lane);
    } else if (has_embedding || has_head) {
      const NcclSeat& seat = groups_.tied(rank, i);
      sums.exchange({.kind = NcclKind::kAllReduce,
                     .communicator = seat.number,
                     .member = seat.member,
                     .values = reinterpret_cast<std::byte*>(own.tied_gradients(end)),
                     .elements = elements});
    }
    phases.push_back(sums.take());
  }
  CallRecorder measures;
  for (const TiedStages& pair : tied) {
    if (is_own(pair.embedding)) stage(pair.embedding).finish_tied(measures, ModelEnd::kEmbedding);
    if (is_own(pair.head)) stage(pair.head).finish_tied(measures, ModelEnd::kHead);
  }
  if (agrees_) {
    StepNumbers* const numbers = measure(pipeline, lane);
    auto* const partials = reinterpret_cast<float*>(numbers + 1);
    std::int64_t count = 0;
    for (std::size_t number = 0; number < schedule_.stages.size(); ++number) {
      if (!is_own(static_cast<int>(number))) continue;
      const DeviceStage& own = lane_stages(lane)[number];
      own.measure_gradients(measures, partials + count);
      count += own.partial_count();
    }
    measures.decide_step(numbers, partials, count, 0);
    static_assert(offsetof(StepNumbers, square_sum) == offsetof(StepNumbers, skips) + sizeof(float));
    if (const NcclSeat& seat = groups_.everyone(rank); seat.members > 1)  // how many overflow, and the sum
      measures.exchange({.kind = NcclKind::kAllReduce,
                         .communicator = seat.number,
                         .member = seat.member,
                         .values = reinterpret_cast<std::byte*>(&numbers->skips),
                         .elements = 2});
  }
  phases.push_back(measures.take());
  return phases;
}

void DeviceRun::record_joint_step(std::size_t index) {
  const DeviceCall& call = program_.calls[index];
  struct Part {
    CallTrack track;
    std::vector<std::vector<RecordedPiece>> phases;
  };
  std::vector<Part> parts;
  for (std::size_t pipeline = 0; pipeline < schedule_.ranks.size(); ++pipeline)
    for (int lane = 0; lane < world_.lanes(); ++lane) {
      if (!joins(pipeline) || !is_here(pipeline, lane)) continue;
      const int rank = world_.rank_of(static_cast<int>(pipeline), lane);
      parts.push_back({.track = {.rank = rank, .lane = world_.track_lane(rank), .stream = call.stream, .pieces = {}},
                       .phases = joint_step(pipeline, lane)});
      CallRecorder own;
      if (static_cast<std::size_t>(call.rank) == pipeline) perform(own, calls_[index].front(), index, lane);
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
    recorded_->add(index, std::move(part.track), std::move(pieces));
  }
}

}}  // namespace plumb::executor
