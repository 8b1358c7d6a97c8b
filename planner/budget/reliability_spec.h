#pragma once
// How often a training is interrupted, by component, and what an interruption costs. Presets hold published figures.
//
//   {"name": "llama-3", "source": "Llama Team 2024 (2407.21783), table 5",
//    "observed": {"devices": 16384, "days": 54}, "interruptions": {"GPU": 148, "HBM3 memory": 72},
//    "restart_min": {"value": 10, "source": "..."}, "repair_hours": {...}, "storage_gb_per_s_per_node": {...}}

#include <string>
#include <string_view>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// A component whose faults interrupt the whole training.
struct FailingComponent {
  std::string name;
  double per_device_hour = 0;  ///< interruptions for each hour of each device of the training
};

/// A figure and where it was published.
struct SourcedFigure {
  double value = 0;  ///< SI
  std::string source;
};

struct ReliabilitySpec {
  std::string name;
  std::string source;
  std::vector<FailingComponent> components;
  SourcedFigure restart_seconds;  ///< from an interruption until the training runs again from its checkpoint
  SourcedFigure repair_seconds;   ///< until a node that was taken out can be used again
  SourcedFigure storage_bytes_per_second_per_node;  ///< at which a node writes its share of a checkpoint
};

/// Reads a preset. Throws SpecError with the place: an unknown or missing key, a number below 0, or a figure without its
/// source.
ReliabilitySpec parse_reliability(std::string_view text, const std::string& file);

/// Returns the rates of one component that interrupts every device once in `hours` of its own.
std::vector<FailingComponent> one_component(double hours);

/// Returns the mean time between interruptions of a training on that many devices, whose components fail independently
/// and at constant rates; infinite where nothing fails.
Seconds mean_time_between_interruptions(const ReliabilitySpec& spec, int devices);

}}  // namespace plumb::planner
