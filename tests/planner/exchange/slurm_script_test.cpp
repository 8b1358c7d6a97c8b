#include "planner/exchange/slurm_script.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/exchange/exchange_fixtures.h"
#include "tests/planner/refusal.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("a run fills its nodes, or a part of one") {
  CHECK(launched_devices(64, 8).nodes == 8);
  CHECK(launched_devices(64, 8).per_node == 8);
  CHECK(launched_devices(4, 8).nodes == 1);
  CHECK(launched_devices(4, 8).per_node == 4);
  check_refused<SpecError>([] { launched_devices(12, 8); }, "12 devices", "a multiple of 8");
}

TEST_CASE("the script asks Slurm for the nodes and starts one launcher on each") {
  const std::string script =
      slurm_script(target_named("torchtitan"), {.nodes = 2, .per_node = 8}, "llama 3", "job.toml");
  CHECK(
      script.starts_with("#!/bin/bash\n#SBATCH --job-name=llama-3\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n"));
  CHECK(script.find("#SBATCH --gpus-per-node=8\n") != std::string::npos);
  CHECK(script.find("srun bash -c 'torchrun --nproc-per-node 8 --nnodes 2 ") != std::string::npos);
  CHECK(script.ends_with("-m torchtitan.train --job.config_file job.toml'\n"));
}

TEST_CASE("every target can be launched with its file, and no word in braces is left") {
  for (const Target& target : all_targets()) {
    const std::string script = slurm_script(target, {}, "job", "settings.file");
    CAPTURE(script);
    CHECK(script.find("settings.file") != std::string::npos);
    CHECK(script.find('{') == std::string::npos);
  }
}
