#include "planner/score/collective_rows.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/price/collective/collective_price.h"
#include "tests/planner/fixtures.h"
#include "tests/shared_folder.h"

namespace plumb::test {
namespace {

using nlohmann::json;

std::map<std::string, ClusterSpec> presets() {
  std::map<std::string, ClusterSpec> result;
  for (const char* name : {"a100", "h100", "h200", "b200"}) result[name] = preset_cluster(name);
  return result;
}

json collective_row(const char* hardware, const char* collective, std::int64_t bytes, int gpus, json measured) {
  return {{"hardware", hardware}, {"collective", collective},       {"bytes", bytes}, {"gpus", gpus},
          {"nodes", 1},           {"measured", std::move(measured)}};
}

CollectiveRows read(std::vector<json> rows) {
  return read_collective_rows({.file = "f.json", .rows = std::move(rows)});
}

/// Returns a published file, or nothing where it is not there.
std::optional<CollectiveRows> published(const std::string& name) {
  const std::optional<std::string> text = shared_text("published/" + name);
  if (!text) return std::nullopt;
  return read_collective_rows(published_rows(json::parse(*text), name));
}

}  // namespace

TEST_CASE("every printed form of a measurement becomes seconds") {
  const std::int64_t bytes = 1'000'000'000;
  const std::vector<json> forms = {
      collective_row("H100", "all_reduce", bytes, 8, {{"time_ms", 7.0}}),
      collective_row("H100", "allreduce", bytes, 8, {{"busbw_GBps", 250.0}}),  // 7/4 of 1 GB in 7 ms
      collective_row("H100", "all-reduce, `NCCL_NVLS_ENABLE=1`", bytes, 8, {{"algbw_GBps", 1 / 7e-3}}),
      collective_row("H100", "all_reduce", bytes, 8, {{"time_us", 7000.0}})};
  const CollectiveRows result = read(forms);
  REQUIRE(result.rows.size() == 4);
  for (const CollectiveRow& read_row : result.rows) {
    CHECK(read_row.measured.count() == doctest::Approx(7e-3));
    CHECK(read_row.kind == CollectiveKind::kAllReduce);
    CHECK(read_row.group == GroupPlacement{.ranks = 8, .nodes = 1, .ranks_per_node = 8});
  }
  CHECK(result.rows[2].id == "f.json#2");
  const CollectiveRows gather = read({collective_row("H100", "all-gather", bytes, 8, {{"busbw_GBps", 125.0}})});
  CHECK(gather.rows.at(0).measured.count() == doctest::Approx(7e-3));
  const CollectiveRows exchange = read({collective_row("H100", "all2all", bytes, 8, {{"busbw_GBps", 125.0}})});
  CHECK(exchange.rows.at(0).kind == CollectiveKind::kAllToAll);
}

TEST_CASE("a row that cannot be mapped is skipped with its reason") {
  const auto reason = [](json bad) {
    const CollectiveRows result = read({std::move(bad)});
    REQUIRE(result.skipped.size() == 1);
    return result.skipped[0].reason;
  };
  const json good = collective_row("A100", "all_reduce", 1000, 8, {{"time_us", 30}});
  const auto with = [&](const char* key, json value) {
    json bad = good;
    bad[key] = std::move(value);
    return reason(bad);
  };
  CHECK(with("bytes", nullptr) == "bytes is not printed");
  CHECK(with("gpus", 1).find("from 2") != std::string::npos);
  CHECK(with("nodes", 3).find("evenly") != std::string::npos);
  CHECK(with("hardware", "MI300X").find("MI300X") != std::string::npos);
  CHECK(with("hardware", "NVIDIA GH200").find("GH200") != std::string::npos);
  CHECK(with("collective", "pp_size_4").find("pp_size_4") != std::string::npos);
  CHECK(with("measured", json::object()).find("neither") != std::string::npos);
  CHECK(with("measured", {{"time_us", 0}}).find("above 0") != std::string::npos);
  CHECK(with("measured", {{"busbw_GBps", 250}, {"algbw_GBps", 250}}).find("contradict") != std::string::npos);
  CHECK(read({{{"id", "gemm"}, {"m", 1}}}).others == 1);
}

TEST_CASE("a preset that is not given, or a node that is too large, skips its rows") {
  const CollectiveRows rows = read({collective_row("B200", "all_reduce", 1000, 8, {{"time_us", 30}}),
                                    collective_row("A100", "all_reduce", 1000, 16, {{"time_us", 30}})});
  const CollectiveScore score = score_collectives({rows}, {{"a100", preset_cluster("a100")}});
  CHECK(score.clusters.empty());
  REQUIRE(score.skipped.size() == 2);
  CHECK(score.skipped[0].reason.find("b200") != std::string::npos);
  CHECK(score.skipped[1].reason.find("16 GPUs") != std::string::npos);
}

TEST_CASE("constants that made the rows are found again, and judge whole sweeps that they have not seen") {
  // Two sweeps are of a machine that is NCCL's model with a launch of 40 us and .8 of its bandwidth; the third has
  // neither. The sweeps have 8, 8 and 1 rows: one half is the first with the third, the other the second.
  const NcclMachine machine = *nccl_machine(preset_cluster("a100"));
  const NcclCalibration truth{.simple_launch = Seconds{40e-6}, .bandwidth_scale = 0.8};
  std::vector<json> rows;
  for (const int ranks : {8, 4}) {
    const GroupPlacement group{.ranks = ranks, .nodes = 1, .ranks_per_node = ranks};
    const NcclTuning tuning = nccl_tuning(machine, group, CollectiveKind::kAllReduce);
    for (int power = 24; power < 32; ++power) {
      const std::int64_t bytes = std::int64_t{1} << power;
      rows.push_back(collective_row("A100", "all_reduce", bytes, ranks,
                                    {{"time_s", calibrated(truth, nccl_choice(tuning, bytes)).count()}}));
    }
  }
  rows.push_back(collective_row("A100", "all_reduce", std::int64_t{1} << 28, 2, {{"time_s", 1.0}}));
  const CollectiveScore score = score_collectives({read(rows)}, presets());
  REQUIRE(score.clusters.size() == 1);
  const CollectiveClusterScore& cluster = score.clusters[0];
  CHECK(cluster.sweeps[0].size() == 2);
  CHECK(cluster.sweeps[1].size() == 1);
  const LaunchFit& clean = cluster.fits[1];
  CHECK(clean.calibration.simple_launch.count() == doctest::Approx(40e-6));
  CHECK(clean.calibration.bandwidth_scale == doctest::Approx(0.8));
  CHECK(clean.calibration.low_latency_launch == Seconds{0});  // no row depends on it
  CHECK(clean.residual_ratio < 1e-9);
  for (const ScoredCollective& scored : cluster.rows) {
    REQUIRE(scored.unseen_error);
    if (scored.half == 0 && scored.row.group.ranks > 2) CHECK(std::abs(*scored.unseen_error) < 1e-9);
  }
  CHECK(cluster.zero.large.mean_pct > 15);
  CHECK(to_json(score)["rows"].size() == rows.size());
}

TEST_CASE("one sweep alone is not judged") {
  const CollectiveRows rows = read({collective_row("A100", "all_reduce", 1 << 30, 8, {{"time_ms", 8}})});
  const CollectiveScore score = score_collectives({rows}, presets());
  CHECK(score.unseen.all.count == 0);
  CHECK_FALSE(score.clusters.at(0).rows.at(0).unseen_error);
}

TEST_SUITE("oracle") {
  TEST_CASE("published collectives of 16 MiB and more are predicted to 6 % by constants that have not seen them") {
    std::vector<CollectiveRows> files;
    for (const char* name :
         {"micro_collectives_misc.json", "stas00_ml_engineering.json", "micro_deepep_alltoall.json"}) {
      std::optional<CollectiveRows> file = published(name);
      if (!file) return;
      files.push_back(std::move(*file));
    }
    const CollectiveScore score = score_collectives(files, presets());
    for (const CollectiveClusterScore& cluster : score.clusters) {
      CAPTURE(cluster.cluster);
      MESSAGE(cluster.cluster << ", 16 MiB and more: " << cluster.zero.large.count << " rows, no constant "
                              << cluster.zero.large.mean_pct << " %, fitted " << cluster.fitted.large.mean_pct
                              << " %, unseen " << cluster.unseen.large.mean_pct << " % (worst "
                              << cluster.unseen.large.worst_pct << " %)");
      for (const LaunchFit& fit : cluster.fits) {
        MESSAGE("constants of a half: LL " << fit.calibration.low_latency_launch.count() * 1e6 << " us, Simple "
                                           << fit.calibration.simple_launch.count() * 1e6 << " us, bandwidth x "
                                           << fit.calibration.bandwidth_scale);
      }
      CHECK(cluster.unseen.large.count > 30);
      CHECK(cluster.unseen.large.mean_pct < 6);
      CHECK(cluster.unseen.large.mean_pct < cluster.zero.large.mean_pct);
    }
    CHECK(score.clusters.size() == 2);
    CHECK(score.unseen.large.mean_pct < 6);
    // The skipped rows are named: 24 bandwidths without a message size, two MI300X, and 20 rows of an unnamed machine.
    CHECK(score.skipped.size() == 46);
    for (const SkippedRow& row : score.skipped) CHECK_FALSE(row.reason.empty());
  }
}

}  // namespace plumb::test
