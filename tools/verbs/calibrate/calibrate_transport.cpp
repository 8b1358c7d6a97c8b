#include "tools/verbs/calibrate/calibrate_transport.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/measure/measure_messages.h"
#include "executor/mpi/measure_mpi.h"
#include "executor/transport/mpi/launched.h"
#include "planner/calibrate/cluster_messages.h"
#include "planner/calibrate/fit_messages.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/link_file.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/machine/machine_load.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

nlohmann::ordered_json json_of(const std::vector<KernelSample>& samples, const MessageFit& fit) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const KernelSample& sample : samples)
    rows.push_back({{"bytes", sample.shape.front()},
                    {"median_us", sample.median.count() * 1e6},
                    {"fastest_us", sample.fastest.count() * 1e6},
                    {"slowest_us", sample.slowest.count() * 1e6},
                    {"repeats", sample.repeats},
                    {"fitted_us", message_time(fit.link, sample.shape.front()).count() * 1e6}});
  return {{"link", to_json(fit.link)},
          {"residual_pct", {{"mean", fit.mean_residual_pct}, {"worst", fit.worst_residual_pct}}},
          {"messages", std::move(rows)}};
}

std::string text_of(const std::vector<KernelSample>& samples, const MessageFit& fit) {
  TextTable table{.head = {"message", "median", "fastest", "slowest", "of", "fitted"}};
  for (const KernelSample& sample : samples)
    table.rows.push_back({bytes_text(static_cast<double>(sample.shape.front())), duration_text(sample.median.count()),
                          duration_text(sample.fastest.count()), duration_text(sample.slowest.count()),
                          std::to_string(sample.repeats),
                          duration_text(message_time(fit.link, sample.shape.front()).count())});
  const MessageLink& link = fit.link;
  return fmt::format(
      "{:.3f} GB/s behind a burst of {}, {} a message, {} more beyond {}; off by {:.1f} % in the mean, {:.1f} % at "
      "worst\n\n{}",
      link.bytes_per_second / 1e9, bytes_text(static_cast<double>(link.burst_bytes)),
      duration_text(link.latency.count()), duration_text(link.rendezvous.count()),
      bytes_text(static_cast<double>(link.eager_bytes)), fit.mean_residual_pct, fit.worst_residual_pct, to_text(table));
}

}  // namespace

int calibrate_transport(const CalibrateArguments& arguments, const std::string& date) {
  if (!arguments.from.empty() || !arguments.plan.empty())
    throw UsageError("--only transport measures messages: leave --from and --plan away");
  if (!arguments.base.empty() && arguments.output.empty())
    throw UsageError("--base takes the measured link into a cluster: name the file to write with --output");
  std::optional<ClusterSpec> base;
  if (!arguments.base.empty()) base = cluster_input(arguments.base);
  if (!arguments.output.empty() && launched_rank() == 0) require_writable(arguments.output);
  const std::string load = load_text();
  std::vector<KernelSample> samples;
  if (launched_ranks() > 1) {
    std::optional<std::vector<KernelSample>> measured = measure_messages_mpi({});
    if (!measured) return kDone;  // the first process reports
    samples = std::move(*measured);
  } else {
    samples = measure_messages_of_threads({});
  }
  const MessageFit fit = fit_messages(samples);
  nlohmann::ordered_json document = json_of(samples, fit);
  document["date"] = date;
  document["between"] = launched_ranks() > 1 ? "two processes" : "two threads";
  document["load"] = load;
  if (base) {
    const std::string source = fmt::format("measured on {}: messages between {}, off by {:.1f} % in the mean; {}", date,
                                           document["between"].get<std::string>(), fit.mean_residual_pct, load);
    const ClusterSpec cluster = with_messages(*base, samples, fit, source);
    write_file(arguments.output, json_file_text(with_format(FileForm::kCluster, to_json(cluster))));
    print_note(fmt::format("wrote {}: {} with this link", arguments.output, cluster.name));
  } else if (!arguments.output.empty()) {
    write_file(arguments.output, json_file_text(with_format(FileForm::kLink, document)));
    print_note(fmt::format("wrote {}: for --link of run and validate", arguments.output));
  }
  arguments.json ? print_answer(json_answer(document))
                 : print_text(fmt::format("{}\n{}", text_of(samples, fit), load + "\n"));
  return kDone;
}

}}  // namespace plumb::tools
