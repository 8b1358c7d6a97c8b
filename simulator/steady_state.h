#pragma once
// A schedule's long middle repeats: after some micro-batches every rank does the same again, one period later. Once the
// times repeat as well, shifted by a constant, they do so to the end of the middle. The time that further periods would
// add is then known exactly without simulating them: 32768 accumulation steps cost as much work as 64 do.
//
// The proof, in terms of compiled steps (simulator/compile/compiled_schedule.h). The steps for m + period micro-batches
// are those for m with one block of L steps inserted somewhere in a stretch that repeats with that block: compared step
// by step, with the distance to the step that wrote each register read. Let no step of the stretch read further back
// than W steps, and let, for W steps in a row, start and departure of the step L behind be later by one shift. A time
// is a maximum of earlier times plus a cost, so by induction every later step of the stretch is shifted against the one
// L ahead of it, and every step behind n inserted blocks by n shifts. Memory repeats if a block takes as much as it
// gives back on every rank.

#include "schedules/cost_table.h"
#include "simulator/shorter_schedules.h"
#include "simulator/simulate.h"

namespace plumb { inline namespace simulator {

/// Returns the sums of simulate(repeating.lowered(repeating.microbatches), costs, {.record_timeline = false}), to the
/// picosecond. They come from the steady state of a shorter schedule of the same remainder where that is proven (engine
/// "steady state"), otherwise from the whole schedule. Throws as simulate does for a schedule that is known to be
/// valid.
Simulation simulate_repeating(const RepeatingSchedule& repeating, const CostTable& costs,
                              Sends sends = Sends::kBuffered);

}}  // namespace plumb::simulator
