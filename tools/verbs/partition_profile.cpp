#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/partition/profiled_graph.h"
#include "planner/partition/replicated_partition.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/limits.h"
#include "tools/inputs/inputs.h"
#include "tools/io/console.h"
#include "tools/io/usage.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

int partition_profile(const PartitionArguments& arguments, const std::string& text) {
  using nlohmann::ordered_json;
  const std::string& file = arguments.question.model;
  if (arguments.method != "time")
    throw UsageError(
        fmt::format("--method {} is for layer graphs without times: a profile is cut by its times", arguments.method));
  const QuestionArguments& question = arguments.question;
  if (question.global_batch > 0 || question.sequence > 0 || !question.precision.empty() ||
      !question.optimizer.empty() || !question.layout.empty()) {
    throw UsageError(
        fmt::format("{} is a profile, whose times were measured: leave --global-batch, --seq, --precision, --optimizer "
                    "and --layout "
                    "away",
                    file));
  }
  const bool piper = file.ends_with(".json");
  const std::vector<ProfiledNode> nodes = piper ? parse_piper_input(text, file) : parse_pipedream_profile(text, file);
  const ClusterSpec cluster = cluster_input(arguments.question.cluster);
  const double replicas = arguments.straight ? 1 : cluster.devices;
  const double steps = std::pow(static_cast<double>(nodes.size()), 2) * cluster.devices * replicas;
  if (steps > kMostPartitionSteps) {
    throw InputError(
        fmt::format("{}: {} nodes on {} devices have {:.2g} ways to be looked at, and {:.2g} are the most: give a "
                    "smaller cluster, or a profile of fewer nodes",
                    file, nodes.size(), cluster.devices, steps, static_cast<double>(kMostPartitionSteps)));
  }
  constexpr double kAdamMoments = 2;  // each as large as the weights, which profiles give in fp32
  const Chain chain = chain_of(nodes, kAdamMoments);
  std::vector<double> weights;
  for (const ProfiledNode& node : nodes) weights.push_back(node.parameter_bytes);

  const bool one_node = cluster.devices <= cluster.devices_per_node;
  const auto& link = one_node ? cluster.node_link : cluster.network;
  ReplicatedLimits limits{.devices = cluster.devices, .straight = arguments.straight};
  if (link) limits.bytes_per_second = link->bytes_per_second * link->efficiency;
  limits.transfers = !arguments.as_pipedream;
  if (arguments.as_pipedream) {
    if (link) limits.bytes_per_second = link->bytes_per_second;
  } else {
    limits.bytes = static_cast<double>(cluster.device.memory_bytes - cluster.device.reserved_bytes);
  }
  if (limits.straight && std::ssize(nodes) < limits.devices)
    throw InputError(fmt::format("{} has {} nodes, too few for {} stages: give a smaller cluster", file, nodes.size(),
                                 limits.devices));
  const auto partition = replicated_partition(chain, weights, limits);
  if (!partition) {
    print_note(fmt::format("plumb: no way to cut {} fits devices of {}: use more of them, or larger ones", file,
                           bytes_text(limits.bytes)));
    return kInfeasible;
  }

  TextTable table{.head = {"stage", "nodes", "from", "to", "devices", "time", "weights", "sends on"}};
  ordered_json stages = ordered_json::array();
  std::size_t begin = 0;
  Seconds alone{0};
  for (const Seconds seconds : chain.seconds) alone += seconds;
  for (std::size_t stage = 0; stage < partition->stages.size(); ++stage) {
    const ReplicatedStage& of = partition->stages[stage];
    const std::size_t end = begin + static_cast<std::size_t>(of.nodes);
    double bytes = 0;
    for (std::size_t i = begin; i < end; ++i) bytes += weights[i];
    const double sends = chain.cut_bytes[end];
    stages.push_back({{"stage", stage},
                      {"nodes", of.nodes},
                      {"first", nodes[begin].name},
                      {"last", nodes[end - 1].name},
                      {"devices", of.replicas},
                      {"time_s", of.seconds.count()},
                      {"weight_bytes", bytes},
                      {"sends_bytes", sends}});
    table.rows.push_back({std::to_string(stage), std::to_string(of.nodes), nodes[begin].name.substr(0, 24),
                          nodes[end - 1].name.substr(0, 24), std::to_string(of.replicas),
                          duration_text(of.seconds.count()), bytes_text(bytes), bytes_text(sends)});
    begin = end;
  }
  if (arguments.json) {
    print_answer(json_answer(ordered_json{{"graph", file},
                                          {"stages", stages},
                                          {"time_of_a_minibatch_s", partition->slowest.count()},
                                          {"time_on_one_device_s", alone.count()}}));
    return kDone;
  }
  print_answer(fmt::format("{} on {} x {}\n\n", file, cluster.devices, cluster.device.name) + to_text(table) +
               fmt::format("\na mini-batch every {}, {:.2f} times as fast as on one device\n",
                           duration_text(partition->slowest.count()), alone / partition->slowest));
  return kDone;
}

}}  // namespace plumb::tools
