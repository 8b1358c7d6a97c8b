#pragma once
// Tokens, days, money and devices of a training: some are given, and the others follow.
//
//   const BudgetedStep step = budgeted_step(pricing, evaluation);          // the best layout on so many devices
//   const Bill bill = *bill_of(step, 0.95, {.tokens = 1e12});              // days, device-hours, dollars, kWh
//   const Bill most = *bill_of(step, 0.95, {.days = 30, .usd = 1e6});      // the tokens that both allow
//   is_within(bill, {.tokens = 1e12, .days = 30})

#include <optional>
#include <string>

#include "planner/evaluate/evaluation.h"
#include "planner/price/pricing.h"
#include "planner/spec/operating_spec.h"

namespace plumb { inline namespace planner {

/// A step of the training on its devices.
struct BudgetedStep {
  int devices = 0;
  int nodes = 0;
  Seconds step{0};
  Seconds busy{0};    ///< for which a device computes, on average
  double tokens = 0;  ///< of a step
  OperatingSpec operation;
};

/// Returns the facts of an evaluated layout. Throws SpecError if the model's samples are no sequences.
BudgetedStep budgeted_step(const Pricing& pricing, const Evaluation& evaluation);

/// The figures of the training that are given; nothing: the figure is open.
struct BudgetLimits {
  std::optional<double> tokens;
  std::optional<double> days;
  std::optional<double> usd;
};

struct Bill {
  double tokens = 0;
  double days = 0;
  double device_hours = 0;
  std::optional<double> usd;  ///< nothing: the cluster has no price
  std::optional<double> kwh;  ///< nothing: the cluster has no powers
};

/// Returns the bill of the tokens that are given, or of the most tokens that days and money allow; nothing if none of
/// the three is given. Time that interruptions take, (1 - goodput) of all, is paid and draws power like the rest.
/// Throws SpecError if money is given and the cluster has no price.
std::optional<Bill> bill_of(const BudgetedStep& step, double goodput, const BudgetLimits& limits);

/// Returns the largest share that the bill takes of the limits of days and money: above 1 it exceeds one of them.
double excess(const Bill& bill, const BudgetLimits& limits);

/// Returns true if the bill exceeds none of the limits.
bool is_within(const Bill& bill, const BudgetLimits& limits);

}}  // namespace plumb::planner
