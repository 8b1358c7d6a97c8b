#include "tools/reports/sensitivity_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// Returns true if the time is more than a rounding error of the makespan, a part in 1e9. It may be negative: a
/// narrower shared link may make the step shorter.
bool share_counts(Seconds of, SimTime makespan) {
  return std::abs(of / to_seconds(makespan)) > 1e-9;
}

constexpr std::size_t kBindingShown = 3;

/// A part of the makespan that grows in proportion to a cost.
struct PartOfStep {
  std::string name;
  Seconds time{0};
  std::string detail;  ///< what is said behind its share
};

/// Returns the parts that count: the computing first, then the others.
std::vector<PartOfStep> parts_of_step(const Sensitivity& sensitivity, SimTime makespan) {
  Seconds computing{0};
  for (const Seconds& stage : sensitivity.compute_by_stage) computing += stage;
  const auto most = std::ranges::max_element(sensitivity.compute_by_stage);
  std::vector<PartOfStep> parts;
  if (computing > Seconds{0}) {
    parts.push_back({"computing", computing,
                     fmt::format(" (stage {} alone {:.3g} %)", most - sensitivity.compute_by_stage.begin(),
                                 *most / to_seconds(makespan))});
  }
  const auto add = [&](std::string name, Seconds time) {
    if (share_counts(time, makespan)) parts.push_back({std::move(name), time, ""});
  };
  add("group collectives", sensitivity.group_collectives);
  add("message bytes", sensitivity.bandwidth);
  add("message latency", sensitivity.latency);
  add("UNSHARD", sensitivity.unshard);
  add("REDUCE_GRAD", sensitivity.reduction);
  add("moves", sensitivity.moves);
  for (const SharedLinkSensitivity& link : sensitivity.shared_links)
    add(fmt::format("narrower shared {}", link.kind), link.seconds);
  return parts;
}

}  // namespace

std::vector<ResourceSensitivity> by_size(std::vector<ResourceSensitivity> by_resource) {
  std::ranges::stable_sort(by_resource, std::ranges::greater{},
                           [](const ResourceSensitivity& by) { return std::abs(by.elasticity); });
  return by_resource;
}

ordered_json sensitivity_json(const Sensitivity& sensitivity, const std::vector<ResourceSensitivity>& by_resource) {
  ordered_json stages = ordered_json::array();
  for (const Seconds& stage : sensitivity.compute_by_stage) stages.push_back(stage.count());
  ordered_json collectives = ordered_json::array();
  for (const CollectiveSensitivity& of : sensitivity.collectives) {
    collectives.push_back(
        {{"group", group_name(of.group)}, {"kind", collective_name(of.kind)}, {"time_s", of.seconds.count()}});
  }
  ordered_json links = ordered_json::array();
  for (const LinkSensitivity& link : sensitivity.links) {
    links.push_back({{"source_rank", link.source_rank},
                     {"destination_rank", link.destination_rank},
                     {"bandwidth_s", link.bandwidth.count()},
                     {"latency_s", link.latency.count()}});
  }
  ordered_json shared = ordered_json::object();
  for (const SharedLinkSensitivity& link : sensitivity.shared_links) shared[link.kind] = link.seconds.count();
  ordered_json figures = ordered_json::object();
  for (const ResourceSensitivity& by : by_resource) figures[by.figure] = by.elasticity;
  return {{"compute_by_stage_s", stages},
          {"group_collectives_s", sensitivity.group_collectives.count()},
          {"bandwidth_s", sensitivity.bandwidth.count()},
          {"latency_s", sensitivity.latency.count()},
          {"unshard_s", sensitivity.unshard.count()},
          {"reduction_s", sensitivity.reduction.count()},
          {"moves_s", sensitivity.moves.count()},
          {"capacity_s", sensitivity.capacity.count()},
          {"shared_links", shared},
          {"collectives", collectives},
          {"links", links},
          {"step_change_pct_per_pct_of", by_resource.empty() ? ordered_json(nullptr) : figures}};
}

ordered_json conditioning_json(const Conditioning& conditioning) {
  const auto spread = [](const StepSpread& of) {
    return ordered_json{{"shortest_s", seconds(of.shortest)}, {"longest_s", seconds(of.longest)}};
  };
  const ordered_json with_noise = {{"runs", conditioning.runs},
                                   {"picosecond", spread(conditioning.by_picosecond)},
                                   {"per_mille", spread(conditioning.by_per_mille)}};
  return {{"number", std::isfinite(conditioning.number) ? ordered_json(conditioning.number) : ordered_json(nullptr)},
          {"most", kMostConditioning},
          {"is_ill", conditioning.is_ill},
          {"step_with_noise", conditioning.runs > 0 ? with_noise : ordered_json(nullptr)}};
}

std::string conditioning_text(const Conditioning& conditioning, const std::function<std::string(SimTime)>& time) {
  const auto spread = [&](const StepSpread& of) {
    return fmt::format("{} to {}", time(of.shortest), time(of.longest));
  };
  return fmt::format(
      "no sensitivities: the step is ill-conditioned, its costs' smallest changes count {:.3g}-fold (more than {:g}); "
      "in "
      "{} runs with each duration up to a picosecond longer it takes {}, up to 0.1 % longer {}\n",
      conditioning.number, kMostConditioning, conditioning.runs, spread(conditioning.by_picosecond),
      spread(conditioning.by_per_mille));
}

std::string binding_text(const Sensitivity& sensitivity, const std::vector<ResourceSensitivity>& by_resource,
                         SimTime makespan, const std::function<std::string(double)>& time) {
  constexpr double kLeastElasticity = 0.01;
  std::vector<std::string> parts;
  for (const ResourceSensitivity& by : by_size(by_resource)) {
    if (parts.size() == kBindingShown || std::abs(by.elasticity) < kLeastElasticity) break;
    parts.push_back(fmt::format("{} ({}{:.3f} % {}, {})", by.figure, parts.empty() ? "1 % more makes the step " : "",
                                std::abs(by.elasticity), by.elasticity < 0 ? "shorter" : "longer",
                                time(std::abs(by.elasticity) / 100 * seconds(makespan))));
  }
  if (parts.empty()) {
    for (const PartOfStep& part : parts_of_step(sensitivity, makespan)) {
      if (parts.size() == kBindingShown) break;
      parts.push_back(fmt::format("{} ({}{:.3g} % longer, {})", part.name,
                                  parts.empty() ? "1 % longer makes the step " : "", part.time / to_seconds(makespan),
                                  time(part.time.count() / 100)));
    }
  }
  return parts.empty() ? "nothing binds" : fmt::format("what binds: {}", fmt::join(parts, ", "));
}

std::string sensitivity_text(const Sensitivity& sensitivity, const std::vector<ResourceSensitivity>& by_resource,
                             SimTime makespan) {
  std::vector<std::string> parts;
  for (const PartOfStep& part : parts_of_step(sensitivity, makespan))
    parts.push_back(fmt::format("{} {:.3g} %{}", part.name, part.time / to_seconds(makespan), part.detail));
  std::string text = fmt::format("each 1 % longer makes the step longer by: {}\n", fmt::join(parts, ", "));
  if (by_resource.empty()) return text;
  parts.clear();
  for (const ResourceSensitivity& by : by_size(by_resource))
    parts.push_back(fmt::format("{} {:+.3f} %", by.figure, by.elasticity));
  return text + fmt::format("1 % more of each changes the step by: {}\n", fmt::join(parts, ", "));
}

}}  // namespace plumb::tools
