// Measures the time of one layout's whole estimate without a simulation: the prices of every operation, message and
// collective of every stage, their memory, the step's lower bound and each rank's peak memory. Stages that are alike
// are priced once. The time with the prices laid out by stage, as a simulation needs them, is printed beside it.
//
//   estimate_bench [repeats]
//
// Tables are warm, as in a search: placements and layers of this layout have been priced before, and the schedule's
// order exists with the numbers that estimates ask of it.

#include <cstdlib>

#include <fmt/format.h>

#include "planner/evaluate/evaluation.h"
#include "planner/evaluate/priced_layout.h"
#include "planner/search/bounds.h"
#include "tests/bench/stopwatch.h"
#include "tests/planner/fixtures.h"

namespace {

using namespace plumb;
using namespace plumb::test;

constexpr double kMicro = 1e-6;
constexpr int kInner = 100;

void time_estimate(const char* model, const char* cluster, std::int64_t global_batch, const char* layout_text,
                   bool with_stack, int repeats) {
  TrainingSpec training{.global_batch = global_batch, .sequence = 2048};
  if (with_stack) training.stack = parse_stack(source_text("tools/specs/stacks/megatron-core.json"), "megatron-core");
  Pricing pricing(preset_model(model), preset_cluster(cluster), training);
  const Layout layout = layout_of(parse_layout(layout_text));
  const Schedule order = order_of(training, layout);
  const std::int64_t microbatches = microbatches_of(training, layout);
  const StageOrder stage_facts = stage_order(order);
  const BoundOrder bound_facts = bound_order(order);
  const HeldOrder held_facts = held_order(order, price_layout(pricing, layout, order, stage_facts).kind_of_stage);

  const auto microseconds = [&](auto&& run) {
    return fastest_seconds(repeats,
                           [&] {
                             for (int i = 0; i < kInner; ++i) run();
                           }) /
           kInner / kMicro;
  };
  PricedLayout priced;
  const double prices = microseconds([&] { priced = price_layout(pricing, layout, order, stage_facts); });
  const StageTable stages = stage_table(priced);
  SimTime bound{0};
  const double bounds = microseconds([&] { bound = step_time_lower_bound(stages, bound_facts, microbatches); });
  std::vector<std::int64_t> peaks;
  const double memory = microseconds([&] { peaks = memory_in_issue_order(priced.kinds, held_facts); });
  CostTable by_stage;
  const double laid_out = microseconds([&] { by_stage = cost_table(price_layout(pricing, layout, order)); });
  fmt::print(
      "{} {} {}{}: estimate {:.2f} us (prices {:.2f}, bound of the step {:.2f}, peak memory by issue order {:.2f}); "
      "laid out by stage for a simulation {:.2f} us\n",
      model, cluster, layout_text, with_stack ? " (megatron-core)" : "", prices + bounds + memory, prices, bounds,
      memory, laid_out);
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 200;
  for (const bool with_stack : {false, true}) {
    time_estimate("llama-2-7b", "h100:8", 64, "dp=8,tp=1,pp=1,mbs=1,zero=1", with_stack, repeats);
    time_estimate("llama-2-70b", "h100:64", 128, "dp=2,tp=8,pp=4,mbs=1,sp=1,zero=1", with_stack, repeats);
    time_estimate("gpt3-175b", "a100:512", 512, "dp=8,tp=8,pp=8,mbs=1,sp=1,zero=1,recompute=selective", with_stack,
                  repeats);
    time_estimate("gpt3-175b", "a100:512", 512, "dp=8,tp=8,pp=8,v=2,mbs=1,sp=1,schedule=interleaved", with_stack,
                  repeats);
    time_estimate("gpt3-175b", "a100:1024", 512, "dp=4,tp=8,pp=32,v=3,mbs=1,sp=1,schedule=interleaved", with_stack,
                  repeats);
    time_estimate("gpt3-175b", "a100:512", 512, "dp=1,tp=8,pp=64,mbs=1,sp=1", with_stack, repeats);
  }
  time_estimate("deepseek-v3", "h100:2048", 2048, "dp=16,ep=16,tp=8,pp=16,v=2,mbs=1,sp=1,schedule=interleaved", true,
                repeats);
}
