#include "tools/verbs/calibrate/calibrate_collectives.h"

#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/measure/measure.h"
#include "executor/measure/measure_collectives.h"
#include "executor/measure/measure_slowdown.h"
#include "planner/calibrate/calibration.h"
#include "planner/price/collective/collective_price.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "tools/io/console.h"
#include "tools/io/progress.h"
#include "tools/io/usage.h"
#include "tools/reports/slowdown_report.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

constexpr int kDefaultRanks = 4;

bool is_exchange(CollectiveKind op) {
  return op == CollectiveKind::kAllToAll || op == CollectiveKind::kShift;
}

/// Returns the model's time of rings and of all_to_all; the model has no trees without NCCL's constants.
std::optional<Seconds> predicted(const LinkSpec& link, const CollectiveSample& sample) {
  if (!is_priced(sample.op) || sample.algorithm != CollectiveAlgorithm::kRing) return std::nullopt;
  const CollectivePrices prices{.node = {.latency = link.latency, .bytes_per_second = link.bytes_per_second}};
  const GroupPlacement placement{.ranks = sample.members, .nodes = 1, .ranks_per_node = sample.members};
  return collective_time(prices, placement, sample.op, sample.bytes);
}

std::string algorithm_of(const CollectiveSample& sample) {
  return is_exchange(sample.op) ? "pairwise" : std::string(algorithm_name(sample.algorithm));
}

nlohmann::ordered_json json_of(const std::vector<CollectiveSample>& samples, const LinkSpec& link,
                               const SlowdownSample& slowdown) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const CollectiveSample& sample : samples) {
    const std::optional<Seconds> model = predicted(link, sample);
    nlohmann::ordered_json row{{"collective", collective_name(sample.op)},
                               {"algorithm", algorithm_of(sample)},
                               {"ranks", sample.members},
                               {"bytes", sample.bytes},
                               {"time_s", sample.median.count()},
                               {"fastest_s", sample.fastest.count()},
                               {"repeats", sample.repeats},
                               {"algorithm_gb_per_s", algorithm_bytes_per_second(sample) / 1e9},
                               {"bus_gb_per_s", bus_bytes_per_second(sample) / 1e9},
                               {"predicted_s", nullptr}};
    if (model) row["predicted_s"] = model->count();
    rows.push_back(std::move(row));
  }
  return {{"link", {{"bandwidth_gb_per_s", link.bytes_per_second / 1e9}, {"latency_us", link.latency.count() * 1e6}}},
          {"collectives", std::move(rows)},
          {"slowdown", slowdown_json(slowdown)}};
}

std::string text_of(const std::vector<CollectiveSample>& samples, const LinkSpec& link,
                    const SlowdownSample& slowdown) {
  TextTable table{
      .head = {"collective", "algorithm", "size", "time", "algorithm GB/s", "bus GB/s", "predicted", "off by"}};
  for (const CollectiveSample& sample : samples) {
    const std::optional<Seconds> model = predicted(link, sample);
    table.rows.push_back(
        {std::string(collective_name(sample.op)), algorithm_of(sample), fmt::format("{} KiB", sample.bytes / 1024),
         duration_text(sample.median.count()), fmt::format("{:.2f}", algorithm_bytes_per_second(sample) / 1e9),
         fmt::format("{:.2f}", bus_bytes_per_second(sample) / 1e9), model ? duration_text(model->count()) : "-",
         model ? fmt::format("{:+.0f} %", 100 * (*model / sample.median - 1)) : "-"});
  }
  return fmt::format("{} ranks as threads; messages between two: {:.1f} GB/s, {}\n\n{}\n{}", samples.front().members,
                     link.bytes_per_second / 1e9, duration_text(link.latency.count()), to_text(table),
                     slowdown_text({slowdown}, "fp32"));
}

}  // namespace

int calibrate_collectives(const CalibrateArguments& arguments) {
  if (!arguments.output.empty() || !arguments.from.empty())
    throw UsageError("--only collectives prints a table and makes no cluster: leave --output and --from away");
  const int ranks = arguments.ranks > 0 ? arguments.ranks : kDefaultRanks;
  const Seconds budget{arguments.budget_s};
  print_note(fmt::format("measuring for about {:.0f} s with {} ranks", budget.count(), ranks));
  const MeasureOptions messages{
      .budget = 0.2 * budget, .gemm = false, .attention = false, .other_kernels = false, .messages = true};
  const LinkSpec link = message_link(measure_cpu(messages));
  const std::vector<CollectiveSample> samples = with_progress(
      "measuring", budget, [&] { return measure_collectives({.members = ranks, .budget = 0.7 * budget}); });
  const SlowdownSample slowdown = measure_collective_slowdown({.members = ranks, .budget = 0.1 * budget});
  arguments.json ? print_answer(json_answer(json_of(samples, link, slowdown)))
                 : print_text(text_of(samples, link, slowdown));
  return kDone;
}

}}  // namespace plumb::tools
