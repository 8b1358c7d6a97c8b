#include "planner/search/settings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace plumb { inline namespace planner {
namespace {

SearchObjective objective_of(const SettingsOptions& options, const ClusterSpec& cluster) {
  if (options.goal == Goal::kCost) return least_cost(cluster);
  if (options.goal == Goal::kEnergy) return least_energy(cluster);
  if (options.goal == Goal::kRobust) return least_slow_step(options.noise);
  return {};
}

/// Returns the value below which a layout of the next setting is a row.
double limit_of(const std::vector<SettingRow>& rows, const SettingsOptions& options) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const std::ptrdiff_t kept = options.goal == Goal::kFront ? 1 : options.search.keep;
  if (std::ssize(rows) >= kept) return rows.back().value;
  return options.goal == Goal::kDevices ? std::nextafter(options.longest_step.count(), kNone) : kNone;
}

/// Adds the rows of the last setting; of equal ones those that are there come first.
void add_rows(SettingsResult& result, const SettingsOptions& options) {
  const std::size_t setting = result.searched.size() - 1;
  const auto devices = [&](std::size_t of) { return result.searched[of].pricing.cluster().devices; };
  const std::vector<double>& values = result.searched.back().search.values;
  const bool replaces = options.goal == Goal::kFront && !values.empty() && !result.rows.empty() &&
                        devices(result.rows.back().setting) == devices(setting);
  if (replaces) result.rows.pop_back();
  for (std::size_t row = 0; row < values.size(); ++row)
    result.rows.push_back({.setting = setting, .row = row, .value = values[row]});
  if (options.goal == Goal::kFront || options.search.memory_front) return;
  std::ranges::stable_sort(result.rows, {}, &SettingRow::value);
  if (std::ssize(result.rows) > options.search.keep) result.rows.resize(static_cast<std::size_t>(options.search.keep));
}

}  // namespace

SettingsResult search_settings(const ModelSpec& model, const std::vector<Setting>& settings,
                               const StackLibrary& assumable, const LayoutSpace& space, const SettingsOptions& options,
                               const std::optional<Schedule>& order) {
  SettingsResult result;
  for (std::size_t index = 0; index < settings.size(); ++index) {
    const auto& [cluster, training] = settings[index];
    SearchOptions search = options.search;
    search.objective = objective_of(options, cluster);
    search.below = limit_of(result.rows, options);
    search.advise = result.rows.empty() && index + 1 == settings.size();
    if (options.goal == Goal::kFront) search.keep = 1;
    result.searched.push_back({.pricing = Pricing(model, cluster, training, assumable)});
    SearchedSetting& searched = result.searched.back();
    searched.search = search_layouts(searched.pricing, space, search, order);
    add_rows(result, options);
    const bool more = index + 1 < settings.size() && settings[index + 1].cluster.devices > cluster.devices;
    if (searched.search.stopped_at || (options.goal == Goal::kDevices && more && !result.rows.empty())) break;
  }
  if (options.goal == Goal::kFront) std::ranges::reverse(result.rows);  // the most devices have the shortest step
  SearchedSetting& last = result.searched.back();
  if (result.rows.empty() && !last.search.limited && !order) result.would_fit = fewest_freed_keys(last.pricing, space);
  return result;
}

std::vector<int> device_counts(const ClusterSpec& cluster) {
  if (!cluster.further_sites.empty()) return {cluster.devices};
  std::vector<int> counts;
  const int node = cluster.devices_per_node;
  for (int devices = 1; devices <= cluster.devices; ++devices)
    if (devices < node ? node % devices == 0 : devices % node == 0) counts.push_back(devices);
  return counts;
}

}}  // namespace plumb::planner
