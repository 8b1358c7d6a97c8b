#include "planner/exchange/slurm_script.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the text with the word in braces replaced, where it stands.
std::string replaced(std::string text, const std::string& word, const std::string& by) {
  if (const std::size_t at = text.find(word); at != std::string::npos) text.replace(at, word.size(), by);
  return text;
}

/// Slurm takes a job's name as one word.
std::string one_word(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char letter) { return std::isalnum(letter) == 0 && letter != '.'; }, '-');
  return name;
}

}  // namespace

LaunchedDevices launched_devices(int devices, int devices_per_node) {
  if (devices <= devices_per_node) return {.nodes = 1, .per_node = devices};
  if (devices % devices_per_node != 0) {
    throw SpecError(
        fmt::format("{} devices do not fill nodes of {}: a launcher starts as many on each node, plan for a "
                    "multiple of {}",
                    devices, devices_per_node, devices_per_node));
  }
  return {.nodes = devices / devices_per_node, .per_node = devices_per_node};
}

std::string slurm_script(const Target& target, const LaunchedDevices& devices, const std::string& name,
                         const std::string& file) {
  const std::string torchrun = fmt::format(
      "torchrun --nproc-per-node {} --nnodes {} --rdzv-backend c10d --rdzv-endpoint \"$MASTER_ADDR:$MASTER_PORT\"",
      devices.per_node, devices.nodes);
  const std::string launch = replaced(replaced(target.launch, "{torchrun}", torchrun), "{file}", file);
  // A launcher's variables are those of its own node, so a shell on each node reads them.
  return fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name={}\n"
      "#SBATCH --nodes={}\n"
      "#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --gpus-per-node={}\n"
      "#SBATCH --exclusive\n"
      "set -eu\n"
      "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
      "export MASTER_ADDR MASTER_PORT=29500\n"
      "srun bash -c '{}'\n",
      one_word(name), devices.nodes, devices.per_node, launch);
}

}}  // namespace plumb::planner
