#include "tools/runs/nccl_cluster.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "planner/calibrate/calibration.h"

namespace plumb { inline namespace tools {
namespace {

bool is_message(const KernelSample& sample) {
  return sample.kernel == "message";
}

/// Returns a log for each kind of collective, as nccl-tests would have written it.
std::vector<NcclTestsLog> logs_of(const NcclMeasurement& measured) {
  std::vector<NcclTestsLog> logs;
  for (const NcclSample& one : measured.samples) {
    std::optional<CollectiveKind> kind;
    if (is_priced(one.sample.op)) kind = one.sample.op;
    const bool is_exchange = one.sample.op == CollectiveKind::kShift;
    if ((!kind && !is_exchange) || one.in_place) continue;
    auto log = std::ranges::find(logs, kind, &NcclTestsLog::kind);
    if (log == logs.end())
      log = logs.insert(log, {.file = fmt::format("{} of NCCL {} on {} GPUs", collective_name(one.sample.op),
                                                  measured.version, measured.ranks),
                              .kind = kind,
                              .group = {.ranks = measured.ranks, .nodes = 1, .ranks_per_node = measured.ranks}});
    log->sizes.push_back({.bytes = one.sample.bytes, .out_of_place = one.sample.median});
  }
  return logs;
}

std::vector<KernelSample> messages_of(const NcclMeasurement& measured) {
  std::vector<KernelSample> messages;
  for (const NcclSample& one : measured.samples) {
    if (one.sample.op != CollectiveKind::kShift || one.in_place) continue;
    messages.push_back({.kernel = "message",
                        .shape = {one.sample.bytes},
                        .median = one.sample.median,
                        .fastest = one.sample.fastest,
                        .slowest = one.sample.median,  // a sample is a mean
                        .repeats = one.sample.repeats});
  }
  return messages;
}

void put_messages(ClusterSpec& cluster, const NcclMeasurement& measured, const std::string& date) {
  const std::vector<KernelSample> messages = messages_of(measured);
  cluster.node_link = message_link({.device = cluster.name, .cores = measured.ranks, .samples = messages});
  cluster.sources.erase("node.efficiency");
  for (const char* path : {"node.bandwidth_gb_per_s", "node.latency_us"})
    cluster.sources[path] =
        fmt::format("measured on {}: least squares over send and receive of NCCL {} between {} GPUs", date,
                    measured.version, measured.ranks);
  if (node_count(cluster) > 1) return;
  std::erase_if(cluster.samples, is_message);
  std::ranges::copy(messages, std::back_inserter(cluster.samples));
}

void put_slowdown(ClusterFit& fit, const NcclMeasurement& measured, std::string_view format, const std::string& date) {
  const auto sample = std::ranges::find(measured.slowdowns, CollectiveKind::kAllReduce, &SlowdownSample::op);
  if (sample == measured.slowdowns.end()) {
    fit.notes.emplace_back(
        "device.collective_slowdown: no products were timed beside an all-reduce: it stays as it is");
    return;
  }
  const std::optional<double> slowdown = slowdown_of(*sample);
  if (!slowdown) {
    fit.notes.push_back(fmt::format(
        "device.collective_slowdown: nothing was computed in the {:.3g} s in which the all-reduce was under "
        "way, which no slowdown says: it stays as it is",
        sample->collective.count()));
    return;
  }
  fit.cluster.device.collective_slowdown = *slowdown;
  fit.cluster.sources["device.collective_slowdown"] = fmt::format(
      "measured on {}: products of {} x {} in {} beside an all-reduce of {} KiB by NCCL {} on {} GPUs", date,
      sample->product_edge, sample->product_edge, format, sample->bytes / 1024, measured.version, measured.ranks);
}

}  // namespace

ClusterFit with_nccl(ClusterSpec cluster, const std::vector<NcclMeasurement>& measured, std::string_view format,
                     const std::string& date) {
  ClusterEvidence evidence{.date = date};
  const NcclMeasurement *smallest = nullptr, *largest = nullptr;
  for (const NcclMeasurement& one : measured) {
    if (one.ranks < 2) continue;
    if (smallest == nullptr || one.ranks < smallest->ranks) smallest = &one;
    if (largest == nullptr || one.ranks > largest->ranks) largest = &one;
    std::ranges::move(logs_of(one), std::back_inserter(evidence.collectives));
  }
  if (largest == nullptr)
    return {.cluster = std::move(cluster), .notes = {"one GPU has nobody to exchange with: nothing of NCCL was added"}};
  const bool has_constants = cluster.nccl.has_value();
  ClusterFit fit = fit_cluster(std::move(cluster), evidence);
  if (!has_constants) {
    fit.notes.clear();  // they say that the cluster has no constants; it gets a measured link instead
    put_messages(fit.cluster, *smallest, date);
  }
  put_slowdown(fit, *largest, format, date);
  return fit;
}

}}  // namespace plumb::tools
