#include "simulator/compile/compiled_schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/error.h"
#include "simulator/compile/beside_compute.h"
#include "simulator/compile/deadlock.h"
#include "simulator/compile/mailboxes.h"
#include "simulator/compile/own_inputs.h"
#include "simulator/compile/shard_results.h"
#include "simulator/compile/step_writer.h"
#include "simulator/compile/turns.h"
#include "simulator/compile/units.h"
#include "simulator/compile/weight_mailboxes.h"

namespace plumb { inline namespace simulator {
namespace {

/// The dry run: every rank walks its list, and the actions that it meets become steps.
class DryRun {
 public:
  DryRun(const Schedule& schedule, Sends sends)
      : schedule_(schedule),
        neighbors_(stage_neighbors(schedule)),
        shards_(shards_of(schedule)),
        ids_(action_ids(schedule)),
        writer_(schedule, sends),
        units_{.stages = static_cast<int>(schedule.stages.size()),
               .microbatches = schedule.microbatches,
               .parts = writer_.kinds().parts()},
        turns_(static_cast<int>(schedule.ranks.size())),
        own_(schedule, neighbors_, shards_, units_, sends),
        mailboxes_(schedule, neighbors_, units_, writer_, turns_),
        results_(schedule, neighbors_, shards_, units_, turns_),
        beside_(schedule, ids_, units_, own_, writer_, turns_),
        weights_(schedule, writer_, turns_),
        cursors_(schedule.ranks.size()) {}

  CompiledSchedule run() {
    while (!turns_.empty()) take_turn(turns_.next());
    for (std::size_t r = 0; r < cursors_.size(); ++r) {
      if (cursors_[r].position < schedule_.ranks[r].size()) fail();
    }
    if (!beside_.empty() || !weights_.empty()) fail();
    return writer_.take();
  }

 private:
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  struct Cursor {
    std::size_t position = 0;
    std::size_t sent_position = kNowhere;  ///< position of the send that the last compute step has taken along
  };

  std::int32_t id_of(int rank, std::size_t position) const {
    return ids_.first_id[rank] + static_cast<std::int32_t>(position);
  }

  /// Runs one compute action and the actions behind it up to the next one. The rank comes to the end of the queue again
  /// unless it has to wait.
  void take_turn(int rank) {
    Cursor& cursor = cursors_[rank];
    const std::vector<Action>& actions = schedule_.ranks[rank];
    bool has_computed = false;
    for (; cursor.position < actions.size(); ++cursor.position) {
      const Action& action = actions[cursor.position];
      if (is_compute(action.op)) {
        if (has_computed) return turns_.again(rank);
        const int count = action.overlaps_next && cursor.position + 1 < actions.size() ? 2 : 1;
        if (const Register* missing = missing_input(rank, &action, count)) return turns_.wait(rank, missing);
        compute(rank, &action, count);
        has_computed = true;
        cursor.position += static_cast<std::size_t>(count - 1);
      } else if (is_send(action.op)) {
        if (cursor.sent_position != cursor.position) mailboxes_.send(rank, action, id_of(rank, cursor.position));
      } else if (is_recv(action.op)) {
        if (writer_.sends() == Sends::kRendezvous) mailboxes_.receive(rank, action, id_of(rank, cursor.position));
      } else if (weights_.takes(action)) {
        weights_.issue(rank, action, id_of(rank, cursor.position));
      } else {
        beside_.issue(rank, action, id_of(rank, cursor.position));
      }
    }
  }

  /// Returns an input that one of the actions needs and that is not there yet, or null if they may run.
  const Register* missing_input(int rank, const Action* first, int count) {
    for (int i = 0; i < count; ++i) {
      const Register* delivery = mailboxes_.delivery_for(first[i]);
      if (delivery != nullptr && *delivery == kZeroRegister) return delivery;
      if (const Register* result = results_.missing_result(first[i])) return result;
      if (const Register* reduction = beside_.missing_reduction(first[i])) return reduction;
      if (const Register* weights = weights_.missing_delivery(id_of(rank, cursors_[rank].position) + i)) return weights;
    }
    return nullptr;
  }

  /// Adds one action, or an overlapped pair as one, and the send behind it.
  void compute(int rank, const Action* first, int count) {
    Cursor& cursor = cursors_[rank];
    own_.run(first, count);
    std::array<bool, 2> recomputed{};
    for (int i = 0; i < count; ++i) recomputed[i] = gives_input_gradient(first[i].op) && own_.recomputed(first[i]);
    const bool is_taken = std::any_of(first, first + count, [this](const Action& a) { return results_.is_taken(a); });
    const bool takes_send = writer_.sends() == Sends::kBuffered && !is_taken;
    const Action* send = takes_send ? send_behind(rank, first + count) : nullptr;

    Step step{.kind = writer_.kinds().compute({first, first + count}, recomputed, send, [&] {
      const Register free = rank_register(rank);
      return StepKind{.occupies_rank = true,
                      .rank = rank,
                      .from = free,
                      .to = free,
                      .channel = send == nullptr ? free : mailboxes_.channel_register(*send)};
    })};
    step.input = joined_input(rank, first, count);
    beside_.start_inside(rank, *first, id_of(rank, cursor.position), step.input);
    std::int32_t send_id = ActionTable::kNone;
    if (send != nullptr) {
      cursor.sent_position = static_cast<std::size_t>(send - schedule_.ranks[rank].data());
      send_id = id_of(rank, cursor.sent_position);
      step.output = writer_.take_register();
    }
    if (is_taken) step.output = writer_.new_register();
    writer_.add_compute(rank, step, id_of(rank, cursor.position), send_id);
    if (send != nullptr) mailboxes_.deliver(*send, step.output);
    for (int i = 0; i < count; ++i)
      if (results_.is_taken(first[i])) results_.deliver(first[i], step.output);
  }

  /// Returns the first send ahead of the rank's next compute action: it is issued when the compute action before it
  /// ends.
  const Action* send_behind(int rank, const Action* next) const {
    const std::vector<Action>& actions = schedule_.ranks[rank];
    for (const Action* end = actions.data() + actions.size(); next != end && !is_compute(next->op); ++next) {
      if (is_send(next->op)) return next;
    }
    return nullptr;
  }

  /// Returns the register of all inputs that are not implied by the rank's order; several are joined first.
  Register joined_input(int rank, const Action* first, int count) {
    inputs_.clear();
    for (int i = 0; i < count; ++i) {
      if (Register* delivery = mailboxes_.delivery_for(first[i])) {
        inputs_.push_back(*delivery);
        writer_.give_back(*delivery);
        *delivery = kZeroRegister;
      }
      results_.take_inputs(first[i], inputs_);
      beside_.take_inputs(first[i], inputs_);
      weights_.take_inputs(id_of(rank, cursors_[rank].position) + i, inputs_);
    }
    return writer_.join(inputs_);
  }

  /// Throws the reason why the ranks did not get to their ends.
  [[noreturn]] void fail() const {
    for (std::size_t r = 0; r < cursors_.size(); ++r) {
      const std::vector<Action>& actions = schedule_.ranks[r];
      for (std::size_t i = cursors_[r].position; i < actions.size() && i < cursors_[r].position + 2; ++i) {
        if (i > cursors_[r].position && !actions[i - 1].overlaps_next) break;
        if (const auto missing = mailboxes_.unlisted_send(actions[i])) {
          throw ScheduleError(fmt::format("{} waits for {}, which rank {} does not list: lower the schedule first",
                                          to_text(actions[i]), to_text(*missing),
                                          schedule_.stages[missing->stage].rank));
        }
      }
    }
    throw deadlock_error(schedule_, writer_.sends());
  }

  const Schedule& schedule_;
  StageNeighbors neighbors_;
  Shards shards_;
  ActionIds ids_;
  StepWriter writer_;
  Units units_;
  Turns turns_;
  OwnInputs own_;
  Mailboxes mailboxes_;
  ShardResults results_;
  BesideCompute beside_;
  WeightMailboxes weights_;
  std::vector<Cursor> cursors_;   ///< [rank]
  std::vector<Register> inputs_;  ///< inputs of the action at hand
};

}  // namespace

CompiledSchedule compile(const Schedule& lowered, Sends sends) {
  return DryRun(lowered, sends).run();
}

}}  // namespace plumb::simulator
