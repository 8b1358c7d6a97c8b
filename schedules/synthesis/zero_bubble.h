#pragma once
// Makes a schedule for given costs and memory, and says how far from the best it can be (after ZB-auto of Qi et al.
// 2024, which assumes equal stages).
//
//   Synthesis s = synthesize_zero_bubble(costs);
//   s.span == s.bound   // proved: no order within that memory has a shorter span

#include "schedules/schedule.h"
#include "schedules/synthesis/chain.h"

namespace plumb { inline namespace schedules {

struct Synthesis {
  Schedule schedule;  ///< F, I and W; named "zb-auto"
  SimTime span{0};    ///< largest time over the ranks from the start of a first action to the end of the last
  SimTime bound{0};   ///< chain_span_bound of the costs
};

/// Returns the best of a thousand list schedules: warm-ups from that of 1F1B to two and a half times as long, several
/// degrees of patience with gaps, forwards or input gradients first. Then one rank's rule at a time is varied as long
/// as that shortens the span. Rules that would list the same as earlier ones are left out. The search stops early at the bound. At last each rank in its turn gets by with as much
/// less memory as costs no time. The effort is bounded (to about half a minute): where the ranks times the
/// micro-batches are many, rules are sought with fewer micro-batches, and with as many candidates as the effort allows.
/// Throws ScheduleError if the lists are not equally long, are empty, or a rank cannot hold one activation.
Synthesis synthesize_zero_bubble(const ChainCosts& costs);

}}  // namespace plumb::schedules
