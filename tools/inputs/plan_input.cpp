#include "tools/inputs/plan_input.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "planner/search/evaluate_plan.h"
#include "schedules/forms/whole_number.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/noise_option.h"
#include "tools/inputs/schedule_input.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

/// The schedule that the layout's `schedule=` names as a file, which is taken out of the text; none if it names none.
std::optional<Schedule> take_order(std::string& layout) {
  constexpr std::string_view kKey = "schedule=";
  std::size_t start = layout.starts_with(kKey) ? 0 : layout.find("," + std::string(kKey));
  if (start == std::string::npos) return {};
  const std::size_t value = layout.find('=', start) + 1;
  const std::size_t end = std::min(layout.find(',', value), layout.size());
  const std::string name = layout.substr(value, end - value);
  if (!names_schedule_file(name)) return {};
  layout.erase(start, end - start);
  if (layout.starts_with(',')) layout.erase(0, 1);
  return schedule_input({.name = name});
}

/// Returns what the best layout moves to the hosts; empty if it moves nothing.
std::string offload_text(const Layout& layout) {
  if (layout.offload == Offload{}) return {};
  return fmt::format(
      "{} waits in the hosts' memory (offload={}): give --layout offload=none for the best without",
      layout.offload.activations ? "the optimizer's state and what is saved for the backward" : "the optimizer's state",
      offload_name(layout.offload));
}

/// Returns the settings by number of devices, of equal ones as they are listed.
std::vector<Setting> settings_of(const QuestionArguments& asked, const AimArguments& aim, const ModelSpec& model) {
  std::vector<Setting> settings;
  for (const std::string& name : listed(asked.cluster)) {
    const ClusterSpec cluster = with_operation(cluster_input(name), aim);
    for (const int devices : device_counts_of(aim, cluster)) {
      for (const std::string& precision : listed(asked.precision)) {
        for (const std::string& optimizer : listed(asked.optimizer)) {
          QuestionArguments question = asked;
          question.precision = precision;
          question.optimizer = optimizer;
          const ClusterSpec sized = devices == cluster.devices ? cluster : resize(cluster, devices);
          settings.push_back({.cluster = sized, .training = training_input(question, model, sized)});
        }
      }
    }
  }
  std::ranges::stable_sort(settings, {}, [](const Setting& setting) { return setting.cluster.devices; });
  return settings;
}

SettingsOptions wanted_rows(const AimArguments& aim, const SearchOptions& options) {
  constexpr std::pair<std::string_view, Goal> kGoals[] = {{"time", Goal::kTime},
                                                          {"cost", Goal::kCost},
                                                          {"energy", Goal::kEnergy},
                                                          {"robust", Goal::kRobust},
                                                          {"devices", Goal::kDevices}};
  SettingsOptions wanted{.search = options};
  wanted.goal = std::ranges::find(kGoals, aim.objective, &std::pair<std::string_view, Goal>::first)->second;
  if (!aim.front.empty() && wanted.goal != Goal::kTime)
    throw UsageError(
        fmt::format("--front holds step time against {}: leave out --objective {}", aim.front, aim.objective));
  if (aim.front == "devices") wanted.goal = Goal::kFront;
  wanted.search.memory_front = aim.front == "memory";
  if ((wanted.goal == Goal::kRobust) == aim.noise.empty())
    throw UsageError("--objective robust and --noise go together: give both, as in --noise cv=0.05");
  if (!aim.noise.empty()) wanted.noise = read_option([&] { return parse_noise(aim.noise); });
  return wanted;
}

/// Returns the longest step with which the tokens are trained in time.
Seconds longest_step(const AimArguments& aim, const ModelSpec& model, const TrainingSpec& training) {
  constexpr double kSecondsPerDay = 24 * 3600;
  if (aim.tokens <= 0 || aim.deadline_days <= 0)
    throw UsageError("--objective devices needs a training and its end: give --tokens and --deadline");
  if (!has_sequence(model))
    throw UsageError(fmt::format("--objective devices counts tokens, and {} trains on none", model.name));
  return Seconds{aim.deadline_days * kSecondsPerDay * static_cast<double>(tokens_per_step(training)) / aim.tokens};
}

/// Returns why no setting has a row, which the last one has searched for.
std::string why_no_rows(const SettingsResult& found, const SettingsOptions& wanted) {
  const SearchedSetting& last = found.searched.back();
  if (last.search.stopped_at)
    return "the search was stopped before a layout within the deadline was found: give --time-limit or --effort more";
  if (!last.search.limited) {
    constexpr std::ptrdiff_t kMostSaid = 3;
    std::string text = last.search.infeasible;
    for (const FreedKeys& freed : found.would_fit | std::views::take(kMostSaid))
      text += fmt::format("; without {} it fits as {}", to_text(freed.keys), to_text(freed.layout));
    return text;
  }
  return fmt::format(
      "no layout of up to {} devices ends a step within {:.4g} s, as the deadline wants: give more devices or days",
      last.pricing.cluster().devices, wanted.longest_step.count());
}

}  // namespace

ClusterSpec with_operation(ClusterSpec cluster, const AimArguments& aim) {
  for (ClusterSpec& site : cluster.further_sites) site = with_operation(std::move(site), aim);
  OperatingSpec& operation = cluster.operation;
  if (aim.price_usd > 0) operation.usd_per_device_hour = aim.price_usd;
  if (aim.pue > 0) operation.pue = aim.pue;
  if (aim.power.empty()) return cluster;
  const std::size_t colon = aim.power.find(':');
  const auto idle = whole_number<double>(aim.power.substr(0, colon));
  const auto busy = colon == std::string::npos ? std::nullopt : whole_number<double>(aim.power.substr(colon + 1));
  if (!idle || !busy || *idle < 0 || *busy <= 0 || *idle > *busy)
    throw UsageError(
        fmt::format("--power {}: give the watts of an idle and of a busy device, as in 100:700", aim.power));
  operation.idle_watts = idle;
  operation.busy_watts = busy;
  return cluster;
}

std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('|', start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::vector<int> device_counts_of(const AimArguments& aim, const ClusterSpec& cluster) {
  const bool any =
      aim.front == "devices" || aim.objective == "cost" || aim.objective == "energy" || aim.objective == "devices";
  if (aim.devices.empty()) return any ? device_counts(cluster) : std::vector{cluster.devices};
  std::vector<int> counts;
  for (const std::string& text : listed(aim.devices)) {
    const auto count = whole_number<int>(text);
    if (!count || *count < 1)
      throw UsageError(
          fmt::format("--devices {}: \"{}\" is no number of devices: list some, as in 8|16|32", aim.devices, text));
    counts.push_back(*count);
  }
  std::ranges::sort(counts);
  return counts;
}

Plan plan_input(const std::string& path) {
  return read_as(FileKind::kPlan, path, [&] { return parse_plan(read_text_file(path), path); });
}

PlannedSettings plan_settings(const QuestionArguments& asked, const AimArguments& aim, const SearchOptions& options) {
  QuestionArguments question = asked;
  const std::optional<Schedule> order = take_order(question.layout);
  const ModelSpec model = model_input(question.model);
  const LayoutSpace space = space_input(question);
  SettingsOptions wanted = wanted_rows(aim, options);
  const std::vector<Setting> settings = settings_of(question, aim, model);
  if (wanted.goal == Goal::kDevices) wanted.longest_step = longest_step(aim, model, settings.front().training);
  SettingsResult found = search_settings(model, settings, assumable_stacks(question), space, wanted, order);
  PlannedSettings planned{.goal = wanted.goal, .rows = std::move(found.rows)};
  planned.infeasible = planned.rows.empty() ? why_no_rows(found, wanted) : "";
  for (SearchedSetting& searched : found.searched) {
    std::string switched;
    if (!searched.search.ranked.empty() && space.offload.is_open() && !space.wide)
      switched = offload_text(searched.search.ranked.front().layout);
    planned.settings.push_back({{std::move(searched)}, order, std::move(switched)});
  }
  return planned;
}

PlannedQuestion plan_question(const QuestionArguments& question, const SearchOptions& options) {
  for (const std::string& text : {question.cluster, question.precision, question.optimizer}) {
    if (text.find('|') != std::string::npos)
      throw UsageError(fmt::format("{}: this asks about one setting: give one cluster, precision and optimizer", text));
  }
  return std::move(plan_settings(question, {}, options).settings.front());
}

AskedPlan asked_plan(const std::string& plan_or_model, const QuestionArguments& question) {
  if (question.cluster.empty()) return {.plan = plan_input(plan_or_model)};
  QuestionArguments asked = question;
  asked.model = plan_or_model;
  asked.headroom = 0;
  const PlannedQuestion planned = plan_question(asked, {.keep = 1});
  if (planned.search.ranked.empty()) return {.infeasible = planned.search.infeasible};
  return {.plan = plan_of(planned, planned.search.ranked.front()), .switched = planned.switched};
}

Plan plan_of(const PlannedQuestion& planned, const Evaluation& ranked) {
  return plan_of(planned.pricing, ranked, planned.order);
}

}}  // namespace plumb::tools
