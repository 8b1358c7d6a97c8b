#pragma once
// A certificate says what a schedule was made for, how long it takes, and why no order takes less than its
// bound. It can be checked from the schedule and the costs alone.
//
//   {"plumb_format": 1, "objective": "span", "whole_backwards": false,
//    "costs_ps": {"forward": [..], "input_grad": [..], "weight_grad": [..], "hop": [..],
//                 "gradient_hop": [..], "hop_busy": null or [..], "gradient_hop_busy": null or [..],
//                 "pair_input_grad": null or [..], "pair_backward": null or [..]},
//    "memory": {"activation_bytes": [..], "released_at_input_grad_bytes": [..], "max_bytes": [..]},
//    "time_ps": 4396, "bound": {"time_ps": 4396, "reason": "the work of rank 0", "terms": [{"what": "..",
//    "time_ps": 871}, ..]}}
//
// Costs are by stage, max_bytes by rank; "memory" is null where there is no limit. Pairs' costs are by the forward's stage
// and then by the backward's, and null where no overlapped pair takes less time than its two actions. A file without "gradient_hop" has
// hops that take as long for the gradient as for the activation.

#include <string>
#include <string_view>
#include <vector>

#include "schedules/bounds/lower_bound.h"
#include "schedules/search/search_schedule.h"

namespace plumb { inline namespace schedules {

struct Certificate {
  Objective objective = Objective::kSpan;
  bool whole_backwards = false;
  OrderCosts costs;  ///< in picoseconds
  ActivationMemory memory;
  std::int64_t time = 0;  ///< of the objective
  LowerBound bound;
};

/// Returns the certificate of a schedule that was found for the question.
Certificate certificate_of(const OrderQuestion& question, const FoundSchedule& found);

/// Returns the text of a certificate's file, and reads it. Reading throws SpecError with file, place and
/// remedy.
std::string certificate_text(const Certificate& certificate);
Certificate parse_certificate(std::string_view text, const std::string& file);

/// Returns what a certificate says wrongly of a schedule, a sentence each: costs or memory of other stages,
/// more memory than its limit, another time, or a bound that its costs do not give. A bound by an
/// exhaustive search, of all ranks or of one, is searched again. One that a solver of integer programs proved is the
/// solver's word alone: the given one is asked again, and without it such a bound is a fault.
std::vector<std::string> certificate_faults(const Certificate& certificate, const Schedule& schedule,
                                            const IntegerSolver& solver = {});

}}  // namespace plumb::schedules
