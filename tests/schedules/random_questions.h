#pragma once
// Random questions: unequal or equal stages, hops by link, memory by rank, both kinds of backwards, both
// objectives.

#include <algorithm>
#include <random>
#include <string>

#include "schedules/bounds/order_question.h"

namespace plumb::test {

/// The size of a question and its placement: "chain", "loop", "v", "wave" or "bidirectional".
struct QuestionSize {
  std::string placement = "chain";
  int ranks = 2;
  int microbatches = 2;
  int slices = 1;
  bool busy_links = false;   ///< messages have their link to themselves for a part of their hop
  bool slower_back = false;  ///< hops of gradients are others than those of activations
  bool pairs = false;        ///< overlapped pairs take less time than their two actions
};

inline OrderQuestion random_question(std::mt19937_64& random, const QuestionSize& size) {
  const auto between = [&random](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  const int p = size.ranks;
  const int chunks = size.placement == "chain" ? 1 : size.placement == "wave" ? 3 : 2;
  OrderQuestion question{
      .frame = {.name = "random", .microbatches = size.microbatches}, .ranks = p, .slices = size.slices};
  question.frame.stages = size.placement == "bidirectional"                   ? bidirectional_placement(p)
                          : size.placement == "v" || size.placement == "wave" ? snake_placement(p, p * chunks)
                                                                              : loop_placement(p, p * chunks);
  const std::size_t stages = question.frame.stages.size();
  const bool equal = between(0, 2) == 0;
  const auto costs = [&](int least, int most, int smallest) {
    const int mean = between(least, most);
    std::vector<std::int64_t> of_parts;
    for (std::size_t part = 0; part < stages; ++part) {
      of_parts.push_back(std::max(smallest, equal ? mean : mean * between(60, 160) / 100));
    }
    std::vector<std::int64_t> of_stages;  // copies of a part cost the same
    for (const StagePlace& place : question.frame.stages) of_stages.push_back(of_parts[place.model_part]);
    return of_stages;
  };
  question.costs = {.forward = costs(1, 20, 1), .input_grad = costs(1, 20, 1), .weight_grad = costs(0, 20, 0)};
  question.costs.hop = both_ways(costs(0, between(0, 1) * 8, 0));
  if (size.slower_back) question.costs.hop.gradient = costs(1, 20, 0);
  question.whole_backwards = between(0, 3) == 0;
  question.objective = between(0, 1) == 0 ? Objective::kSpan : Objective::kMakespan;
  question.memory.activation_bytes.assign(stages, 10);
  question.memory.released_at_input_grad_bytes.assign(stages, between(0, 2) == 0 ? between(1, 9) : 0);
  if (between(0, 5) > 0) {
    for (int r = 0; r < p; ++r) {
      question.memory.max_bytes.push_back(10 * chunks * (size.slices - 1 + between(1, 2 * p)) + between(0, 9));
    }
  }
  if (size.busy_links) {
    question.costs.hop_busy = both_ways(costs(1, 20, 1));
    if (size.slower_back) question.costs.hop_busy.gradient = costs(1, 40, 1);
    question.costs.hop = question.costs.hop_busy;
    const int latency = between(0, 5);
    for (std::int64_t& hop : question.costs.hop.activation) hop += latency;
    for (std::int64_t& hop : question.costs.hop.gradient) hop += latency;
  }
  if (size.pairs) {
    const OrderCosts& costs_alone = question.costs;
    PairTimes pairs;
    for (std::size_t f = 0; f < stages; ++f) {
      for (std::size_t b = 0; b < stages; ++b) {
        const std::int64_t hidden_pct = between(0, 100);
        const auto together = [&](std::int64_t backward) {
          const std::int64_t forward = costs_alone.forward[f];
          return forward + backward - (f == b ? 0 : hidden_pct * std::min(forward, backward) / 100);
        };
        if (!question.whole_backwards) pairs.input_grad.push_back(together(costs_alone.input_grad[b]));
        pairs.backward.push_back(together(costs_alone.input_grad[b] + costs_alone.weight_grad[b]));
      }
    }
    question.costs.pairs = pairs;
  }
  return question;
}

}  // namespace plumb::test
