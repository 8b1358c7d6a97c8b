#pragma once
// The money and the power that a device takes while it trains, with its share of the node.
//
//   "operation": {"usd_per_device_hour": 2.99, "idle_w": 105, "busy_w": 700, "pue": 1.2}

#include <optional>

#include "schedules/forms/strict_json.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct OperatingSpec {
  std::optional<double> usd_per_device_hour;  ///< rent of one device
  std::optional<double> idle_watts;           ///< drawn by a device that computes nothing
  std::optional<double> busy_watts;           ///< drawn by a device that computes
  double pue = 1;  ///< power usage effectiveness: power of the site over that of its machines

  friend bool operator==(const OperatingSpec&, const OperatingSpec&) = default;
};

/// Reads the block. Throws SpecError naming the key if one is unknown or out of range, if a device draws more while it
/// is idle, if only one of both powers is given, or if the site draws less than its machines.
OperatingSpec read_operation(StrictObject object);

/// Returns the dollars of a step on that many devices. The price must be known.
double step_usd(const OperatingSpec& operation, int devices, Seconds step);

/// Returns the joules of a step on that many devices, which compute for `busy` on average. Power is linear in the share
/// of time that a machine works (Fan, Weber and Barroso 2007):
///   E = pue * devices * (idle * step + (busy power - idle) * busy)
/// Both powers must be known.
double step_joules(const OperatingSpec& operation, int devices, Seconds step, Seconds busy);

}}  // namespace plumb::planner
