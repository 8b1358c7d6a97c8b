#include "tools/verbs/calibrate_nccl.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/nccl/nccl_library.h"
#include "executor/transport/transport.h"
#include "planner/cost/collective_price.h"
#include "schedules/error.h"
#include "tools/console.h"
#include "tools/inputs/inputs.h"
#include "tools/priced_kind.h"
#include "tools/reports/table.h"

namespace plumb {
namespace {

/// What the model says of it on that cluster; NCCL's own choice is its guess.
std::optional<PricedCollective> predicted(const std::optional<ClusterSpec>& base, const CollectiveSample& sample) {
  const std::optional<CollectiveKind> kind = priced_kind(sample.op);
  if (!base || !kind || sample.members < 2) return std::nullopt;
  const GroupPlacement placement{.ranks = sample.members, .nodes = 1, .ranks_per_node = sample.members};
  return price_collective(collective_prices(*base, 1), placement, *kind, sample.bytes);
}

nlohmann::ordered_json json_of(const std::vector<NcclSample>& samples, const std::optional<ClusterSpec>& base,
                               const std::string& version) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [sample, in_place, wrong] : samples) {
    const std::optional<PricedCollective> model = predicted(base, sample);
    nlohmann::ordered_json row{{"collective", collective_op_name(sample.op)},
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
  return {{"nccl", version}, {"collectives", std::move(rows)}};
}

std::string text_of(const std::vector<NcclSample>& samples, const std::optional<ClusterSpec>& base,
                    const std::string& version) {
  TextTable table{.head = {"collective", "size", "", "time", "algorithm GB/s", "bus GB/s", "wrong", "predicted", "by"}};
  for (const auto& [sample, in_place, wrong] : samples) {
    const std::optional<PricedCollective> model = predicted(base, sample);
    table.rows.push_back({std::string(collective_op_name(sample.op)), fmt::format("{} B", sample.bytes),
                          in_place ? "in place" : "out of place", duration_text(sample.median.count()),
                          fmt::format("{:.2f}", algorithm_bytes_per_second(sample) / 1e9),
                          fmt::format("{:.2f}", bus_bytes_per_second(sample) / 1e9), std::to_string(wrong),
                          model ? duration_text(model->time.count()) : "-",
                          model ? fmt::format("{} {}", model->algorithm, model->protocol) : "-"});
  }
  return fmt::format("NCCL {}, {} GPUs\n\n{}", version, samples.empty() ? 0 : samples.front().sample.members,
                     to_text(table));
}

}  // namespace

int calibrate_nccl(const CalibrateArguments& arguments) {
  if (!arguments.output.empty() || !arguments.from.empty() || !arguments.plan.empty())
    throw SpecError("--only nccl prints a table and makes no cluster: leave --output, --from and --plan away");
  std::optional<ClusterSpec> base;
  if (!arguments.base.empty()) base = cluster_input(arguments.base);
  std::error_code none;
  const NcclLibrary& library =
      open_nccl_library(std::filesystem::read_symlink("/proc/self/exe", none).parent_path().string(), PLUMB_VERSION);
  const NcclMeasureOptions options{.ranks = arguments.ranks, .budget = Seconds{arguments.budget_s}};
  std::vector<NcclSample> samples;
  std::string version;
  const std::string wrong =
      with_progress("measuring", options.budget, [&] { return library.measure(options, samples, version); });
  if (!wrong.empty()) throw RunError(wrong);
  for (const NcclSample& sample : samples)
    if (sample.wrong > 0)
      print_note(fmt::format("{}: {} values are wrong", collective_op_name(sample.sample.op), sample.wrong));
  const auto measured = std::ranges::count(samples, false, &NcclSample::in_place);
  const auto all = std::ssize(options.sizes_bytes) * kMeasuredCollectives;
  if (measured < all)
    print_note(fmt::format("{} of {} sizes of collectives did not fit into {:g} s: give a larger --budget",
                           all - measured, all, arguments.budget_s));
  print_answer(arguments.json ? json_of(samples, base, version).dump(2) + "\n" : text_of(samples, base, version));
  return kDone;
}

}  // namespace plumb
