#pragma once
// Predicted timelines to look at, which the tests of traces/ share.

#include <string_view>

#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/simulate.h"

namespace plumb::test {

inline constexpr SimTime kSecond{1'000'000'000'000};

/// Returns a timeline with forward 1 s and backward 2 s of a chunk.
inline Timeline predicted_timeline(std::string_view name, int ranks, int microbatches, int chunks = 1,
                                   double hop_s = 0) {
  const Schedule schedule =
      lower(make_schedule(name, {.ranks = ranks, .microbatches = microbatches, .chunks = chunks}));
  return simulate(schedule, chunk_cost_table(ranks * chunks, {.backward = {Seconds{2}}, .hop_latency = Seconds{hop_s}}))
      .timeline;
}

/// Returns how often a part stands in a text.
inline int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

}  // namespace plumb::test
