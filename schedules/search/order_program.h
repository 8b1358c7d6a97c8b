#pragma once
// The shortest order as an integer program: a second way to settle a question that branch and bound leaves open.
//
// The program is the disjunctive one of job shops (Manne, "On the job-shop scheduling problem", 1960). A variable s is the
// start of an action, and y is 1 where one of two actions of a rank, a and b, runs before the other:
//   least time   with   s_b >= s_a + d_a + hop             where b needs a,
//                       s_b >= s_a + d_a - M (1 - y_ab)    and   s_a >= s_b + d_b - M y_ab   for two of a rank,
//                       time >= s_a + d_a                  (in a span: less the start of the rank's first action),
//                       y_ab <= y_cb and y_ab <= y_ad      where a needs c, and d needs b, on the rank,
//   and, for each forward, the bytes of all actions before it and its own within the rank's memory.
// Micro-batches ascend, as in exact_order.h. Times that an order below the given time leaves to each action decide most of
// the y beforehand, and make each M as small as can be. (A variable for each action and moment in their place is a
// thousand times slower: 3.6 to 37 s against 0.01 s with CBC 2.10 for 3 ranks and 4 micro-batches.)
//
// A solver computes in doubles. All numbers of the program are therefore small integers: times are whole units, the
// greatest common divisor of the costs where that makes no more than 10^5 of them. Otherwise, and for bytes as well,
// durations and sizes are rounded so that the program allows more than the question does: starts of any order, rounded
// down, keep to it. What the solver proves of the program so holds for the question. The time may be no more than half a
// unit below the given one, so that every order that is shorter keeps to that by half a unit, where tolerances of solvers
// are below a thousandth. The order that it finds is timed in picoseconds, and its memory counted in bytes, before it is
// believed.

#include <cstdint>
#include <string>

#include "schedules/bounds/lower_bound.h"
#include "schedules/search/integer_solver.h"

namespace plumb { inline namespace schedules {

/// The most slices of micro-batches on all stages: their program has some thousand variables.
inline constexpr int kMostProgramPasses = 128;

/// True if solved_order() knows the question: one that is_searchable_exactly(), whose program is not too large.
bool is_programmable(const OrderQuestion& question);

/// Returns the program in CPLEX's LP form that has the orders below a time; an empty text if the times that they leave
/// contradict each other, so that there is none. Throws ScheduleError if the question is none that is_programmable().
std::string order_program(const OrderQuestion& question, std::int64_t below);

struct SolvedOrder {
  Schedule schedule;       ///< without lists where nothing below the given time was found
  std::int64_t time = 0;   ///< of the question's objective
  std::int64_t bound = 0;  ///< no order in which micro-batches ascend takes less; 0 if the solver proved nothing
  std::string solver;      ///< the name of the one that proved it; empty if its program contradicts itself
};

/// Returns what a solver finds of the orders below a time. Throws as order_program() does.
SolvedOrder solved_order(const OrderQuestion& question, std::int64_t below, const IntegerSolver& solver);

/// Returns the bound that a solver proved.
LowerBound program_bound(std::int64_t time, const std::string& solver);

/// True if a bound is one of program_bound(): it is the solver's word, and computed again by asking one.
bool is_program_bound(const LowerBound& bound);

}}  // namespace plumb::schedules
