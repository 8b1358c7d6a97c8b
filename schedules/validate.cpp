#include "schedules/validate.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "schedules/action_graph.h"
#include "schedules/action_table.h"
#include "schedules/error.h"
#include "schedules/progress.h"

namespace plumb {
namespace {

constexpr std::array<std::string_view, 15> kRuleNames = {
    "placement",       "foreign",        "misplaced", "doubled",  "missing",
    "order",           "mixed backward", "lane",      "pair",     "unmatched message",
    "missing message", "message order",  "optimizer", "sharding", "deadlock"};

class Validator {
 public:
  explicit Validator(const Schedule& schedule) : schedule_(schedule) {}

  std::vector<Violation> run() {
    check_placement();
    if (!found_.empty()) return found_;
    check_actions();
    if (!found_.empty()) return sorted();
    table_.emplace(schedule_);
    ids_ = action_ids(schedule_);
    neighbors_ = stage_neighbors(schedule_);
    check_microbatches();
    check_order();
    if (has_messages(schedule_)) check_messages();
    check_optimizer();
    check_sharding();
    if (found_.empty() && !runs_to_end(schedule_)) {
      const std::vector<std::int32_t> cycle = find_cycle(action_graph(schedule_));
      report(-1, -1, Rule::kDeadlock, "the schedule deadlocks: " + describe_cycle(schedule_, cycle));
    }
    return sorted();
  }

 private:
  void report(int rank, std::size_t position, Rule rule, std::string message) {
    found_.push_back({rank, static_cast<int>(position), rule, std::move(message)});
  }

  std::vector<Violation> sorted() {
    std::stable_sort(found_.begin(), found_.end(), [](const Violation& a, const Violation& b) {
      return std::tuple(a.rank, a.position) < std::tuple(b.rank, b.position);
    });
    return found_;
  }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (int r = 0; r < static_cast<int>(schedule_.ranks.size()); ++r) {
      for (std::size_t i = 0; i < schedule_.ranks[r].size(); ++i) visit(r, i, schedule_.ranks[r][i]);
    }
  }

  void check_placement() {
    const int ranks = static_cast<int>(schedule_.ranks.size());
    if (schedule_.microbatches < 1)
      report(-1, -1, Rule::kPlacement, "the schedule has no micro-batch; give it one or more");
    std::map<std::pair<int, int>, int> seen;
    std::map<int, int> parts_of_lane;
    for (int s = 0; s < static_cast<int>(schedule_.stages.size()); ++s) {
      const StagePlace& place = schedule_.stages[s];
      if (place.rank < 0 || place.rank >= ranks) {
        report(-1, -1, Rule::kPlacement,
               fmt::format("stage {} is on rank {} of {}; place it on one that exists", s, place.rank, ranks));
      }
      if (!seen.emplace(std::pair{place.lane, place.model_part}, s).second) {
        report(-1, -1, Rule::kPlacement,
               fmt::format("stages {} and {} are both model part {} of lane {}; give one of them another lane",
                           seen[{place.lane, place.model_part}], s, place.model_part, place.lane));
      }
      parts_of_lane[place.lane] = std::max(parts_of_lane[place.lane], place.model_part + 1);
    }
    for (const auto& [lane, parts] : parts_of_lane) {
      for (int part = 0; part < parts; ++part) {
        if (!seen.contains({lane, part})) {
          report(-1, -1, Rule::kPlacement,
                 fmt::format("model part {} of lane {} has no stage; give it one", part, lane));
        }
      }
    }
    if (schedule_.stages.empty())
      report(-1, -1, Rule::kPlacement, "the schedule has no stage; list at least one forward");
  }

  /// Each action by itself: does what it names exist, and on this rank?
  void check_actions() {
    const int stages = static_cast<int>(schedule_.stages.size());
    for_each([&](int r, std::size_t i, const Action& a) {
      if (a.stage < 0 || a.stage >= stages) {
        report(r, i, Rule::kForeign,
               fmt::format("{} names stage {}, but there are stages 0 to {} only", to_text(a), a.stage, stages - 1));
        return;
      }
      if (has_microbatch(a.op) && (a.microbatch < 0 || a.microbatch >= schedule_.microbatches)) {
        report(r, i, Rule::kForeign,
               fmt::format("{} names micro-batch {}, but there are 0 to {} only", to_text(a), a.microbatch,
                           schedule_.microbatches - 1));
      }
      if (a.part < 0) report(r, i, Rule::kForeign, fmt::format("{} has a negative part", to_text(a)));
      const int owner = schedule_.stages[a.stage].rank;
      if (owner != r) {
        report(r, i, Rule::kMisplaced,
               fmt::format("{} is on rank {}, but stage {} lives on rank {}; move it there", to_text(a), r, a.stage,
                           owner));
      }
      if (a.overlaps_next) check_pair(r, i);
    });
  }

  void check_pair(int r, std::size_t i) {
    const std::vector<Action>& actions = schedule_.ranks[r];
    const bool fits = is_compute(actions[i].op) && i + 1 < actions.size() && is_compute(actions[i + 1].op) &&
                      !actions[i + 1].overlaps_next && (i == 0 || !actions[i - 1].overlaps_next);
    if (!fits) {
      report(r, i, Rule::kPair,
             fmt::format("{} is paired with the next action, but a pair is exactly two compute actions side by "
                         "side; separate them",
                         to_text(actions[i])));
    }
  }

  /// Every stage sees every micro-batch of its lane once, whole or split.
  void check_microbatches() {
    const int stages = static_cast<int>(schedule_.stages.size());
    check_doubled();
    bool trains = false;
    for_each([&](int, std::size_t, const Action& a) {
      trains = trains || gives_input_gradient(a.op) || a.op == Op::kWeightGrad;
    });

    std::vector<int> lane_of(static_cast<std::size_t>(schedule_.microbatches), -1);
    for_each([&](int r, std::size_t i, const Action& a) {
      if (a.op != Op::kForward) return;
      int& lane = lane_of[a.microbatch];
      const int here = schedule_.stages[a.stage].lane;
      if (lane == -1) lane = here;
      if (lane != here) {
        report(r, i, Rule::kLane,
               fmt::format("{} runs micro-batch {} on lane {}, but it runs on lane {} elsewhere; keep it on one",
                           to_text(a), a.microbatch, here, lane));
      }
    });
    for (int s = 0; s < stages; ++s) {
      const StagePlace& place = schedule_.stages[s];
      for (int i = 0; i < schedule_.microbatches; ++i) {
        if (lane_of[i] != place.lane && lane_of[i] != -1) continue;
        for (int part = 0; part < table_->parts(); ++part) check_one(s, i, part, trains);
      }
    }
  }

  void check_one(int s, int microbatch, int part, bool trains) {
    const auto has = [&](Op op) { return table_->find(op, s, microbatch, part) != ActionTable::kNone; };
    const auto missing = [&](Op op) {
      const Action action{.op = op, .part = static_cast<std::int16_t>(part), .stage = s, .microbatch = microbatch};
      report(schedule_.stages[s].rank, -1, Rule::kMissing, fmt::format("{} is missing; add it", to_text(action)));
    };
    if (!has(Op::kForward)) missing(Op::kForward);
    if (!trains) return;
    if (has(Op::kBackward) && (has(Op::kInputGrad) || has(Op::kWeightGrad))) {
      const auto [rank, position] = place_of(ids_, table_->find(Op::kBackward, s, microbatch, part));
      report(rank, static_cast<std::size_t>(position), Rule::kMixedBackward,
             fmt::format("stage {} has both a whole backward B and a split one (I, W) for micro-batch {}; keep one", s,
                         microbatch));
    } else if (!has(Op::kBackward)) {
      if (!has(Op::kInputGrad) && !has(Op::kWeightGrad)) missing(Op::kBackward);
      if (has(Op::kInputGrad) && !has(Op::kWeightGrad)) missing(Op::kWeightGrad);
      if (!has(Op::kInputGrad) && has(Op::kWeightGrad)) missing(Op::kInputGrad);
    }
  }

  void check_doubled() {
    std::int32_t id = 0;
    for_each([&](int r, std::size_t i, const Action& a) {
      const std::int32_t here = id++;
      if (!has_microbatch(a.op)) return;
      const std::int32_t first = table_->find(a.op, a.stage, a.microbatch, a.part);
      if (first != here) {
        const auto [rank, position] = place_of(ids_, first);
        report(r, i, Rule::kDoubled,
               fmt::format("{} stands on rank {} at position {} already; remove one", to_text(a), rank, position));
      }
    });
  }

  /// On its own rank, an action comes behind what it is made of.
  void check_order() {
    std::int32_t id = 0;
    for_each([&](int r, std::size_t i, const Action& a) {
      const std::int32_t here = id++;
      const auto after = [&](Op op, std::string_view what) {
        const std::int32_t other =
            has_microbatch(a.op) ? table_->find(op, a.stage, a.microbatch, a.part) : ActionTable::kNone;
        if (other == ActionTable::kNone || other < here) return;
        const auto [rank, position] = place_of(ids_, other);
        report(r, i, Rule::kOrder,
               fmt::format("{} stands ahead of its {} {} (position {}); list that first", to_text(a), what,
                           to_text(schedule_.ranks[rank][position]), position));
      };
      switch (a.op) {
        case Op::kBackward:
        case Op::kInputGrad:
          after(Op::kForward, "forward");
          after(Op::kRecompute, "recompute");
          break;
        case Op::kWeightGrad:
          after(Op::kInputGrad, "input gradient");
          break;
        case Op::kRecompute:
          after(Op::kForward, "forward");
          break;
        default:
          break;
      }
    });
  }

  struct Route {
    Op send;
    Op receive;
    bool forward;
  };
  static constexpr std::array<Route, 2> kRoutes = {Route{Op::kSendActivation, Op::kRecvActivation, true},
                                                   Route{Op::kSendGradient, Op::kRecvGradient, false}};

  std::int32_t find_any(bool forward, int stage, int microbatch, int part) const {
    if (forward) return table_->find(Op::kForward, stage, microbatch, part);
    const std::int32_t whole = table_->find(Op::kBackward, stage, microbatch, part);
    return whole != ActionTable::kNone ? whole : table_->find(Op::kInputGrad, stage, microbatch, part);
  }

  void check_messages() {
    std::map<std::tuple<int, int, Op>, std::vector<std::int32_t>>
        expected;  // channel -> receives in the order of the sends
    std::int32_t id = 0;
    for_each([&](int r, std::size_t i, const Action& a) {
      const std::int32_t here = id++;
      for (const Route& route : kRoutes) {
        if (a.op == route.send) check_send(r, i, a, here, route, expected);
        if (a.op == route.receive) check_receive(r, i, a, here, route);
        const bool produces = route.forward ? a.op == Op::kForward : gives_input_gradient(a.op);
        if (produces) check_input(r, i, a, route);
      }
    });
    for (const auto& [channel, receives] : expected) {
      for (std::size_t k = 1; k < receives.size(); ++k) {
        if (receives[k] > receives[k - 1]) continue;
        const auto [rank, position] = place_of(ids_, receives[k]);
        const auto [other_rank, other_position] = place_of(ids_, receives[k - 1]);
        report(rank, static_cast<std::size_t>(position), Rule::kMessageOrder,
               fmt::format(
                   "{} stands ahead of {} (position {}), but rank {} sends them the other way round; exchange them",
                   to_text(schedule_.ranks[rank][position]), to_text(schedule_.ranks[other_rank][other_position]),
                   other_position, std::get<0>(channel)));
      }
    }
  }

  void check_send(int r, std::size_t i, const Action& a, std::int32_t here, const Route& route,
                  std::map<std::tuple<int, int, Op>, std::vector<std::int32_t>>& expected) {
    const int consumer = route.forward ? neighbors_.successor[a.stage] : neighbors_.predecessor[a.stage];
    if (consumer < 0 || schedule_.stages[consumer].rank == r) {
      report(r, i, Rule::kUnmatchedMessage,
             consumer < 0 ? fmt::format("{} has no stage to send to; remove it", to_text(a))
                          : fmt::format("{} is for stage {} on the same rank, which needs no message; remove it",
                                        to_text(a), consumer));
      return;
    }
    const std::int32_t receive = table_->find(route.receive, consumer, a.microbatch, a.part);
    if (receive == ActionTable::kNone) {
      const Action wanted{.op = route.receive, .part = a.part, .stage = consumer, .microbatch = a.microbatch};
      report(r, i, Rule::kUnmatchedMessage,
             fmt::format("{} is received by nobody; add {} on rank {}", to_text(a), to_text(wanted),
                         schedule_.stages[consumer].rank));
    } else {
      expected[{r, schedule_.stages[consumer].rank, a.op}].push_back(receive);
    }
    const std::int32_t producer = find_any(route.forward, a.stage, a.microbatch, a.part);
    if (producer == ActionTable::kNone || producer > here) {
      report(r, i, Rule::kMessageOrder,
             fmt::format("{} stands ahead of the action that makes what it sends; list it behind", to_text(a)));
    }
  }

  void check_receive(int r, std::size_t i, const Action& a, std::int32_t here, const Route& route) {
    const int producer = route.forward ? neighbors_.predecessor[a.stage] : neighbors_.successor[a.stage];
    const bool remote = producer >= 0 && schedule_.stages[producer].rank != r;
    if (!remote || table_->find(route.send, producer, a.microbatch, a.part) == ActionTable::kNone) {
      report(r, i, Rule::kUnmatchedMessage,
             fmt::format("{} waits for a message that nobody sends; {}", to_text(a),
                         remote ? "add its send" : "remove it"));
    }
    const std::int32_t consumer = find_any(route.forward, a.stage, a.microbatch, a.part);
    if (consumer != ActionTable::kNone && consumer < here) {
      report(r, i, Rule::kMessageOrder,
             fmt::format("{} stands behind the action that needs it; list it ahead", to_text(a)));
    }
  }

  /// An action whose input comes from another rank has the receive for it.
  void check_input(int r, std::size_t i, const Action& a, const Route& route) {
    const int producer = route.forward ? neighbors_.predecessor[a.stage] : neighbors_.successor[a.stage];
    if (producer < 0 || schedule_.stages[producer].rank == r) return;
    if (table_->find(route.receive, a.stage, a.microbatch, a.part) == ActionTable::kNone) {
      const Action wanted{.op = route.receive, .part = a.part, .stage = a.stage, .microbatch = a.microbatch};
      report(r, i, Rule::kMissingMessage,
             fmt::format("{} takes its input from rank {}, but {} is missing; add it", to_text(a),
                         schedule_.stages[producer].rank, to_text(wanted)));
    }
  }

  /// If a schedule has OPTIMIZER_STEPs, they take every weight gradient, and each takes some.
  void check_optimizer() {
    bool has_steps = false;
    for_each([&](int, std::size_t, const Action& a) { has_steps = has_steps || a.op == Op::kOptimizerStep; });
    if (!has_steps && is_asynchronous(schedule_)) {
      report(-1, -1, Rule::kOptimizer,
             fmt::format("the weights are {} but no OPTIMIZER_STEP ever makes a version; add them",
                         policy_name(schedule_.weights)));
    }
    if (!has_steps) return;
    std::vector<int> pending(schedule_.stages.size(), 0);
    std::vector<int> steps(schedule_.stages.size(), 0);
    for_each([&](int r, std::size_t i, const Action& a) {
      if (gives_weight_gradient(a.op)) {
        ++pending[a.stage];
        if (steps[a.stage] > 0 && !is_asynchronous(schedule_)) {
          report(r, i, Rule::kOptimizer,
                 fmt::format("{} comes behind the OPTIMIZER_STEP of its stage, which must take it; list the "
                             "step last",
                             to_text(a)));
        }
      }
      if (a.op != Op::kOptimizerStep) return;
      if (pending[a.stage] == 0) {
        report(r, i, Rule::kOptimizer,
               fmt::format("{} has no weight gradient to take; list it behind one, or remove it", to_text(a)));
      }
      pending[a.stage] = 0;
      ++steps[a.stage];
    });
    for (std::size_t s = 0; s < pending.size(); ++s) {
      if (pending[s] > 0 && (steps[s] == 0 || is_asynchronous(schedule_))) {
        report(schedule_.stages[s].rank, -1, Rule::kOptimizer,
               fmt::format("stage {} ends with {} weight gradients that no OPTIMIZER_STEP takes; add {}OPTIMIZER_STEP",
                           s, pending[s], s));
      }
    }
  }

  /// Gathered parameters are dropped only if gathered; gradients that are reduced are all reduced before they are used.
  void check_sharding() {
    std::vector<int> gathered(schedule_.stages.size(), 0);
    std::vector<int> unreduced(schedule_.stages.size(), 0);
    std::vector<bool> reduces(schedule_.stages.size(), false);
    for_each([&](int, std::size_t, const Action& a) {
      if (a.op == Op::kReduceGrad) reduces[a.stage] = true;
    });
    for_each([&](int r, std::size_t i, const Action& a) {
      if (a.op == Op::kUnshard) ++gathered[a.stage];
      if (a.op == Op::kReshard && std::exchange(gathered[a.stage], 0) == 0) {
        report(r, i, Rule::kSharding,
               fmt::format("{} drops parameters that were not gathered; add {}UNSHARD ahead", to_text(a), a.stage));
      }
      if (gives_weight_gradient(a.op)) ++unreduced[a.stage];
      if (a.op == Op::kReduceGrad) unreduced[a.stage] = 0;
      if (a.op == Op::kOptimizerStep && reduces[a.stage] && unreduced[a.stage] > 0) {
        report(r, i, Rule::kSharding,
               fmt::format("{} takes {} weight gradients that are not reduced; add {}REDUCE_GRAD ahead", to_text(a),
                           unreduced[a.stage], a.stage));
      }
    });
  }

  const Schedule& schedule_;
  std::optional<ActionTable> table_;
  ActionIds ids_;
  StageNeighbors neighbors_;
  std::vector<Violation> found_;
};

}  // namespace

std::string_view rule_name(Rule rule) {
  return kRuleNames[static_cast<std::size_t>(rule)];
}

std::string to_text(const Violation& violation) {
  std::string place;
  if (violation.rank >= 0) place = fmt::format("rank {}", violation.rank);
  if (violation.position >= 0) place += fmt::format(", position {}", violation.position);
  return fmt::format("{}{}{} ({})", place, place.empty() ? "" : ": ", violation.message, rule_name(violation.rule));
}

std::vector<Violation> validate(const Schedule& schedule) {
  return Validator(schedule).run();
}

void require_valid(const Schedule& schedule) {
  const std::vector<Violation> violations = validate(schedule);
  if (violations.empty()) return;
  const std::string more = violations.size() == 1 ? "" : fmt::format("; {} more violations", violations.size() - 1);
  throw ScheduleError(to_text(violations.front()) + more);
}

}  // namespace plumb
