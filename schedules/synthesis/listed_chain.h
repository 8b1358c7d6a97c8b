#pragma once
// Makes an order for a chain of stages, one a rank, by given costs and memory (after ZB-auto of Qi et al.
// 2024, which assumes equal stages). With whole backwards it is an order of F and B.
//
//   ListedChain made = list_chain(question, best_bound(question).time);

#include <cstdint>
#include <functional>

#include "schedules/bounds/order_question.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct ListedChain {
  Schedule schedule;      ///< with the frame's name
  std::int64_t time = 0;  ///< of the question's objective
};

/// The effort that list scheduling may spend, and when it may end.
struct ChainEffort {
  std::int64_t most_actions = 100'000'000;  ///< listed over all candidates; the default takes 10 to 20 s on one core
  std::function<bool()> is_stopped;         ///< ends the search early where it gives true; may be empty
};

/// Returns the best of a thousand list schedules: warm-ups from that of 1F1B to two and a half times as long,
/// several degrees of patience with gaps, forwards or input gradients first. Then one rank's rule at a time is
/// varied as long as that shortens the time. Rules that would list the same as earlier ones are left out. The
/// search stops at the time `goal`, a lower bound for instance. At last each rank in its turn gets by with as much
/// less memory as costs no time. Where the ranks times the micro-batches are many, rules are sought with fewer
/// micro-batches, and with as many candidates as the effort allows. The schedule has no lists if the search is
/// stopped before its first order. Throws ScheduleError if the frame is no chain, its costs or its memory are not of
/// every rank, or a rank cannot hold one activation.
ListedChain list_chain(const OrderQuestion& question, std::int64_t goal, const ChainEffort& effort = {});

}}  // namespace plumb::schedules
