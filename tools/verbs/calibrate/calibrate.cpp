#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/measure/measure.h"
#include "executor/transport/rank_threads.h"
#include "planner/calibrate/calibration.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/progress.h"
#include "tools/io/usage.h"
#include "tools/machine/machine_load.h"
#include "tools/machine/open_blas.h"
#include "tools/reports/table.h"
#include "tools/verbs/calibrate/calibrate_collectives.h"
#include "tools/verbs/calibrate/calibrate_cuda.h"
#include "tools/verbs/calibrate/calibrate_from.h"
#include "tools/verbs/calibrate/calibrate_gpus.h"
#include "tools/verbs/calibrate/calibrate_nccl.h"
#include "tools/verbs/calibrate/calibrate_topology.h"
#include "tools/verbs/calibrate/calibrate_transport.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

int calibrate_verb(const CalibrateArguments& arguments) {
  open_blas();
  require_threads({.data = arguments.ranks});
  if (arguments.backend == "cuda") return calibrate_cuda(arguments, today());
  if (!arguments.gpus.empty()) throw UsageError("--gpus is for --backend cuda: leave it away, or name that");
  if (arguments.only == "collectives") return calibrate_collectives(arguments);
  if (arguments.only == "transport") return calibrate_transport(arguments, today());
  if (arguments.only == "gpus") return calibrate_gpus(arguments);
  if (arguments.only == "nccl") return calibrate_nccl(arguments);
  if (arguments.only == "topology") return calibrate_topology(arguments);
  if (arguments.output.empty()) throw UsageError("calibrate writes a cluster: name the file with --output");
  require_writable(arguments.output);
  if (!arguments.from.empty()) return calibrate_from(arguments, today());
  if (!arguments.base.empty() || !arguments.plan.empty()) {
    throw UsageError("--base and --plan say what --from was measured on: give --from with its files");
  }
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int ranks = arguments.ranks > 0 ? arguments.ranks : cores;
  print_note(fmt::format("measuring for about {:.0f} s with {} ranks at work", arguments.budget_s, ranks));
  const MeasureOptions options{.budget = Seconds{arguments.budget_s}, .busy_ranks = ranks, .date = today()};
  const Measurement measurement =
      with_progress("measuring", options.budget, [&options] { return measure_cpu(options); });
  const ClusterSpec cluster = cluster_from_measurement(measurement);
  const nlohmann::ordered_json document = with_format(FileForm::kCluster, to_json(cluster));
  write_file(arguments.output, json_file_text(document));
  print_note(fmt::format("wrote {}", arguments.output));
  if (arguments.json) {
    print_answer(json_answer(document));
    return kDone;
  }
  const DeviceSpec& device = cluster.device;
  TextTable table{.head = {"measured", "value"}};
  table.rows.push_back({"fastest matrix product",
                        fmt::format("{:.1f} GFLOP/s a rank", device.peak_flops_per_second.at(Precision::kFp32) / 1e9)});
  table.rows.push_back({"memory bandwidth", fmt::format("{:.1f} GB/s a rank", device.memory_bytes_per_second / 1e9)});
  if (cluster.node_link) {
    table.rows.push_back(
        {"messages between ranks", fmt::format("{:.1f} GB/s, {}", cluster.node_link->bytes_per_second / 1e9,
                                               duration_text(cluster.node_link->latency.count()))});
  }
  table.rows.push_back({"kernel samples", std::to_string(measurement.samples.size())});
  print_text(fmt::format("{}, {} cores\n\n{}", measurement.device, measurement.cores, to_text(table)));
  return kDone;
}

}}  // namespace plumb::tools
