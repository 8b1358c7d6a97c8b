#pragma once
// The question that an order answers: a placement, costs, memory, and the time that counts.
//
//   OrderQuestion question{.frame = {.microbatches = 8, .stages = loop_placement(4, 4)},
//                          .ranks = 4,
//                          .costs = equal_costs({.weight_grad = 1}, 4)};
//   question.memory = counted_activations(question, 4);   // F = I = W = 1, 4 activations a rank

#include <cstdint>
#include <string_view>
#include <vector>

#include "schedules/bounds/order_costs.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// The time that counts: the makespan of a synchronous optimizer step, or the zero-bubble papers' span, the
/// largest time over the ranks from the start of a rank's first action to the end of its last.
enum class Objective : std::uint8_t { kSpan, kMakespan };

/// Returns "span" or "makespan".
std::string_view objective_name(Objective objective);

/// A micro-batch holds its stage's activation bytes from the start of F on. The end of I frees a part of them
/// and the end of W, or of a whole backward, the rest.
struct ActivationMemory {
  std::vector<std::int64_t> activation_bytes;              ///< [stage]
  std::vector<std::int64_t> released_at_input_grad_bytes;  ///< [stage]
  std::vector<std::int64_t> max_bytes;                     ///< [rank] the most that it may hold; empty: any number
};

struct OrderQuestion {
  Schedule frame;  ///< name, micro-batches and stages; its lists are empty
  int ranks = 1;
  int slices = 1;  ///< pieces that each micro-batch's sequence is cut into; costs and memory are of one of them
  OrderCosts costs;
  bool whole_backwards = false;
  Objective objective = Objective::kSpan;
  ActivationMemory memory;  ///< all empty: any number
};

/// Returns the pieces that a schedule cuts its sequences into: 1 + the largest part of a forward.
int slices_of(const Schedule& schedule);

/// Returns the memory of `most` activations on every rank (0 for any number), of one byte each, that W frees.
ActivationMemory counted_activations(const OrderQuestion& question, int most);

/// Returns the bytes of activations that an action adds to its rank (F, at its start) or takes from it (at
/// its end).
std::int64_t bytes_added(const ActivationMemory& memory, const Action& action);

/// Returns the most bytes that a rank with this list of actions holds at once.
std::int64_t peak_bytes(const ActivationMemory& memory, const std::vector<Action>& actions);

/// True if no rank of the order holds more than it may.
bool fits_memory(const OrderQuestion& question, const Schedule& order);

}}  // namespace plumb::schedules
