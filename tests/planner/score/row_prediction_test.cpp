#include "planner/score/row_prediction.h"

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"
#include "tests/planner/score/score_fixtures.h"

namespace plumb::test {
namespace {

using nlohmann::json;

/// Returns the prediction of the fixture's row on four pipeline ranks, with those fields set.
RowPrediction predicted_with(const json& fields) {
  const ScoreLibrary library = small_library();
  json row = small_row();
  row.update({{"tp", 1}, {"pp", 4}, {"dp", 2}, {"gbs", 64}, {"recompute", "none"}});
  row.update(fields);
  const SourceMapping& mapping = library.mappings.front();
  const MappedRow mapped = map_row(library, *read_by(mapping, row).row, &mapping);
  REQUIRE(mapped.questions.size() == 1);
  RowPrediction predicted = predict_row(mapped.questions.front(), measured_quantities(row));
  REQUIRE(predicted.failure.empty());
  return predicted;
}

}  // namespace

TEST_CASE("an order searched for the row's own times holds what it may and is no slower for holding more") {
  const RowPrediction one = predicted_with({{"schedule", "ZB-1p"}, {"order_memory", 1}});
  const RowPrediction two = predicted_with({{"schedule", "ZB-2p"}, {"order_memory", 2}});
  const RowPrediction plain = predicted_with({{"schedule", "1F1B"}});
  CHECK(*one.step_seconds < *plain.step_seconds);
  CHECK(*two.step_seconds <= *one.step_seconds);
  CHECK(two.bytes_by_pipeline_rank[1] > one.bytes_by_pipeline_rank[1]);
}

TEST_CASE("without a common end a step lasts as long as one rank's span, which is less than the pipeline's") {
  const json zero_bubble = {{"schedule", "ZB-2p"}, {"order_memory", 2}};
  json free = zero_bubble;
  free["unsynchronised_step"] = true;
  const double synchronised = *predicted_with(zero_bubble).step_seconds;
  const double unsynchronised = *predicted_with(free).step_seconds;
  CHECK(unsynchronised < synchronised);
  CHECK(unsynchronised > .7 * synchronised);
}

TEST_CASE("where what is rebuilt is not printed and nothing fits without, the fewest layers that fit are rebuilt") {
  const auto chosen = [](const json& stack, std::int64_t memory_bytes) {
    ScoreLibrary library = small_library();
    library.stacks["plain"] = stack;
    ClusterSpec cluster = round_cluster(8);
    cluster.device.memory_bytes = memory_bytes;
    library.clusters["round"] = to_json(cluster);
    json row = small_row();
    row.update({{"tp", 1}, {"pp", 1}, {"dp", 8}, {"gbs", 256}, {"mbs", 32}, {"recompute", nullptr}});
    row["search"] = {{"recompute", {"none", "selective", "full"}}};
    const SourceMapping& mapping = library.mappings.front();
    const MappedRow mapped = map_row(library, *read_by(mapping, row).row, &mapping);
    REQUIRE(mapped.questions.size() == 3);
    CHECK(mapped.questions.front().open_recompute);
    const ChosenPrediction best = fastest_prediction(mapped.questions, measured_quantities(row));
    REQUIRE(best.prediction.failure.empty());
    CHECK(best.prediction.fits);
    return best.prediction;
  };
  const json whole = {{"name", "plain"}}, some = {{"name", "plain"}, {"can", {{"recompute_layers", true}}}};
  const std::int64_t roomy = std::int64_t{1} << 40;
  const RowPrediction none = chosen(some, roomy);
  CHECK(*none.step_seconds == *chosen(whole, roomy).step_seconds);
  const std::int64_t needed = round_cluster(8).device.reserved_bytes + none.bytes_by_pipeline_rank.front();
  const std::int64_t tight = needed - needed / 8;
  const RowPrediction all = chosen(whole, tight), few = chosen(some, tight);
  CHECK(*few.step_seconds < *all.step_seconds);
  CHECK(*few.step_seconds > *none.step_seconds);
  CHECK(few.bytes_by_pipeline_rank.front() > all.bytes_by_pipeline_rank.front());
}

TEST_CASE("a question at fault is a failure with its reason") {
  ScoreLibrary library = small_library();
  const SourceMapping& mapping = library.mappings.front();
  MappedRow mapped = map_row(library, *read_by(mapping, small_row()).row, &mapping);
  mapped.questions.front().layout.split = {1, 2, 3};
  const RowPrediction predicted = predict_row(mapped.questions.front(), measured_quantities(small_row()));
  CHECK_FALSE(predicted.step_seconds.has_value());
  CHECK(predicted.failure.find("split") != std::string::npos);
}

}  // namespace plumb::test
