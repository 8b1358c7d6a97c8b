#include "tools/verbs/calibrate/calibrate_nccl.h"

#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cuda_library/nccl_library.h"
#include "planner/price/collective/collective_price.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/inputs.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/machine/machine_load.h"
#include "tools/reports/slowdown_report.h"
#include "tools/reports/table.h"
#include "tools/runs/lower_plan.h"
#include "tools/runs/nccl_cluster.h"
#include "tools/verbs/calibrate/measure_gpus.h"

namespace plumb { inline namespace tools {
namespace {

/// Returns the model's prediction on that cluster, with the algorithm and the protocol that NCCL is predicted to
/// choose.
std::optional<PricedCollective> predicted(const std::optional<ClusterSpec>& base, const CollectiveSample& sample) {
  if (!base || !is_priced(sample.op) || sample.members < 2) return std::nullopt;
  const GroupPlacement placement{.ranks = sample.members, .nodes = 1, .ranks_per_node = sample.members};
  return price_collective(collective_prices(*base, 1), placement, sample.op, sample.bytes);
}

nlohmann::ordered_json json_of(const NcclMeasurement& measured, const std::optional<ClusterSpec>& base) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(), slowdowns = nlohmann::ordered_json::array();
  for (const auto& [sample, in_place, wrong] : measured.samples) {
    const std::optional<PricedCollective> model = predicted(base, sample);
    nlohmann::ordered_json row{{"collective", collective_name(sample.op)},
                               {"ranks", sample.members},
                               {"bytes", sample.bytes},
                               {"in_place", in_place},
                               {"time_s", sample.median.count()},
                               {"repeats", sample.repeats},
                               {"algorithm_gb_per_s", algorithm_bytes_per_second(sample) / 1e9},
                               {"bus_gb_per_s", bus_bytes_per_second(sample) / 1e9},
                               {"wrong", wrong},
                               {"predicted_s", nullptr},
                               {"predicted_algorithm", nullptr},
                               {"predicted_protocol", nullptr}};
    if (model) {
      row["predicted_s"] = model->time.count();
      row["predicted_algorithm"] = model->algorithm;
      row["predicted_protocol"] = model->protocol;
    }
    rows.push_back(std::move(row));
  }
  for (const SlowdownSample& sample : measured.slowdowns) slowdowns.push_back(slowdown_json(sample));
  return {{"nccl", measured.version}, {"collectives", std::move(rows)}, {"slowdowns", std::move(slowdowns)}};
}

std::string text_of(const NcclMeasurement& measured, const std::optional<ClusterSpec>& base,
                    const std::string& format) {
  TextTable table{.head = {"collective", "size", "", "time", "algorithm GB/s", "bus GB/s", "wrong", "predicted", "by"}};
  for (const auto& [sample, in_place, wrong] : measured.samples) {
    const std::optional<PricedCollective> model = predicted(base, sample);
    table.rows.push_back({std::string(collective_name(sample.op)), fmt::format("{} B", sample.bytes),
                          in_place ? "in place" : "out of place", duration_text(sample.median.count()),
                          fmt::format("{:.2f}", algorithm_bytes_per_second(sample) / 1e9),
                          fmt::format("{:.2f}", bus_bytes_per_second(sample) / 1e9), std::to_string(wrong),
                          model ? duration_text(model->time.count()) : "-",
                          model ? fmt::format("{} {}", model->algorithm, model->protocol) : "-"});
  }
  return fmt::format("NCCL {}, {} GPUs\n\n{}\n{}", measured.version, measured.ranks, to_text(table),
                     measured.slowdowns.empty() ? "one GPU computes beside no collective\n"
                                                : slowdown_text(measured.slowdowns, format));
}

}  // namespace

int calibrate_nccl(const CalibrateArguments& arguments) {
  if (!arguments.from.empty() || !arguments.plan.empty())
    throw UsageError("--only nccl measures: leave --from and --plan away");
  if (arguments.base.empty() && !arguments.output.empty())
    throw UsageError(
        "--only nccl adds to a cluster what it has measured: name that with --base, or leave --output away");
  std::optional<ClusterSpec> base;
  if (!arguments.base.empty()) base = cluster_input(arguments.base);
  if (!arguments.output.empty()) require_writable(arguments.output);
  NcclMeasureOptions options{.ranks = arguments.ranks, .budget = Seconds{arguments.budget_s}};
  options.half = half_format(precision_from_name(arguments.precision, "--precision"));
  const NcclMeasurement measured = measure_gpus(options);
  if (!arguments.output.empty()) {
    const ClusterFit fit = with_nccl(*base, {measured}, arguments.precision, today());
    for (const std::string& note : fit.notes) print_note(note);
    write_file(arguments.output, json_file_text(with_format(FileForm::kCluster, to_json(fit.cluster))));
    print_note(fmt::format("wrote {}: {} with what NCCL has shown", arguments.output, fit.cluster.name));
  }
  arguments.json ? print_answer(json_answer(json_of(measured, base)))
                 : print_text(text_of(measured, base, arguments.precision));
  return kDone;
}

}}  // namespace plumb::tools
