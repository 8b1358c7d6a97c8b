// Measures a search of layouts in processor time: what it counts, bounds, prices, simulates and evaluates, and the
// microseconds of each, and then the whole search on one thread and on all cores.
//
//   plan_search_bench [rows] [question]      (default: 10, and all questions, which are numbered from 1)
//
// Calculon (Isaev et al. 2023) prices each candidate of a grid: 13,165,632 of GPT-3 175B on 512 A100 in 12.8 CPU-hours,
// which are 286 candidates a CPU-second.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "planner/search/candidate_queue.h"
#include "planner/search/search.h"
#include "tests/bench/stopwatch.h"
#include "tests/planner/fixtures.h"

namespace {

using namespace plumb;
using namespace plumb::test;

constexpr double kMicrosecond = 1e-6;
constexpr double kCalculonSeconds = 12.8 * 3600 / 13'165'632;  // for a candidate

struct Question {
  const char* model;
  const char* cluster;
  std::int64_t global_batch;
  std::int64_t sequence;
  const char* stack;
  const char* pins;
  bool wide;
  bool counted = true;      ///< all layouts are counted and priced, too
  bool exhaustive = false;  ///< and each of them is looked at
};

constexpr std::array kQuestions = {
    Question{"gpt3-175b", "a100:512", 1536, 2048, "megatron-core", "", false},
    Question{"llama-3.1-405b", "h100:16384", 2048, 8192, "megatron-core", "", false},
    Question{"deepseek-v3", "h100:2048", 15360, 4096, "megatron-core", "", false},
    Question{"llama-3.1-405b", "h100:16384", 2048, 8192, "megatron-core", "", true, false},
    Question{"deepseek-v3", "h100:2048", 15360, 4096, "megatron-core", "", true, false},
    // Calculon's axes as far as layouts have them (tests/bench/README.md).
    Question{"gpt3-175b", "a100:512", 3072, 2048, nullptr, "group=0,zero=0|1,schedule=1f1b|interleaved", true, true,
             true},
};

/// Returns the seconds of processor time of all threads of this process.
double process_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Work {
  std::int64_t steps = 0;
  double seconds = 0;

  std::string text(const char* what) const {
    return steps == 0 ? fmt::format("  {:<10} {:>8}\n", what, steps)
                      : fmt::format("  {:<10} {:>8}  {:>10.1f} us each\n", what, steps,
                                    seconds / static_cast<double>(steps) / kMicrosecond);
  }
};

/// Counts all layouts, and prices each of them as Calculon does: stages and their bound, without a simulation.
void print_flat(const Question& question, const LayoutSpace& space, const TrainingSpec& training) {
  Pricing pricing(preset_model(question.model), preset_cluster(question.cluster), training);
  Work counted, flat;
  counted.seconds = -thread_seconds();
  visit_layouts(pricing, space, [&](const Layout&) { return ++counted.steps > 0; });
  counted.seconds += thread_seconds();
  const Skeletons skeletons;
  SimTime least = SimTime::max();
  flat.seconds = -thread_seconds();
  visit_layouts(pricing, space, [&](const Layout& layout) {
    const Skeleton& known = *skeletons.find(layout);
    const PricedLayout priced = price_layout(pricing, layout, known.schedule, known.order);
    least = std::min(least, step_time_lower_bound(stage_table(priced), known.bound, microbatches_of(training, layout)));
    return ++flat.steps > 0;
  });
  flat.seconds += thread_seconds();
  fmt::print("{}{}  ({:.2f} s in all; no step below {:.3f} s)\n", counted.text("counted"), flat.text("flat"),
             flat.seconds, seconds(least));
}

/// Looks at every layout in its turn, without the tree's bounds and without holding any, and says which is the best.
void print_exhaustive(const Question& question, const LayoutSpace& space, const TrainingSpec& training) {
  Pricing pricing(preset_model(question.model), preset_cluster(question.cluster), training);
  const Skeletons skeletons;
  HeldBytes held(pricing);
  const EvaluationOptions shared{.simulation = {.record_timeline = false}, .network = NetworkOptions{}};
  SimTime least = SimTime::max();
  Layout best;
  Work work;
  work.seconds = -thread_seconds();
  visit_layouts(pricing, space, [&](const Layout& layout) {
    ++work.steps;
    const Skeleton& known = *skeletons.find(layout);
    const PricedLayout priced = price_layout(pricing, layout, known.schedule, known.order);
    const StageTable stages = stage_table(priced);
    if (step_time_lower_bound(stages, known.bound, microbatches_of(training, layout)) >= least) return true;
    const std::vector<std::int64_t> in_issue_order = held.of(layout, priced);  // the step below tells the rest
    if (memory_shortfall(in_issue_order, pricing.cluster().device, pricing.memory_headroom(layout))) return true;
    if (evaluate_sums(pricing, layout, held.price(layout)).simulation.makespan >= least) return true;
    const Simulation step = evaluate(pricing, layout, held.price(layout), shared).simulation;
    if (step.makespan >= least) return true;
    if (memory_shortfall(step.peak_memory_bytes, pricing.cluster().device, pricing.memory_headroom(layout)))
      return true;
    least = step.makespan;
    best = layout;
    return true;
  });
  work.seconds += thread_seconds();
  fmt::print("{}  ({:.2f} s in all; the best takes {:.4f} s: {})\n", work.text("exhaustive"), work.seconds,
             seconds(least), to_text(best));
}

/// Takes the steps of a search one by one, until there are so many families.
void print_steps(const Question& question, const LayoutSpace& space, const TrainingSpec& training, std::size_t rows) {
  Pricing pricing(preset_model(question.model), preset_cluster(question.cluster), training);
  const std::optional<Schedule> own;
  Work families, bounded, priced, simulated, evaluated;
  families.seconds = -thread_seconds();
  Candidates candidates(pricing, space, own, {.complete = false, .threads = 1});
  families.seconds += thread_seconds();
  families.steps = static_cast<std::int64_t>(candidates.families().size());
  CandidateQueue waiting(candidates);
  std::set<std::uint32_t> found;
  while (found.size() < rows) {
    const auto node = waiting.take_first();
    if (!node) break;
    if (found.contains(node->place.front())) continue;
    const bool is_branch = node->level != Level::kCandidate;
    const Known known = is_branch ? Known::kStages : candidates[node->index].known;
    if (known == Known::kShared) {
      found.insert(node->place.front());
      continue;
    }
    Work& work = node->level == Level::kFamily ? bounded
                 : node->level == Level::kCore ? priced
                 : known == Known::kStages     ? simulated
                                               : evaluated;
    const std::int64_t seen = candidates.seen().all;
    const double start = thread_seconds();
    const std::vector<Node> next = candidates.take_steps({&*node, 1});
    work.seconds += thread_seconds() - start;
    work.steps += node->level == Level::kFamily ? std::ssize(next)
                  : node->level == Level::kCore ? candidates.seen().all - seen
                                                : 1;
    waiting.push(next);
  }
  fmt::print("{}{}{}{}{}", families.text("families"), bounded.text("bounded"), priced.text("priced"),
             simulated.text("simulated"), evaluated.text("evaluated"));
}

void print_search(const Question& question, const LayoutSpace& space, const TrainingSpec& training, int rows,
                  int threads) {
  Pricing pricing(preset_model(question.model), preset_cluster(question.cluster), training);
  const double start = process_seconds();
  const SearchResult result = search_layouts(pricing, space, {.threads = threads, .keep = rows});
  const double seconds = process_seconds() - start;
  const double layouts = static_cast<double>(result.counts.priced);
  fmt::print(
      "  {} threads: {:.2f} s of processor time; {:.0f} layouts a CPU-second, Calculon {:.0f}; {} priced, {} "
      "simulated, {} evaluated; {}\n",
      threads == 0 ? "all" : std::to_string(threads), seconds, layouts / seconds, 1 / kCalculonSeconds,
      result.counts.priced, result.counts.evaluations - result.counts.simulated, result.counts.simulated,
      result.ranked.empty()
          ? result.infeasible
          : fmt::format("the best takes {:.4f} s: {}", result.values.front(), to_text(result.ranked.front().layout)));
}

}  // namespace

int main(int argc, char** argv) {
  const int rows = argc > 1 ? std::atoi(argv[1]) : 10;
  const int only = argc > 2 ? std::atoi(argv[2]) : 0;
  for (const Question& question : kQuestions) {
    if (only > 0 && &question != &kQuestions[static_cast<std::size_t>(only - 1)]) continue;
    TrainingSpec training{.global_batch = question.global_batch, .sequence = question.sequence};
    if (question.stack != nullptr)
      training.stack = parse_stack(source_text(fmt::format("tools/specs/stacks/{}.json", question.stack)), "stack");
    LayoutSpace space = parse_layout_space(question.pins);
    space.wide = question.wide;
    fmt::print("{} {} --global-batch {} --stack {}{} {}\n", question.model, question.cluster, question.global_batch,
               question.stack == nullptr ? "none" : question.stack, question.wide ? " --space wide" : "",
               question.pins);
    if (question.counted) print_flat(question, space, training);
    if (question.exhaustive) print_exhaustive(question, space, training);
    if (question.counted) print_steps(question, space, training, static_cast<std::size_t>(rows));
    for (const int threads : {1, 0}) print_search(question, space, training, rows, threads);
  }
}
