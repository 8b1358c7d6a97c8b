#include "schedules/search/certificate.h"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/bounds/rank_alone.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/strict_json.h"
#include "schedules/search/exact_order.h"
#include "schedules/search/order_program.h"
#include "schedules/synthesis/local_search.h"
#include "schedules/time.h"

namespace plumb { inline namespace schedules {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kAnyEffort = std::numeric_limits<std::int64_t>::max();

ordered_json memory_json(const ActivationMemory& memory) {
  if (memory.max_bytes.empty()) return nullptr;
  return {{"activation_bytes", memory.activation_bytes},
          {"released_at_input_grad_bytes", memory.released_at_input_grad_bytes},
          {"max_bytes", memory.max_bytes}};
}

ordered_json times_json(const std::vector<std::int64_t>& times) {
  return times.empty() ? ordered_json(nullptr) : ordered_json(times);
}

std::vector<std::int64_t> counts(StrictObject& object, std::string_view key) {
  std::vector<std::int64_t> numbers = object.integers(key);
  for (const std::int64_t number : numbers) {
    if (number < 0 || number > kLongestCost.count()) object.fail(key, "numbers of 0 or more are wanted");
  }
  return numbers;
}

ActivationMemory memory_from(StrictObject object) {
  ActivationMemory memory{.activation_bytes = counts(object, "activation_bytes"),
                          .released_at_input_grad_bytes = counts(object, "released_at_input_grad_bytes"),
                          .max_bytes = counts(object, "max_bytes")};
  object.finish();
  return memory;
}

LowerBound bound_from(StrictObject object) {
  LowerBound bound{.time = object.non_negative_integer("time_ps", kLatestMoment.count()),
                   .reason = object.text("reason")};
  for (StrictObject& term : object.objects("terms")) {
    bound.terms.push_back({.what = term.text("what"), .time = term.positive_integer("time_ps", kLatestMoment.count())});
    term.finish();
  }
  object.finish();
  return bound;
}

/// Returns a sentence if a list has not as many entries as there are stages (ranks).
std::string wrong_length(std::string_view what, std::size_t entries, std::size_t wanted) {
  if (entries == wanted) return {};
  return fmt::format("it has {} entries of {}, where the schedule has {}", entries, what, wanted);
}

std::string wrong_lengths(const Certificate& certificate, const Schedule& schedule) {
  const std::size_t stages = schedule.stages.size();
  const OrderCosts& costs = certificate.costs;
  const ActivationMemory& memory = certificate.memory;
  std::vector<std::string> faults = {wrong_length("forward costs", costs.forward.size(), stages),
                                     wrong_length("input gradients' costs", costs.input_grad.size(), stages),
                                     wrong_length("weight gradients' costs", costs.weight_grad.size(), stages),
                                     wrong_length("hops", costs.hop.activation.size(), stages),
                                     wrong_length("gradients' hops", costs.hop.gradient.size(), stages)};
  if (costs.has_busy_links()) {
    faults.push_back(wrong_length("busy hops", costs.hop_busy.activation.size(), stages));
    faults.push_back(wrong_length("gradients' busy hops", costs.hop_busy.gradient.size(), stages));
  }
  for (const std::vector<std::int64_t>* of : {&costs.pairs.input_grad, &costs.pairs.backward}) {
    if (!of->empty()) faults.push_back(wrong_length("pairs' costs", of->size(), stages * stages));
  }
  if (!memory.max_bytes.empty()) {
    faults.push_back(wrong_length("activation bytes", memory.activation_bytes.size(), stages));
    faults.push_back(wrong_length("released bytes", memory.released_at_input_grad_bytes.size(), stages));
    faults.push_back(wrong_length("ranks' memory", memory.max_bytes.size(), schedule.ranks.size()));
  }
  for (std::string& fault : faults) {
    if (!fault.empty()) return std::move(fault);
  }
  return {};
}

/// Returns the bound that the question gives for the reason that the certificate has.
LowerBound recomputed_bound(const OrderQuestion& question, const LowerBound& stated, std::int64_t time) {
  for (int r = 0; r < question.ranks; ++r) {
    if (stated.reason == rank_alone_reason(r)) return rank_alone_bound(question, r, time, kAnyEffort);
  }
  if (stated.reason != exhaustive_bound(0).reason || !is_searchable_exactly(question)) return best_bound(question);
  const ExactOrder exact = exact_order(question, stated.time, {.most_nodes = kAnyEffort});
  return exhaustive_bound(exact.time);
}

/// Returns what is wrong with a bound that a solver proved, as far as another one says: an order below it, or nothing.
std::string program_fault(const OrderQuestion& question, const Certificate& certificate, const IntegerSolver& solver) {
  const std::int64_t stated = certificate.bound.time;
  if (!is_programmable(question)) return "its bound is by an integer program, and its schedule is too large for one";
  if (stated > certificate.time) return fmt::format("its own schedule is below the bound of {} ps", stated);
  if (!solver) {
    return "its bound is the word of a solver of integer programs, and none is here to be asked again: install CBC "
           "(coinor-cbc) or HiGHS";
  }
  const SolvedOrder below = solved_order(question, stated, solver);
  if (below.bound >= stated) return {};
  return below.schedule.ranks.empty()
             ? fmt::format("its bound of {} ps is the word of a solver, and the one here does not say so", stated)
             : fmt::format("an order takes {} ps, below the bound of {} ps", below.time, stated);
}

}  // namespace

Certificate certificate_of(const OrderQuestion& question, const FoundSchedule& found) {
  return {.objective = question.objective,
          .whole_backwards = question.whole_backwards,
          .costs = question.costs,
          .memory = question.memory,
          .time = found.time,
          .bound = found.bound};
}

std::string certificate_text(const Certificate& certificate) {
  const OrderCosts& costs = certificate.costs;
  ordered_json terms = ordered_json::array();
  for (const BoundTerm& term : certificate.bound.terms) terms.push_back({{"what", term.what}, {"time_ps", term.time}});
  return json_file_text(with_format(
      FileForm::kCertificate,
      {{"objective", objective_name(certificate.objective)},
       {"whole_backwards", certificate.whole_backwards},
       {"costs_ps",
        {{"forward", costs.forward},
         {"input_grad", costs.input_grad},
         {"weight_grad", costs.weight_grad},
         {"hop", costs.hop.activation},
         {"gradient_hop", costs.hop.gradient},
         {"hop_busy", times_json(costs.hop_busy.activation)},
         {"gradient_hop_busy", times_json(costs.hop_busy.gradient)},
         {"pair_input_grad", times_json(costs.pairs.input_grad)},
         {"pair_backward", times_json(costs.pairs.backward)}}},
       {"memory", memory_json(certificate.memory)},
       {"time_ps", certificate.time},
       {"bound", {{"time_ps", certificate.bound.time}, {"reason", certificate.bound.reason}, {"terms", terms}}}}));
}

Certificate parse_certificate(std::string_view text, const std::string& file) {
  const nlohmann::json document = parse_file(FileForm::kCertificate, text, file);
  StrictObject object(document, file);
  Certificate certificate;
  const std::string objective = object.choice("objective", {"span", "makespan"});
  certificate.objective = objective == "span" ? Objective::kSpan : Objective::kMakespan;
  certificate.whole_backwards = object.boolean("whole_backwards");
  StrictObject costs = object.object("costs_ps");
  certificate.costs = {.forward = counts(costs, "forward"),
                       .input_grad = counts(costs, "input_grad"),
                       .weight_grad = counts(costs, "weight_grad"),
                       .hop = both_ways(counts(costs, "hop"))};
  if (costs.has("gradient_hop")) certificate.costs.hop.gradient = counts(costs, "gradient_hop");
  if (costs.has("hop_busy")) certificate.costs.hop_busy = both_ways(counts(costs, "hop_busy"));
  if (costs.has("gradient_hop_busy")) certificate.costs.hop_busy.gradient = counts(costs, "gradient_hop_busy");
  if (costs.has("pair_input_grad")) certificate.costs.pairs.input_grad = counts(costs, "pair_input_grad");
  if (costs.has("pair_backward")) certificate.costs.pairs.backward = counts(costs, "pair_backward");
  costs.finish();
  if (object.has("memory")) certificate.memory = memory_from(object.object("memory"));
  certificate.time = object.non_negative_integer("time_ps", kLatestMoment.count());
  certificate.bound = bound_from(object.object("bound"));
  object.finish();
  return certificate;
}

std::vector<std::string> certificate_faults(const Certificate& certificate, const Schedule& schedule,
                                            const IntegerSolver& solver) {
  if (std::string fault = wrong_lengths(certificate, schedule); !fault.empty()) return {std::move(fault)};
  OrderQuestion question{.frame = schedule,
                         .ranks = static_cast<int>(schedule.ranks.size()),
                         .slices = slices_of(schedule),
                         .costs = certificate.costs,
                         .whole_backwards = certificate.whole_backwards,
                         .objective = certificate.objective,
                         .memory = certificate.memory};
  question.frame.ranks.clear();
  std::vector<std::string> faults;
  if (!fits_memory(question, schedule)) faults.emplace_back("the schedule holds more than the memory that it states");
  if (const std::int64_t time = order_time(schedule, question); time != certificate.time) {
    faults.push_back(fmt::format("the schedule takes {} ps, and not the {} ps that it states", time, certificate.time));
  }
  if (is_program_bound(certificate.bound)) {
    if (std::string fault = program_fault(question, certificate, solver); !fault.empty()) faults.push_back(fault);
    return faults;
  }
  const LowerBound bound = recomputed_bound(question, certificate.bound, certificate.time);
  if (bound != certificate.bound) {
    faults.push_back(fmt::format("its costs give the bound of {} ps by {}, and not that of {} ps by {}", bound.time,
                                 bound.reason, certificate.bound.time, certificate.bound.reason));
  }
  return faults;
}

}}  // namespace plumb::schedules
