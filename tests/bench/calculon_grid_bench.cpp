// Calculon's grid of GPT-3 175B on 512 A100 (Isaev et al. 2023), of which it prices each candidate: 13,165,632 in 12.8
// CPU-hours. It is searched here, and looked at layout by layout.
//
//   calculon_grid_bench [flat]      (flat: the search alone is not enough; every layout is priced and looked at, too)
//
// An axis of Calculon's is a key of layouts (degrees, micro-batch, interleaving, sharded optimizers, sequence
// parallelism, recomputation, offload of activations and of the optimizer) or a figure of the stack:
//
//   tensor_par_comm_type   ar: sp=0;  p2p_rs_ag: sp=0, each rank sends 1/t of a message;  rs_ag: sp=1
//   seq_par_ag_redo        sp=1 gathers a product's input again, or keeps it gathered
//   tensor_par_overlap     none;  ring: traffic beside the products of the same matrix, as Megatron-LM v3.0 does;  pipe:
//                          NeMo's share of user buffers (both in tools/specs/stacks)
//   data_par_overlap       gradients are reduced beside the last backward, or behind it
//
// Two axes are left out, as Plumb's layouts have no such key: weights in the host, and the network of each group (two of
// them for tp, pp and dp each), which follows from the degrees. They make no more than copies of the layouts here.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>

#include <fmt/format.h>

#include "planner/search/held_bytes.h"
#include "planner/search/layout_tree.h"
#include "planner/search/search.h"
#include "tests/bench/stopwatch.h"
#include "tests/planner/fixtures.h"

namespace {

using namespace plumb;
using namespace plumb::test;

constexpr double kCalculonCandidates = 13'165'632;
constexpr double kGridSeconds = 12.8 * 3600;
constexpr int kDevices = 512, kBlocks = 96, kHeads = 96, kBatch = 1536;

/// A part of the grid: the stack's figures, and the layouts that are open under them.
struct Part {
  std::string name;
  TrainingSpec training;
  LayoutSpace space;
};

StackSpec stack_of_grid(std::string_view overlap, bool data_overlap) {
  StackSpec stack = parse_stack(source_text("tools/specs/stacks/megatron-lm-2022.json"), "megatron-lm-2022");
  stack.can.tensor_across_nodes = true;
  stack.async_tensor_gradients = overlap == "ring";
  if (overlap == "pipe")
    stack.tensor_hidden = parse_stack(source_text("tools/specs/stacks/nemo.json"), "nemo").tensor_hidden;
  stack.data_hidden = data_overlap ? 1 : 0;
  return stack;
}

/// Full recomputation has nothing to offload but its inputs, and nothing to gather again.
std::vector<Part> parts_of_grid() {
  constexpr std::string_view kFull = "recompute=full,offload=none|optimizer";
  constexpr std::string_view kOthers =
      "recompute=none|selective,offload=none|optimizer|activations|optimizer+activations";
  struct Way {
    std::string_view name;
    bool sequence_parallel, scattered, regathered;
  };
  constexpr std::array kWays = {Way{"ar", false, false, true}, Way{"p2p_rs_ag", false, true, true},
                                Way{"rs_ag", true, true, true}, Way{"rs_ag, kept gathered", true, true, false}};
  std::vector<Part> parts;
  for (const std::string_view overlap : {"none", "ring", "pipe"}) {
    for (const bool data_overlap : {false, true}) {
      for (const Way& way : kWays) {
        for (const std::string_view kept : {kFull, kOthers}) {
          if (kept == kFull && !way.regathered) continue;
          Part part{.name = fmt::format("{}, overlap {}{}", way.name, overlap, data_overlap ? ", dp overlap" : "")};
          StackSpec stack = stack_of_grid(overlap, data_overlap);
          stack.scattered_messages = way.scattered;
          stack.regathered_inputs = way.regathered;
          part.training = {.global_batch = kBatch, .sequence = 2048, .stack = std::move(stack)};
          part.space = parse_layout_space(
              fmt::format("cp=1,zero=0|1,group=0,recompute_layers=0,schedule=1f1b|interleaved,sp={},{}",
                          way.sequence_parallel ? 1 : 0, kept));
          parts.push_back(std::move(part));
        }
      }
    }
  }
  return parts;
}

std::vector<int> factors(int of) {
  std::vector<int> result;
  for (int factor = 1; factor <= of; ++factor)
    if (of % factor == 0) result.push_back(factor);
  return result;
}

/// Returns the candidates of Calculon's optimal-execution search for a system with a second memory and two networks
/// (calculon-ai/calculon, calculon/llm/optimal_execution.py).
std::int64_t count_candidates() {
  constexpr std::int64_t kNetworks = 2, kTwo = 2, kOverlaps = 3;
  std::int64_t all = 0;
  for (const int tensor : factors(kDevices)) {
    if (kHeads % tensor != 0) continue;
    for (const int pipeline : factors(std::min(kDevices / tensor, kBlocks))) {
      if (kDevices % (tensor * pipeline) != 0 || kBlocks % pipeline != 0) continue;
      const int data = kDevices / (tensor * pipeline);
      const auto chunks = pipeline == 1 ? 1 : std::ssize(factors(kBlocks / pipeline));
      const auto microbatches = std::ssize(factors(kBatch / data));
      const std::int64_t if_data = data > 1 ? kTwo : 1;
      const std::int64_t networks =
          (tensor > 1 ? kNetworks : 1) * (pipeline > 1 ? kNetworks : 1) * (data > 1 ? kNetworks : 1);
      // [recomputation] ways of the tensor group times offloads of weights, optimizer and activations
      const std::int64_t full = 3 * kTwo * kTwo, others = 2 * 4 * kTwo * kTwo * kTwo;
      all += chunks * microbatches * if_data * if_data * (tensor > 1 ? kOverlaps : 1) * networks * (full + others);
    }
  }
  return all;
}

void print_search(const std::vector<Part>& parts) {
  double best = std::numeric_limits<double>::infinity();
  std::string found;
  SearchCounts counts;
  const double start = thread_seconds();
  for (const Part& part : parts) {
    Pricing pricing(preset_model("gpt3-175b"), preset_cluster("a100:512"), part.training);
    const SearchResult result =
        search_layouts(pricing, part.space, {.threads = 1, .keep = 1, .below = best, .advise = false});
    counts += result.counts;
    if (result.values.empty() || result.values.front() >= best) continue;
    best = result.values.front();
    found = fmt::format("{} ({})", to_text(result.ranked.front().layout), part.name);
  }
  const double seconds = thread_seconds() - start;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "search: {:.2f} s of processor time, {} MB; {} families bounded, {} layouts priced, {} simulated, {} "
      "evaluated; {:.0f} of Calculon's candidates a second, Calculon {:.0f}\n  the best takes {:.4f} s: {}\n",
      seconds, usage.ru_maxrss / 1000, counts.families, counts.priced, counts.evaluations - counts.simulated,
      counts.simulated, kCalculonCandidates / seconds, kCalculonCandidates / kGridSeconds, best, found);
}

/// Prices each layout as Calculon does: its stages and their bound, without a simulation.
void print_flat(const std::vector<Part>& parts) {
  std::int64_t layouts = 0;
  SimTime least = SimTime::max();
  const double start = thread_seconds();
  for (const Part& part : parts) {
    Pricing pricing(preset_model("gpt3-175b"), preset_cluster("a100:512"), part.training);
    const Skeletons skeletons;
    visit_layouts(pricing, part.space, [&](const Layout& layout) {
      const Skeleton& known = *skeletons.find(layout);
      const PricedLayout priced = price_layout(pricing, layout, known.schedule, known.order);
      least = std::min(least,
                       step_time_lower_bound(stage_table(priced), known.bound, microbatches_of(part.training, layout)));
      return ++layouts > 0;
    });
  }
  const double seconds = thread_seconds() - start;
  fmt::print("flat: {} layouts priced in {:.2f} s, {:.1f} us each; no step below {:.3f} s\n", layouts, seconds,
             1e6 * seconds / static_cast<double>(layouts), plumb::seconds(least));
}

/// Looks at every layout in its turn, without the tree's bounds and without holding any.
void print_exhaustive(const std::vector<Part>& parts) {
  const EvaluationOptions shared{.simulation = {.record_timeline = false}, .network = NetworkOptions{}};
  SimTime least = SimTime::max();
  std::string best;
  const double start = thread_seconds();
  for (const Part& part : parts) {
    Pricing pricing(preset_model("gpt3-175b"), preset_cluster("a100:512"), part.training);
    const Skeletons skeletons;
    HeldBytes held(pricing);
    visit_layouts(pricing, part.space, [&](const Layout& layout) {
      const Skeleton& known = *skeletons.find(layout);
      const PricedLayout priced = price_layout(pricing, layout, known.schedule, known.order);
      const StageTable stages = stage_table(priced);
      if (step_time_lower_bound(stages, known.bound, microbatches_of(part.training, layout)) >= least) return true;
      const std::vector<std::int64_t> in_issue_order = held.of(layout, priced);  // the step below tells the rest
      if (memory_shortfall(in_issue_order, pricing.cluster().device, pricing.memory_headroom(layout))) return true;
      if (evaluate_sums(pricing, layout, held.price(layout)).simulation.makespan >= least) return true;
      const Simulation step = evaluate(pricing, layout, held.price(layout), shared).simulation;
      const bool fits =
          !memory_shortfall(step.peak_memory_bytes, pricing.cluster().device, pricing.memory_headroom(layout));
      if (!fits || step.makespan >= least) return true;
      least = step.makespan;
      best = fmt::format("{} ({})", to_text(layout), part.name);
      return true;
    });
  }
  fmt::print("exhaustive: {:.2f} s; the best takes {:.4f} s: {}\n", thread_seconds() - start, seconds(least), best);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Part> parts = parts_of_grid();
  fmt::print("gpt3-175b a100:512 --global-batch {}: {} candidates of Calculon\n", kBatch, count_candidates());
  print_search(parts);
  if (argc < 2 || std::string_view(argv[1]) != "flat") return 0;
  print_flat(parts);
  print_exhaustive(parts);
}
