#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/command_line/add_verbs.h"
#include "tools/command_line/option_groups.h"
#include "tools/command_line/option_values.h"
#include "tools/io/usage.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

/// Refuses options that the rest of the question leaves without effect, and a question without anything given.
void check_budget(const CLI::App& app, const BudgetArguments& arguments) {
  const AimArguments& aim = arguments.aim;
  refuse_question_of_plan(app, arguments.question);
  if (arguments.question.cluster.empty() && (!aim.devices.empty() || arguments.weak))
    throw UsageError("a plan has its devices already: leave --devices and --weak away, or name a model and a cluster");
  if (aim.tokens <= 0 && aim.deadline_days <= 0 && arguments.money_usd <= 0)
    throw UsageError("nothing of the training is given: give --tokens, --deadline or --money, or several of them");
  if (arguments.weak && aim.devices.find('|') == std::string::npos)
    throw UsageError("--weak lets the batch grow with the devices: list some by --devices, as in 8|16|32");
  if (arguments.failures != "none") return;
  const auto refuse = [](bool given, const char* option) {
    if (given)
      throw UsageError(fmt::format("{} is of interruptions, and --failures none has none: leave one away", option));
  };
  refuse(arguments.mtbf_hours > 0, "--mtbf");
  refuse(arguments.restart_minutes > 0, "--restart");
  refuse(arguments.repair_hours > 0, "--repair");
  refuse(arguments.seed != 1, "--seed");
}

void add_interruptions(CLI::App* verb, BudgetArguments& arguments) {
  constexpr const char* kGroup = "Of interruptions";
  const auto add = [&](const std::string& name, auto& value, const std::string& what) {
    return of(kGroup, verb->add_option(name, value, what));
  };
  add("--failures", arguments.failures,
      "whose rates of failing components, restart, repair and storage are taken: llama-3, rsc-1, a file of such "
      "figures "
      "with their sources, or none");
  add("--mtbf", arguments.mtbf_hours, "hours of one device between its failures, in place of those rates")
      ->check(above_zero());
  add("--restart", arguments.restart_minutes, "minutes from an interruption until the training goes on")
      ->check(above_zero());
  add("--repair", arguments.repair_hours, "hours until a failed node can be used again")->check(above_zero());
  add("--storage", arguments.storage_gb_per_s, "GB/s at which each node writes its share of a checkpoint")
      ->check(above_zero());
  add("--checkpoint-every", arguments.checkpoint_minutes, "minutes between checkpoints (default: the best)")
      ->check(above_zero());
  add("--seed", arguments.seed, "of the simulated interruptions");
}

}  // namespace

void add_budget(CLI::App& app, Chosen& chosen) {
  const auto arguments = std::make_shared<BudgetArguments>();
  CLI::App* verb = add_verb(app, chosen, "budget", "days, money, energy and failures of a training", arguments,
                            budget_verb, check_budget);
  add_plan_or_question(verb, arguments->plan, arguments->question);
  verb->add_option("--devices", arguments->aim.devices,
                   "of a cluster with the most devices there may be (h100:1024), or of several (h100:1024|b200:512): "
                   "the numbers that "
                   "are tried, as in 512|1024 (default: once and three times the powers of two, "
                   "up to the cluster's)");
  add_money(verb, arguments->aim);
  verb->add_option("--money", arguments->money_usd, "dollars that the devices may cost")->check(above_zero());
  verb->add_flag("--weak", arguments->weak, "the batch grows with the devices, from that of the fewest");
  add_interruptions(verb, *arguments);
  add_json(verb, arguments->json);
}

}}  // namespace plumb::tools
