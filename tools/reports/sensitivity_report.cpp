#include "tools/reports/sensitivity_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// Returns true if the time is more than a rounding error of the makespan, a part in 1e9. It may be negative: a
/// narrower shared link may make the step shorter.
bool share_counts(Seconds of, SimTime makespan) {
  return std::abs(of / to_seconds(makespan)) > 1e-9;
}

}  // namespace

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

std::string sensitivity_text(const Sensitivity& sensitivity, const std::vector<ResourceSensitivity>& by_resource,
                             SimTime makespan) {
  Seconds computing{0};
  for (const Seconds& stage : sensitivity.compute_by_stage) computing += stage;
  const auto most = std::ranges::max_element(sensitivity.compute_by_stage);
  std::vector<std::string> parts;
  const auto share = [makespan](Seconds of) { return fmt::format("{:.3g} %", of / to_seconds(makespan)); };
  if (computing > Seconds{0}) {
    parts.push_back(fmt::format("computing {} (stage {} alone {})", share(computing),
                                most - sensitivity.compute_by_stage.begin(), share(*most)));
  }
  for (const auto& [name, of] : {std::pair{"group collectives", sensitivity.group_collectives},
                                 {"message bytes", sensitivity.bandwidth},
                                 {"message latency", sensitivity.latency},
                                 {"UNSHARD", sensitivity.unshard},
                                 {"REDUCE_GRAD", sensitivity.reduction},
                                 {"moves", sensitivity.moves}}) {
    if (share_counts(of, makespan)) parts.push_back(fmt::format("{} {}", name, share(of)));
  }
  for (const SharedLinkSensitivity& link : sensitivity.shared_links) {
    if (share_counts(link.seconds, makespan))
      parts.push_back(fmt::format("narrower shared {} {}", link.kind, share(link.seconds)));
  }
  std::string text = fmt::format("each 1 % longer makes the step longer by: {}\n", fmt::join(parts, ", "));
  if (by_resource.empty()) return text;
  std::vector<ResourceSensitivity> sorted = by_resource;
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const ResourceSensitivity& by) { return std::abs(by.elasticity); });
  parts.clear();
  for (const ResourceSensitivity& by : sorted) parts.push_back(fmt::format("{} {:+.3f} %", by.figure, by.elasticity));
  return text + fmt::format("1 % more of each changes the step by: {}\n", fmt::join(parts, ", "));
}

}}  // namespace plumb::tools
