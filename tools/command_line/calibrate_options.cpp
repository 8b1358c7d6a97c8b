#include "tools/command_line/add_verbs.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "tools/command_line/option_groups.h"
#include "tools/command_line/option_values.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

void add_calibrate(CLI::App& app, Chosen& chosen) {
  const auto calibrate = std::make_shared<CalibrateArguments>();
  CLI::App* verb =
      add_verb(app, chosen, "calibrate", "measure this machine and write it as a cluster", calibrate, calibrate_verb);
  verb->add_option("--backend", calibrate->backend, "what to measure: cpu, or cuda: the first GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  verb->add_option("--precision", calibrate->precision, "on GPUs: bf16, fp16 or fp32")
      ->check(CLI::IsMember({"bf16", "fp16", "fp32"}));
  verb->add_option("--sms", calibrate->sms, "backend cuda: how ranks share the SMs, as in run");
  verb->add_option("--gpus", calibrate->gpus,
                   "backend cuda: one, which ranks share (default), or each: a GPU a rank, with NCCL between them")
      ->check(CLI::IsMember({"each", "one"}));
  verb->add_option("--ranks", calibrate->ranks,
                   "how many work at once (default: one a core, one on a GPU, or as many as there are GPUs)")
      ->transform(count_of<int>(1));
  verb->add_option("--budget", calibrate->budget_s, "seconds to spend")->check(above_zero());
  verb->add_option(
      "--from", calibrate->from,
      "files instead of measuring: nccl-tests logs, GEMM tables, training logs of many frameworks; with --only "
      "topology what `nvidia-smi topo -m` printed");
  verb->add_option("--base", calibrate->base,
                   "with --from and --only transport, topology or nccl: the cluster it is, a preset or a file");
  verb->add_option("--plan", calibrate->plan, "with --from: the plan that the training logs ran");
  verb->add_option(
          "--only", calibrate->only,
          "collectives or nccl (tables), transport (a file for --link), topology (GPUs and links, a cluster), or gpus "
          "(those that CUDA sees)")
      ->check(CLI::IsMember({"collectives", "nccl", "transport", "topology", "gpus"}));
  verb->add_option("-o,--output", calibrate->output, "file to write");
  add_json(verb, calibrate->json);
}

}}  // namespace plumb::tools
