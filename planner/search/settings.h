#pragma once
// The best layouts where more is open than the layout: the number of devices, the precision, the optimizer. Each choice
// of those is a setting, with prices of its own.
//
//   SettingsResult found = search_settings(model, {{.cluster = resize(h100, 8), .training = bf16}, ...}, stacks, space,
//                                          {.goal = Goal::kCost});
//
// Settings are searched one behind the other. Each search ends where nothing is left that could still be a row, so that
// the rows are those of all layouts of all settings.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/price/pricing.h"
#include "planner/search/freed_keys.h"
#include "planner/search/search.h"

namespace plumb { inline namespace planner {

struct Setting {
  ClusterSpec cluster;
  TrainingSpec training;
};

/// The rows that are wanted.
enum class Goal : std::uint8_t {
  kTime,     ///< the shortest steps
  kCost,     ///< the most tokens a dollar
  kEnergy,   ///< the most tokens a joule
  kRobust,   ///< the steps that are the shortest at their p95 under noise
  kDevices,  ///< the shortest steps of the fewest devices that have one within the deadline
  kFront,    ///< for each number of devices the shortest step, if fewer devices have none so short
};

struct SettingsOptions {
  Goal goal = Goal::kTime;
  NoiseSpec noise;          ///< of kRobust
  Seconds longest_step{0};  ///< of kDevices
  SearchOptions search;     ///< of each setting, without objective and limit
};

/// A row of the answer: one of a setting's.
struct SettingRow {
  std::size_t setting = 0;
  std::size_t row = 0;  ///< of SearchedSetting::search
  double value = 0;     ///< seconds, dollars or joules of a step
};

struct SearchedSetting {
  Pricing pricing;
  SearchResult search;
};

struct SettingsResult {
  std::vector<FreedKeys> would_fit;       ///< without these pins, of the last setting, where no layout of any fits
  std::vector<SearchedSetting> searched;  ///< in the order in which they were given
  std::vector<SettingRow> rows;           ///< the best first: of kFront the shortest step
};

/// Searches the settings, which come by their number of devices and train the same batch. Of equal rows the first
/// setting's comes first. A front of memory is that of one setting. Throws as search_layouts does, and as the objective
/// of the goal does (search/objective.h).
SettingsResult search_settings(const ModelSpec& model, const std::vector<Setting>& settings,
                               const StackLibrary& assumable, const LayoutSpace& space, const SettingsOptions& options,
                               const std::optional<Schedule>& order = std::nullopt);

/// Returns the numbers of devices of which the cluster's nodes can be taken, up to its own, ascending: divisors of a
/// node, and full nodes; of several sites all devices.
std::vector<int> device_counts(const ClusterSpec& cluster);

}}  // namespace plumb::planner
