#include "tools/machine/find_topology.h"

#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "tools/machine/read_topology.h"
#include "tools/machine/run_program.h"

namespace plumb { inline namespace tools {
namespace {

constexpr Seconds kForNvidiaSmi{30};  // without its daemon, nvidia-smi starts the driver for each GPU
constexpr const char* kMatrix = "nvidia-smi topo -m";

/// Fills `topology` from the table of nvidia-smi. Returns the reason if there is no table, and else an empty text.
std::string read_matrix(MachineTopology& topology) {
  const ProgramAnswer answer = run_program({"nvidia-smi", "topo", "-m"}, kForNvidiaSmi);
  if (!answer.why.empty()) return answer.why;
  try {
    topology = parse_topology_matrix(answer.text, kMatrix);
    return {};
  } catch (const SpecError& error) {
    return error.what();
  }
}

}  // namespace

FoundTopology find_topology(const std::string& sys, const std::string& nvml) {
  FoundTopology found{.topology = read_sys_topology(sys), .source = "/sys and NVML", .notes = {}};
  if (!found.topology.gpus.empty()) {
    if (const std::string why = add_nvml(found.topology, nvml); !why.empty()) {
      found.notes.push_back(why + ": names and NVLinks are not known");
      found.source = "/sys";
    }
    return found;
  }
  const std::string no_sys = fmt::format("{} shows no GPU of NVIDIA here", sys);
  NvmlTopology known = read_nvml_topology(nvml);
  if (known.why.empty()) {
    const std::vector<TopologyNic> nics = std::exchange(found.topology.nics, {});
    found = {.topology = std::move(known.found), .source = "NVML", .notes = std::move(known.notes)};
    found.topology.nics = nics;  // /sys hides the places of the GPUs, so that no card is near one
    for (std::vector<DevicePath>& paths : found.topology.to_nics) paths.assign(nics.size(), {});
    found.notes.push_back(no_sys + ": all is NVML's, which knows of no network cards");
    return found;
  }
  MachineTopology matrix;
  const std::string why = read_matrix(matrix);
  if (why.empty()) {
    found = {.topology = std::move(matrix), .source = kMatrix, .notes = {}};
    found.notes.push_back(
        fmt::format("{}, and {}: all is the table of {}, without names and speeds", no_sys, known.why, kMatrix));
    return found;
  }
  throw InputError(fmt::format(
      "{}, {}, and {}: run this on the machine that has them, or give --from FILE with what `{}` prints there", no_sys,
      known.why, why, kMatrix));
}

}}  // namespace plumb::tools
