#pragma once
// The slow, obviously right way to share links: at every event it solves the whole problem anew, by textbook
// progressive filling. It shares no code with simulator/network/flow/max_min.cpp and flows.cpp.

#include <algorithm>
#include <limits>
#include <vector>

#include "simulator/network/flow/max_min.h"

namespace plumb::test {

struct ReferenceFlow {
  std::vector<LinkUse> uses;
  double cap = 0;
  double weight = 1;
  double start_s = 0;
  double bytes = 0;
};

/// Flows and the links that they share.
struct Scenario {
  std::vector<double> capacities;  ///< [link]
  std::vector<ReferenceFlow> flows;
};

/// Raises all rates in step with their weights. In each round the first limit that any of them meets is found by trying
/// all links and all caps.
inline std::vector<double> reference_rates(const std::vector<double>& capacities,
                                           const std::vector<ReferenceFlow>& flows) {
  constexpr double kAtLimit = 1e-9;
  std::vector<double> rates(flows.size(), 0.0);
  std::vector<bool> rising(flows.size(), true);
  while (std::ranges::find(rising, true) != rising.end()) {
    std::vector<double> used(capacities.size(), 0.0);
    std::vector<double> load(capacities.size(), 0.0);
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < flows.size(); ++f) {
      for (const LinkUse& use : flows[f].uses) {
        used[use.link] += use.share * rates[f];
        if (rising[f]) load[use.link] += use.share * flows[f].weight;
      }
      if (rising[f]) step = std::min(step, (flows[f].cap - rates[f]) / flows[f].weight);
    }
    for (std::size_t link = 0; link < capacities.size(); ++link) {
      if (load[link] > 0) step = std::min(step, (capacities[link] - used[link]) / load[link]);
    }
    step = std::max(step, 0.0);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (rising[f]) rates[f] += step * flows[f].weight;
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (rates[f] >= flows[f].cap * (1 - kAtLimit)) rising[f] = false;
      for (const LinkUse& use : flows[f].uses) {
        const double left = capacities[use.link] - used[use.link] - step * load[use.link];
        if (left <= capacities[use.link] * kAtLimit) rising[f] = false;
      }
    }
  }
  return rates;
}

/// Returns [flow] when it ends, in seconds.
inline std::vector<double> reference_ends(const std::vector<double>& capacities,
                                          const std::vector<ReferenceFlow>& flows) {
  std::vector<double> left(flows.size());
  for (std::size_t f = 0; f < flows.size(); ++f) left[f] = flows[f].bytes;
  std::vector<double> ends(flows.size(), -1);
  double now = 0;
  for (;;) {
    std::vector<ReferenceFlow> running;
    std::vector<std::size_t> numbers;
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (ends[f] >= 0) continue;
      if (flows[f].start_s > now) {
        next = std::min(next, flows[f].start_s);
      } else {
        running.push_back(flows[f]);
        numbers.push_back(f);
      }
    }
    const std::vector<double> rates = reference_rates(capacities, running);
    for (std::size_t i = 0; i < running.size(); ++i) next = std::min(next, now + left[numbers[i]] / rates[i]);
    if (next == std::numeric_limits<double>::infinity()) return ends;
    for (std::size_t i = 0; i < running.size(); ++i) {
      left[numbers[i]] -= rates[i] * (next - now);
      if (left[numbers[i]] <= running[i].bytes * 1e-9) ends[numbers[i]] = next;
    }
    now = next;
  }
}

}  // namespace plumb::test
