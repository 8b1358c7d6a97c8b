#include "planner/score/score.h"

#include <numeric>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/refusal.h"
#include "tests/planner/score/score_fixtures.h"

namespace plumb::test {

using nlohmann::json;

TEST_CASE("rows made from the prediction itself are scored 0 per cent off") {
  const ScoreLibrary library = small_library();
  const SourceScore score = score_rows(library, {.file = "f", .rows = predicted_rows(library, {1, 2, 4, 8}, 1)});
  CHECK(score.mappings == std::vector<std::string>{"small"});
  CHECK(score.rows == 4);
  CHECK(score.scored == 4);
  CHECK(score.skipped.empty());
  CHECK(score.step_time.count == 4);
  CHECK(score.step_time.worst_pct == 0);
  CHECK(score.rank_correlation == doctest::Approx(1));
  CHECK(score.top1_regret_pct == doctest::Approx(0));
}

TEST_CASE("the error is against what was measured, with its sign") {
  const ScoreLibrary library = small_library();
  const SourceScore score = score_rows(library, {.file = "f", .rows = predicted_rows(library, {1, 2}, 1.25)});
  CHECK(score.step_time.mean_pct == doctest::Approx(20));
  CHECK(score.step_time.bias_pct == doctest::Approx(-20));
  CHECK(!score.rank_correlation);  // two rows are no order
}

TEST_CASE("a faulty row is skipped with its reason and hides no other") {
  const ScoreLibrary library = small_library();
  std::vector<json> rows = predicted_rows(library, {1, 2}, 1);
  rows.push_back(small_row());
  rows.back()["dp"] = 7;
  rows.push_back(small_row());
  rows.back()["measured"] = {{"busbw_GBps", 100}};
  rows.back().erase("id");
  const SourceScore score = score_rows(library, {.file = "f.json", .rows = rows});
  CHECK(score.scored == 2);
  REQUIRE(score.skipped.size() == 2);
  CHECK(score.skipped[0].id == "f.json#3");
  CHECK(score.skipped[0].reason == "neither a step's time nor memory was measured");
  CHECK(score.skipped[1].reason.find("contradictory degrees") != std::string::npos);
}

TEST_CASE("a step that needs more than the device's peak ran in another precision") {
  const ScoreLibrary library = small_library();
  json row = small_row();
  row["precision"] = "fp32";
  row["measured"] = {{"step_time_s", 1e-3}};
  const SourceScore score = score_rows(library, {.file = "f", .rows = {row}});
  CHECK(score.quantities.empty());
  REQUIRE(score.skipped.size() == 1);
  CHECK(score.skipped.front().reason.find("times the peak of the ") != std::string::npos);
  CHECK(score.skipped.front().reason.find("in fp32: it ran in another precision") != std::string::npos);
  // At the peak itself the row stands: the causal half of the scores need not be computed.
  row["measured"] = {{"step_time_s", 10.0}};
  CHECK(score_rows(library, {.file = "f", .rows = {row}}).quantities.size() == 1);
}

TEST_CASE("a correction is told with its evidence and with the error without it") {
  ScoreLibrary library = small_library();
  const std::vector<json> rows = predicted_rows(library, {1, 2}, 1);
  library.mappings.front().rules.push_back(
      {.where = {{"recompute", "full"}}, .correct = {{"recompute", "none"}}, .because = "because it is so"});
  const SourceScore score = score_rows(library, {.file = "f", .rows = rows});
  CHECK(score.corrections == std::vector<std::string>{"because it is so"});
  CHECK(score.step_time.bias_pct < -5);  // without recomputation the forward runs once
  REQUIRE(score.step_time_uncorrected);
  CHECK(score.step_time_uncorrected->worst_pct == 0);
}

TEST_CASE("layouts on devices of different kinds do not compete") {
  ScoreLibrary library = small_library();
  std::vector<json> rows = predicted_rows(library, {1, 2, 4}, 1);
  CHECK(score_rows(library, {.file = "f", .rows = rows}).rank_correlation);
  library.mappings.front().clusters.insert(library.mappings.front().clusters.begin(),
                                           {.hardware = "other", .cluster = "other"});
  library.clusters["other"] = library.clusters["round"];
  library.clusters["other"]["device"]["name"] = "other";
  rows.back()["hardware"] = "other machine";
  CHECK(!score_rows(library, {.file = "f", .rows = rows}).rank_correlation);
}

TEST_CASE("a run that did not fit is refused, one made too large is, and a running one is not") {
  const ScoreLibrary library = small_library();
  std::vector<json> rows = predicted_rows(library, {1}, 1);
  json large = small_row();
  large["id"] = "large";
  large["model"]["hidden"] = 16384;
  large["model"]["ffn"] = 65536;
  large["measured"] = {{"oom", true}};
  rows.push_back(large);
  json wrong = small_row();
  wrong["id"] = "wrong";
  wrong["measured"] = {{"oom", true}};
  rows.push_back(wrong);
  const SourceScore score = score_rows(library, {.file = "f", .rows = rows});
  CHECK(score.fits.running_rows == 1);
  CHECK(score.fits.refused_running.empty());
  CHECK(score.fits.out_of_memory_rows == 2);
  CHECK(score.fits.accepted_out_of_memory == std::vector<std::string>{"wrong"});
}

TEST_CASE("memory is compared rank by rank where it is printed so, ranks of a stage being neighbours") {
  const ScoreLibrary library = small_library();
  const SourceMapping& mapping = library.mappings.front();
  json row = small_row();
  const MappedRow mapped = map_row(library, *read_by(mapping, row).row, &mapping);
  const RowPrediction predicted = predict_row(mapped.questions.front(), {});
  REQUIRE(predicted.bytes_by_pipeline_rank.size() == 2);
  CHECK(predicted.bytes_by_pipeline_rank[0] != predicted.bytes_by_pipeline_rank[1]);
  for (int rank = 0; rank < 8; ++rank) {
    row["measured"]["peak_by_rank_mb"][std::to_string(rank)] =
        static_cast<double>(predicted.bytes_by_pipeline_rank[rank / 4]) / 1048576;
  }
  const SourceScore score = score_rows(library, {.file = "f", .rows = {row}});
  CHECK(score.memory.count == 8);
  CHECK(score.memory.worst_pct == doctest::Approx(0).epsilon(1e-9));
}

TEST_CASE("a peak of the rank that logs is held against the last of the pipeline") {
  const ScoreLibrary library = small_library();
  const SourceMapping& mapping = library.mappings.front();
  json row = small_row();
  const RowPrediction predicted =
      predict_row(map_row(library, *read_by(mapping, row).row, &mapping).questions.front(), {});
  row["measured"]["peak_mem_bytes"] = static_cast<double>(predicted.bytes_by_pipeline_rank.back());
  row["memory_of"] = "last rank";
  const SourceScore score = score_rows(library, {.file = "f", .rows = {row}});
  REQUIRE(score.memory.count == 1);
  CHECK(score.memory.worst_pct == doctest::Approx(0).epsilon(1e-9));
}

TEST_CASE("a layer's passes are held against the sums of one layer") {
  const ScoreLibrary library = small_library();
  const SourceMapping& mapping = library.mappings.front();
  json row = small_row();
  row["kind"] = "single transformer layer fwd/bwd";
  row["measured"] = {{"fwd_ms", 1}, {"bwd_ms", 2}};
  const MappedRow mapped = map_row(library, *read_by(mapping, row).row, &mapping);
  const RowPrediction layer = predict_row(mapped.questions.front(), measured_quantities(row));
  REQUIRE(layer.layer_forward_seconds);
  const SourceScore score = score_rows(library, {.file = "f", .rows = {row}});
  CHECK(score.layer_time.count == 2);
  CHECK(score.step_time.count == 0);
  // With full recomputation the backward runs the forward again.
  CHECK(*layer.layer_backward_seconds > 2 * *layer.layer_forward_seconds);
}

TEST_CASE("the model's FLOP/s stand for a step's time") {
  const ScoreLibrary library = small_library();
  json row = small_row();
  row["flops_count"] = "model";
  row["measured"] = {{"tflops_per_gpu", 10}};
  const SourceScore score = score_rows(library, {.file = "f", .rows = {row}});
  REQUIRE(score.quantities.size() == 1);
  // A token has 6 N + 12 L h s FLOPs in 32 sequences of 512; N are the parameters in products.
  const double parameters = 8.0 * (12 * 1024.0 * 1024 + 13 * 1024) + 2 * 1024 + 8192.0 * 1024;
  const double flops = 32 * 512 * (6 * parameters + 12.0 * 8 * 1024 * 512);
  CHECK(score.quantities.front().measured == doctest::Approx(flops / (8 * 10e12)).epsilon(1e-3));
}

TEST_CASE("the components of a step sum up to its time") {
  const ScoreLibrary library = small_library();
  const SourceScore score = score_rows(library, {.file = "f", .rows = predicted_rows(library, {1, 4}, 1)});
  for (const ScoredQuantity& scored : score.quantities) {
    REQUIRE(scored.components);
    const Seconds sum = std::accumulate(scored.components->begin(), scored.components->end(), Seconds{0});
    CHECK(sum.count() == doctest::Approx(scored.predicted));
    for (const Seconds component : *scored.components) CHECK(component.count() >= -1e-12);
    CHECK((*scored.components)[static_cast<std::size_t>(TimeComponent::kGemm)].count() > 0);
    CHECK((*scored.components)[static_cast<std::size_t>(TimeComponent::kBubble)].count() > 0);
  }
}

TEST_CASE("a file without rows is refused") {
  CHECK(published_rows(json::array({json::object()}), "f.json").rows.size() == 1);
  check_refused<SpecError>([] { published_rows(json::object(), "f.json"); }, "f.json", "rows");
  check_refused<SpecError>([] { published_rows(json{{"rows", {1}}}, "f.json"); }, "f.json", "rows[0]");
}

TEST_CASE("rows of two precisions are told apart, and rows of one are not") {
  ScoreLibrary library = small_library();
  for (auto& [name, cluster] : library.clusters) {
    cluster["device"]["peak_tflops"]["fp16"] = cluster["device"]["peak_tflops"]["bf16"];
  }
  std::vector<json> rows = predicted_rows(library, {1, 2}, 1);
  CHECK(score_rows(library, {.file = "f", .rows = rows}).kinds.empty());
  rows[1]["precision"] = "fp16";
  rows[1]["measured"]["step_time_s"] = 2 * rows[1]["measured"]["step_time_s"].get<double>();
  const SourceScore score = score_rows(library, {.file = "f", .rows = rows});
  REQUIRE(score.kinds.size() == 2);
  for (const KindStatistics& kind : score.kinds) CHECK(kind.errors.count == 1);
  CHECK(score.kinds[0].kind == "bf16, dense");
  CHECK(score.kinds[0].errors.worst_pct == 0);
  CHECK(score.kinds[1].kind == "fp16, dense");
  CHECK(score.kinds[1].errors.bias_pct == doctest::Approx(-50));
}

}  // namespace plumb::test
