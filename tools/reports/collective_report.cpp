#include "tools/reports/collective_report.h"

#include <vector>

#include <fmt/format.h>

#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

const std::vector<std::string> kCollectiveHead = {"collectives of", "rows",   "no constant",
                                                  "fitted",         "unseen", "unseen, worst"};

std::string per_cent(const ErrorStatistics& errors, double value) {
  return errors.count > 0 ? fmt::format("{:.1f} %", value) : "-";
}

/// Returns a row of the table, with the errors of messages of 16 MiB and more.
std::vector<std::string> cells(const CollectiveClusterScore& cluster) {
  return {cluster.cluster,
          std::to_string(cluster.zero.large.count),
          per_cent(cluster.zero.large, cluster.zero.large.mean_pct),
          per_cent(cluster.fitted.large, cluster.fitted.large.mean_pct),
          per_cent(cluster.unseen.large, cluster.unseen.large.mean_pct),
          per_cent(cluster.unseen.large, cluster.unseen.large.worst_pct)};
}

}  // namespace

std::string collective_text(const CollectiveScore& score) {
  TextTable table{.head = kCollectiveHead};
  for (const CollectiveClusterScore& cluster : score.clusters) table.rows.push_back(cells(cluster));
  return "\n" + to_text(table) + "mean errors of 16 MiB and more; " + std::to_string(score.skipped.size()) +
         " rows of collectives are skipped (--json says why)\n";
}

std::string collective_page(const CollectiveScore& score) {
  std::string page =
      "\n## Collectives\n\nBus bandwidth and time of collectives of 16 MiB and more against NCCL's own model "
      "(planner/price/collective), mean errors. Three constants a machine (launch of the low-latency and of the simple "
      "protocol, a scale of all bandwidths) are fitted on one half of its sweeps and judged on the other, both ways "
      "round.\n\n|";
  for (const std::string& head : kCollectiveHead) page += " " + head + " |";
  page += "\n|";
  for (std::size_t column = 0; column < kCollectiveHead.size(); ++column) page += " --- |";
  page += "\n";
  for (const CollectiveClusterScore& cluster : score.clusters) {
    page += "|";
    for (const std::string& cell : cells(cluster)) page += " " + cell + " |";
    page += "\n";
  }
  page += "\n";
  for (const CollectiveClusterScore& cluster : score.clusters) {
    for (int half = 0; half < 2; ++half) {
      std::string sweeps;
      for (const std::string& sweep : cluster.sweeps[half]) sweeps += (sweeps.empty() ? "" : "; ") + sweep;
      page += fmt::format("* {}, half {}: {}\n", cluster.cluster, half + 1, sweeps);
    }
  }
  return page;
}

}}  // namespace plumb::tools
