#include "planner/score/collective_rows.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/price/collective/collective_price.h"
#include "planner/price/collective/nccl_point_to_point.h"
#include "planner/price/collective/nccl_tuning.h"
#include "planner/score/row_fields.h"
#include "schedules/spelling.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::int64_t kLargeBytes = 16 << 20;

/// A row that cannot be mapped, with its reason.
struct UnreadRow {
  std::string reason;
};

std::optional<double> number_of(const nlohmann::json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object.at(key).is_number()) return std::nullopt;
  return object.at(key).get<double>();
}

std::int64_t count_of(const nlohmann::json& row, const char* key, std::int64_t least, std::int64_t most) {
  const std::optional<double> value = number_of(row, key);
  if (!value) throw UnreadRow{fmt::format("{} is not printed", key)};
  if (!(*value >= static_cast<double>(least) && *value <= static_cast<double>(most)) || *value != std::floor(*value))
    throw UnreadRow{fmt::format("{} is {}: no whole number from {} to {}", key, *value, least, most)};
  return static_cast<std::int64_t>(*value);
}

/// Returns the collective of a text such as "all-reduce, `NCCL_NVLS_ENABLE=0`".
CollectiveKind kind_of(const std::string& text) {
  const std::string name = letters_and_digits(text.substr(0, text.find(',')));
  static const std::map<std::string, CollectiveKind> kinds = {{"allreduce", CollectiveKind::kAllReduce},
                                                              {"allgather", CollectiveKind::kAllGather},
                                                              {"reducescatter", CollectiveKind::kReduceScatter},
                                                              {"alltoall", CollectiveKind::kAllToAll},
                                                              {"all2all", CollectiveKind::kAllToAll},
                                                              {"broadcast", CollectiveKind::kBroadcast}};
  const auto found = kinds.find(name);
  if (found == kinds.end()) throw UnreadRow{fmt::format("collective \"{}\" is none that a group times", text)};
  return found->second;
}

Seconds measured_time(const nlohmann::json& row, CollectiveKind kind, int ranks, std::int64_t bytes) {
  constexpr double kContradiction = 0.05;  // more than the rounding of the smallest printed bandwidths
  if (!row.contains("measured")) throw UnreadRow{"nothing measured is printed"};
  const nlohmann::json& measured = row.at("measured");
  const auto size = static_cast<double>(bytes);
  std::vector<double> seconds;
  for (const auto& [key, unit] : {std::pair("time_s", 1.0), std::pair("time_ms", 1e-3), std::pair("time_us", 1e-6)}) {
    if (const auto time = number_of(measured, key)) seconds.push_back(*time * unit);
  }
  if (const auto bus = number_of(measured, "busbw_GBps"))
    seconds.push_back(bus_factor(kind, ranks) * size / (*bus * 1e9));
  if (const auto alg = number_of(measured, "algbw_GBps")) seconds.push_back(size / (*alg * 1e9));
  if (seconds.empty()) throw UnreadRow{"neither time nor bus bandwidth is printed"};
  const auto [least, most] = std::ranges::minmax(seconds);
  if (!(least > 0) || !std::isfinite(most)) throw UnreadRow{"the measured time is not above 0"};
  if (most > (1 + kContradiction) * least)
    throw UnreadRow{fmt::format("the printed times contradict each other: {:.4g} and {:.4g} s", least, most)};
  return Seconds{seconds.front()};
}

CollectiveRow row_of(const nlohmann::json& row, const std::string& id) {
  const std::string collective = text_at(row, "collective");
  const std::string hardware = text_at(row, "hardware");
  const std::int64_t bytes = count_of(row, "bytes", 1, std::int64_t{1} << 50);
  const CollectiveKind kind = kind_of(collective);
  const std::string preset = device_preset_in(hardware);
  if (preset.empty()) throw UnreadRow{fmt::format("hardware \"{}\" is no cluster that is known to run NCCL", hardware)};
  const auto ranks = static_cast<int>(count_of(row, "gpus", 2, 1 << 20));
  const auto nodes = static_cast<int>(count_of(row, "nodes", 1, ranks));
  if (ranks % nodes != 0) throw UnreadRow{fmt::format("{} GPUs do not fill {} nodes evenly", ranks, nodes)};
  const bool ring = text_at(row, "algo").starts_with("Ring") || hardware.ends_with(", ring");
  const std::string origin = text_at(row, "source.repo");
  CollectiveRow result{.id = id, .preset = preset};
  result.kind = kind;
  result.group = {.ranks = ranks, .nodes = nodes, .ranks_per_node = ranks / nodes};
  result.bytes = bytes;
  if (ring) result.only = NcclAlgorithm::kRing;
  result.measured = measured_time(row, kind, ranks, bytes);
  result.sweep =
      fmt::format("{} {} {} {}x{}{}", origin, preset, collective_name(kind), nodes, ranks / nodes, ring ? " ring" : "");
  return result;
}

NcclEstimate estimate_of(const NcclMachine& machine, const CollectiveRow& row) {
  if (row.kind == CollectiveKind::kAllToAll) return nccl_all_to_all(machine, row.group, row.bytes);
  return nccl_choice(nccl_tuning(machine, row.group, row.kind), row.bytes, row.only);
}

/// Returns a key of the machine as NCCL sees it: presets with the same key share their constants.
std::string machine_key(const NcclMachine& machine) {
  const NcclSpec& spec = machine.spec;
  return fmt::format("{} {} {} {} {} {:.6g}", generation_name(spec.generation), spec.nvlink, spec.nvlink_sharp,
                     spec.network_sharp, machine.devices_per_node, machine.link_bytes_per_second);
}

/// Returns the reason why the row cannot have run on the machine; empty if it can.
std::string conflict_of(const CollectiveRow& row, const std::optional<NcclMachine>& machine) {
  if (!machine || (row.group.nodes > 1 && machine->nic_bytes_per_second <= 0))
    return fmt::format("cluster preset {} says nothing of NCCL", row.preset);
  if (row.group.ranks_per_node > machine->devices_per_node)
    return fmt::format("{} GPUs on a node: those of preset {} have {}", row.group.ranks_per_node, row.preset,
                       machine->devices_per_node);
  return "";
}

/// Returns by [sweep] the half to which it belongs.
std::map<std::string, int> deal(const std::vector<ScoredCollective>& rows) {
  std::map<std::string, int> lengths;
  for (const ScoredCollective& row : rows) ++lengths[row.row.sweep];
  std::vector<std::pair<std::string, int>> sweeps(lengths.begin(), lengths.end());
  std::ranges::stable_sort(sweeps, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::map<std::string, int> halves;
  int sizes[2] = {0, 0};
  for (const auto& [sweep, length] : sweeps) {
    const int half = sizes[0] <= sizes[1] ? 0 : 1;
    halves[sweep] = half;
    sizes[half] += length;
  }
  return halves;
}

double signed_error(const ScoredCollective& row, const NcclCalibration& calibration) {
  return calibrated(calibration, row.estimate) / row.row.measured - 1;
}

template <class ErrorOf>
CollectiveErrors errors_of(const std::vector<ScoredCollective>& rows, ErrorOf error_of) {
  std::vector<double> all, large;
  for (const ScoredCollective& row : rows) {
    const std::optional<double> error = error_of(row);
    if (!error) continue;
    all.push_back(100 * *error);
    if (row.row.bytes >= kLargeBytes) large.push_back(100 * *error);
  }
  return {.all = error_statistics(all), .large = error_statistics(large)};
}

void judge(CollectiveClusterScore& cluster) {
  const std::map<std::string, int> halves = deal(cluster.rows);
  for (const auto& [sweep, half] : halves) cluster.sweeps[half].push_back(sweep);
  std::vector<CollectiveObservation> observations[2];
  for (ScoredCollective& row : cluster.rows) {
    row.half = halves.at(row.row.sweep);
    observations[row.half].push_back({.estimate = row.estimate, .measured = row.row.measured});
  }
  for (const int half : {0, 1}) cluster.fits[half] = fit_launches(observations[half]);
  for (ScoredCollective& row : cluster.rows) {
    row.zero_error = signed_error(row, {});
    row.fitted_error = signed_error(row, cluster.fits[row.half].calibration);
    if (!observations[1 - row.half].empty())
      row.unseen_error = signed_error(row, cluster.fits[1 - row.half].calibration);
  }
  cluster.zero = errors_of(cluster.rows, [](const ScoredCollective& row) { return std::optional(row.zero_error); });
  cluster.fitted = errors_of(cluster.rows, [](const ScoredCollective& row) { return std::optional(row.fitted_error); });
  cluster.unseen = errors_of(cluster.rows, [](const ScoredCollective& row) { return row.unseen_error; });
}

nlohmann::ordered_json to_json(const ErrorStatistics& errors) {
  return {{"rows", errors.count},
          {"mean_pct", errors.mean_pct},
          {"median_pct", errors.median_pct},
          {"max_pct", errors.worst_pct},
          {"bias_pct", errors.bias_pct}};
}

nlohmann::ordered_json to_json(const CollectiveErrors& errors) {
  return {{"all", to_json(errors.all)}, {"from_16_mib", to_json(errors.large)}};
}

nlohmann::ordered_json to_json(const LaunchFit& fit) {
  const auto error = [&](int constant, double unit) -> nlohmann::ordered_json {
    if (!fit.standard_error[constant]) return nullptr;
    return *fit.standard_error[constant] / unit;
  };
  return {{"low_latency_launch_us", fit.calibration.low_latency_launch.count() * 1e6},
          {"low_latency_launch_standard_error_us", error(LaunchFit::kLowLatency, 1e-6)},
          {"simple_launch_us", fit.calibration.simple_launch.count() * 1e6},
          {"simple_launch_standard_error_us", error(LaunchFit::kSimple, 1e-6)},
          {"bandwidth_scale", fit.calibration.bandwidth_scale},
          {"bandwidth_scale_standard_error", error(LaunchFit::kScale, 1)}};
}

}  // namespace

double bus_factor(CollectiveKind kind, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  if (kind == CollectiveKind::kAllReduce) return 2 * share;
  return kind == CollectiveKind::kBroadcast ? 1 : share;
}

CollectiveRows read_collective_rows(const PublishedRows& published) {
  CollectiveRows result;
  for (std::size_t i = 0; i < published.rows.size(); ++i) {
    const nlohmann::json& row = published.rows[i];
    if (text_at(row, "collective").empty()) {
      ++result.others;
      continue;
    }
    const std::string id = row_id(published, i);
    try {
      result.rows.push_back(row_of(row, id));
    } catch (const UnreadRow& unmapped) {
      result.skipped.push_back({.id = id, .reason = unmapped.reason});
    }
  }
  return result;
}

CollectiveScore score_collectives(const std::vector<CollectiveRows>& files,
                                  const std::map<std::string, ClusterSpec>& presets) {
  CollectiveScore score;
  std::map<std::string, CollectiveClusterScore> clusters;
  for (const CollectiveRows& file : files) {
    score.others += file.others;
    score.skipped.insert(score.skipped.end(), file.skipped.begin(), file.skipped.end());
    for (const CollectiveRow& row : file.rows) {
      const auto preset = presets.find(row.preset);
      const std::optional<NcclMachine> machine = preset == presets.end() ? std::nullopt : nccl_machine(preset->second);
      const std::string conflict = conflict_of(row, machine);
      if (!conflict.empty()) {
        score.skipped.push_back({.id = row.id, .reason = conflict});
        continue;
      }
      CollectiveClusterScore& cluster = clusters[machine_key(*machine)];
      if (cluster.cluster.find(row.preset) == std::string::npos)
        cluster.cluster += (cluster.cluster.empty() ? "" : ", ") + row.preset;
      cluster.rows.push_back({.row = row, .estimate = estimate_of(*machine, row)});
    }
  }
  std::vector<ScoredCollective> all;
  for (auto& [key, cluster] : clusters) {
    judge(cluster);
    all.insert(all.end(), cluster.rows.begin(), cluster.rows.end());
    score.clusters.push_back(std::move(cluster));
  }
  score.unseen = errors_of(all, [](const ScoredCollective& row) { return row.unseen_error; });
  return score;
}

nlohmann::ordered_json to_json(const CollectiveScore& score) {
  nlohmann::ordered_json json{{"unseen", to_json(score.unseen)}, {"other_rows", score.others}};
  json["clusters"] = nlohmann::ordered_json::array();
  json["rows"] = nlohmann::ordered_json::array();
  for (const CollectiveClusterScore& cluster : score.clusters) {
    nlohmann::ordered_json entry{{"cluster", cluster.cluster},
                                 {"zero_constants", to_json(cluster.zero)},
                                 {"fitted", to_json(cluster.fitted)},
                                 {"unseen", to_json(cluster.unseen)}};
    for (const int half : {0, 1})
      entry["halves"].push_back({{"sweeps", cluster.sweeps[half]}, {"constants", to_json(cluster.fits[half])}});
    json["clusters"].push_back(std::move(entry));
    for (const ScoredCollective& row : cluster.rows) {
      const double unseen = row.unseen_error.value_or(row.zero_error);
      json["rows"].push_back({{"id", row.row.id},
                              {"cluster", row.row.preset},
                              {"algorithm", algorithm_name(row.estimate.algorithm)},
                              {"protocol", protocol_name(row.estimate.protocol)},
                              {"predicted", row.row.measured.count() * (1 + unseen)},
                              {"measured", row.row.measured.count()},
                              {"error_pct", 100 * unseen},
                              {"judged_on", row.unseen_error ? "the other half" : "no constants"}});
    }
  }
  json["skipped"] = nlohmann::ordered_json::array();
  for (const SkippedRow& row : score.skipped) json["skipped"].push_back({{"id", row.id}, {"reason", row.reason}});
  return json;
}

}}  // namespace plumb::planner
