#pragma once
// A measured graph to be cut, and the machines that it is cut for.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/partition/profiled_graph.h"
#include "planner/partition/stage.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

struct MeasuredMachines {
  std::string name;                  ///< of the devices
  std::vector<MachineLevel> levels;  ///< from the devices of one machine outwards; at least one
  double bytes = 0;                  ///< memory of a device
};

struct MeasuredInput {
  enum class Form : std::uint8_t { kPipedream, kPiper, kPlacement };

  Form form = Form::kPipedream;
  ProfiledGraph graph;
  std::vector<int> order;               ///< of the nodes, each behind its inputs
  std::optional<MeasuredMachines> own;  ///< machines that the file names
  std::int64_t microbatches = 1;        ///< of a batch; only Piper's inputs have more
};

/// Reads a file of any of the forms. Throws SpecError as the readers in planner/partition do.
MeasuredInput measured_input(const std::string& text, const std::string& file);

/// Returns the machines: --levels and --memory, else the cluster's, else the file's own. `data_sheet` takes the rates of
/// a cluster's links and its memory as its data sheet gives them, otherwise what software reaches and leaves. Throws
/// UsageError if none is given, or if --levels cannot be read.
MeasuredMachines measured_machines(const PartitionArguments& arguments, const MeasuredInput& input, bool data_sheet);

}}  // namespace plumb::tools
