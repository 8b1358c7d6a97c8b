#pragma once
// Stages of a partition of a measured graph, and the machines that they share.

#include <string>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// A level of equal parts: devices in a machine, machines in a rack, ...
struct MachineLevel {
  int count = 1;
  double bytes_per_second = 0;  ///< of the link of one part
};

/// Returns the number of devices of all levels together.
int device_count(const std::vector<MachineLevel>& levels);

struct MeasuredStage {
  std::vector<int> nodes;            ///< in the graph's numbers
  int replicas = 1;                  ///< copies that take micro-batches in turn
  int tensor = 1;                    ///< devices of each copy
  Seconds seconds{0};                ///< time between two micro-batches that leave the stage
  std::vector<std::string> rebuilt;  ///< names of nodes that do not run in their first way
};

struct StagePartition {
  std::vector<MeasuredStage> stages;
  Seconds slowest{0};  ///< time between two micro-batches that leave the pipeline
};

}}  // namespace plumb::planner
