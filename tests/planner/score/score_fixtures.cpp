#include "tests/planner/score/score_fixtures.h"

#include "tests/planner/fixtures.h"

namespace plumb::test {

using nlohmann::json;

json small_row() {
  return json::parse(R"({
    "id": "small", "source": {"repo": "owner/small", "path": "table.md"}, "hardware": "round machine",
    "model": {"name": "GPT small", "layers": 8, "hidden": 1024, "heads": 8, "ffn": 4096, "seq": 512,
              "gated_mlp": false},
    "gpus": 8, "gpus_per_node": 4, "tp": 2, "pp": 2, "dp": 2, "mbs": 2, "gbs": 32, "zero": 1, "recompute": "full",
    "precision": "bf16", "schedule": "1F1B", "measured": {"step_time_s": 1.0}})");
}

ScoreLibrary small_library() {
  ScoreLibrary library;
  library.mappings.push_back(parse_source_mapping(
      R"({"name": "small", "cites": ["owner/small"], "clusters": [{"hardware": "round", "cluster": "round"}],
          "rules": [{"fill": {"stack": "plain", "model.vocab": 8192}, "because": "not printed"}]})",
      "small.json"));
  library.clusters["round"] = to_json(round_cluster(8));
  library.stacks["plain"] = json{{"name", "plain"}};
  return library;
}

std::vector<json> predicted_rows(const ScoreLibrary& library, const std::vector<std::int64_t>& microbatches,
                                 double factor) {
  std::vector<json> rows;
  for (const std::int64_t microbatch : microbatches) {
    json row = small_row();
    row["id"] = std::string(1, static_cast<char>('a' + rows.size()));
    row["mbs"] = microbatch;
    const SourceMapping& mapping = library.mappings.front();
    const MappedRow mapped = map_row(library, *read_by(mapping, row).row, &mapping);
    row["measured"]["step_time_s"] =
        factor * *predict_row(mapped.questions.front(), measured_quantities(row)).step_seconds;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace plumb::test
