// Measures how soon a search of schedules has its first answer and its last one, in processor time.
//
//   search_bench [ranks microbatches]      (default 16 48: a chain and a V, at once and twice 1F1B's memory)

#include <cstdlib>

#include <fmt/format.h>

#include "schedules/search/search_schedule.h"
#include "tests/bench/stopwatch.h"

namespace {

using namespace plumb;
using namespace plumb::test;

void measure(const char* name, const std::vector<StagePlace>& stages, int ranks, int microbatches, int memory_ratio) {
  const int count = static_cast<int>(stages.size());
  OrderQuestion question{
      .frame = {.name = name, .microbatches = microbatches, .stages = stages},
      .ranks = ranks,
      .costs = equal_costs({.forward = 1000, .input_grad = 1100, .weight_grad = 900, .hop = 50}, count)};
  question.memory = counted_activations(question, memory_ratio * count);
  const double start = thread_seconds();
  double first = 0;
  const auto progress = [&](std::int64_t, std::int64_t) {
    if (first == 0) first = thread_seconds() - start;
  };
  const FoundSchedule found = search_schedule(question, {.progress = progress}).value();
  fmt::print("{:<6} {} x memory: first answer {:.3f} s, last {:.3f} s, {:.2f} % above the bound\n", name, memory_ratio,
             first, thread_seconds() - start,
             100 * (static_cast<double>(found.time) / static_cast<double>(found.bound.time) - 1));
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 16;
  const int microbatches = argc > 2 ? std::atoi(argv[2]) : 48;
  for (const int memory_ratio : {1, 2}) {
    measure("chain", loop_placement(ranks, ranks), ranks, microbatches, memory_ratio);
    measure("v", snake_placement(ranks, 2 * ranks), ranks, microbatches, memory_ratio);
  }
}
