#pragma once
// Verbs share these: how a verb is added, the groups of options, and options that come together.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tools/inputs/arguments.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace plumb { inline namespace tools {

/// The verb that the command line chose, with its arguments.
using Chosen = std::function<int()>;

/// Adds a verb to `parent`, and returns it for its options. When the verb is chosen, `check` is called first; it throws
/// UsageError if an option was given that the others leave without effect.
CLI::App* add_verb(CLI::App& parent, Chosen& chosen, const std::string& name, const std::string& what, Chosen run,
                   std::function<void(const CLI::App&)> check = {});

/// Adds a verb whose options fill `arguments`. The arguments live as long as the verb.
template <typename Arguments>
CLI::App* add_verb(CLI::App& parent, Chosen& chosen, const std::string& name, const std::string& what,
                   const std::shared_ptr<Arguments>& arguments, int (*verb)(const Arguments&),
                   void (*check)(const CLI::App&, const Arguments&) = nullptr) {
  std::function<void(const CLI::App&)> checked;
  if (check != nullptr) checked = [arguments, check](const CLI::App& app) { check(app, *arguments); };
  return add_verb(
      parent, chosen, name, what, [arguments, verb] { return verb(*arguments); }, std::move(checked));
}

// `--help` sorts the options by these groups, and checks refuse a group as a whole.
inline constexpr const char* kOfQuestion = "Of a model on a cluster";
inline constexpr const char* kOfSchedule = "Of a schedule";
inline constexpr const char* kOfOrder = "Of a schedule's costs";
inline constexpr const char* kOfLinks = "Of a cluster's links";
inline constexpr const char* kOfTraining = "Of a training";
inline constexpr const char* kOfPlanTraining = "Of a plan's training";
inline constexpr const char* kOfNetwork = "Of a network";
inline constexpr const char* kOfTimed = "Of --backend timed";

/// Puts the option into the group, and returns it. Checks refuse the options of a group together.
CLI::Option* of(const char* group, CLI::Option* option);

/// Throws UsageError if an option of the group was given.
void refuse_group(const CLI::App& app, const char* group, std::string_view why);

CLI::Option* add_json(CLI::App* app, bool& json);
void add_html(CLI::App* app, std::string& file);
void add_question(CLI::App* app, QuestionArguments& question);

/// Adds a plan, or a model with its cluster, and the options of the latter.
void add_plan_or_question(CLI::App* verb, std::string& plan, QuestionArguments& question);

/// Refuses options of a question beside a plan, which has them already.
void refuse_question_of_plan(const CLI::App& app, const QuestionArguments& question);

/// Adds the options of tokens, deadline, price and power.
void add_money(CLI::App* app, AimArguments& aim);

/// Adds the options that determine the order of a schedule.
void add_order(CLI::App* app, ScheduleArguments& schedule);

/// Adds the options of lowering: the actions that are added to a compute order.
void add_lowering(CLI::App* app, ScheduleArguments& schedule);

/// Adds the option that says when receives are posted; it applies to a plan's messages too.
void add_receives(CLI::App* app, ScheduleArguments& schedule);

/// Adds the options of add_order, add_lowering and add_receives.
void add_schedule_numbers(CLI::App* app, ScheduleArguments& schedule);

CLI::Option* add_sends(CLI::App* app, std::string& sends);
CLI::Option* add_burst(CLI::App* app, double& burst_kib);
void add_meshes(CLI::App* verb, std::string& meshes, std::string& reshard);

}}  // namespace plumb::tools
