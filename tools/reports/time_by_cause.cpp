#include "tools/reports/time_by_cause.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

/// Adds the cause if some rank spends time on it. `time_of` returns a rank's.
template <typename TimeOf>
void add_cause(TimeByCause& time, std::string name, const TimeOf& time_of) {
  std::vector<SimTime> times;
  for (std::size_t rank = 0; rank < time.ranks.size(); ++rank) times.push_back(time_of(rank));
  if (std::ranges::all_of(times, [](SimTime of) { return of == SimTime{0}; })) return;
  time.causes.push_back(std::move(name));
  for (std::size_t rank = 0; rank < times.size(); ++rank) time.ranks[rank].push_back(seconds(times[rank]));
}

}  // namespace

TimeByCause time_by_cause(const std::vector<SimTime>& busy, const std::vector<IdleByCause>& idle,
                          const std::vector<ExposedTime>& exposed) {
  TimeByCause time;
  time.ranks.resize(busy.size());
  const auto inside_actions = [&](std::size_t rank) {
    return exposed.empty()
               ? SimTime{0}
               : std::accumulate(exposed[rank].collectives.begin(), exposed[rank].collectives.end(), SimTime{0});
  };
  add_cause(time, "computing", [&](std::size_t rank) { return busy[rank] - inside_actions(rank); });
  for (int group = 0; group < kGroupCount && !exposed.empty(); ++group) {
    add_cause(time, fmt::format("{} collectives", group_name(static_cast<Group>(group))),
              [&](std::size_t rank) { return exposed[rank].collectives[static_cast<std::size_t>(group)]; });
  }
  for (int cause = 0; cause < kIdleCauseCount; ++cause) {
    add_cause(time, fmt::format("idle: {}", idle_cause_name(static_cast<IdleCause>(cause))),
              [&](std::size_t rank) { return idle[rank][static_cast<std::size_t>(cause)]; });
  }
  return time;
}

std::string to_text(const TimeByCause& time, const std::function<std::string(double)>& text_of) {
  std::vector<std::pair<double, std::string>> means;
  double step = 0, small = 0;
  for (std::size_t cause = 0; cause < time.causes.size(); ++cause) {
    double sum = 0;
    for (const std::vector<double>& rank : time.ranks) sum += rank[cause];
    means.emplace_back(sum / static_cast<double>(time.ranks.size()), time.causes[cause]);
    step += means.back().first;
  }
  std::ranges::stable_sort(means, std::ranges::greater{}, [](const auto& mean) { return mean.first; });
  TextTable table{.head = {"time by cause", "mean of ranks", "share"}};
  for (const auto& [mean, cause] : means) {
    if (mean < 1e-3 * step) {
      small += mean;
    } else {
      table.rows.push_back({cause, text_of(mean), fmt::format("{:.1f} %", 100 * mean / step)});
    }
  }
  if (small > 0) table.rows.push_back({"all else", text_of(small), fmt::format("{:.1f} %", 100 * small / step)});
  return to_text(table);
}

}}  // namespace plumb::tools
