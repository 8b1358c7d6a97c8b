#include "planner/score/source_mapping.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

using nlohmann::json;

constexpr const char* kMapping = R"({
  "name": "one", "cites": ["owner/one"],
  "clusters": [{"hardware": "A100.*one node", "cluster": "small"}, {"hardware": "a100", "cluster": "large"}],
  "rules": [{"fill": {"model.vocab": 100}, "because": "not printed"},
            {"where": {"recompute": "^full", "gpus": 8}, "correct": {"recompute": "selective"}, "because": "seen"},
            {"copy": {"model.ffn": "arguments.ffn"}},
            {"derive": {"model.expert_ffn": [[4, "model.hidden"]],
                        "model.head_size": [[1, "arguments.plain"], [1, "arguments.turned"]]}},
            {"where": {"kind": "analytic"}, "skip": "computed, not measured"}]})";

json parsed_row(const char* text) {
  return json::parse(text);
}

}  // namespace

TEST_CASE("fill sets what is not printed and leaves what is") {
  const SourceMapping mapping = parse_source_mapping(kMapping, "one.json");
  CHECK(value_at(*read_by(mapping, parsed_row(R"({"model": {"vocab": null}})")).row, "model.vocab") == 100);
  CHECK(value_at(*read_by(mapping, parsed_row(R"({"model": {"vocab": 7}})")).row, "model.vocab") == 7);
}

TEST_CASE("a correction replaces what is printed, tells its evidence, and can be left out") {
  const SourceMapping mapping = parse_source_mapping(kMapping, "one.json");
  const json full = parsed_row(R"({"recompute": "full", "gpus": 8})");
  const ReadRow corrected = read_by(mapping, full);
  CHECK(value_at(*corrected.row, "recompute") == "selective");
  CHECK(corrected.corrections == std::vector<std::string>{"seen"});
  CHECK(value_at(*read_by(mapping, full, false).row, "recompute") == "full");
  CHECK(read_by(mapping, parsed_row(R"({"recompute": "full", "gpus": 16})")).corrections.empty());
  CHECK(read_by(mapping, parsed_row(R"({"gpus": 8})")).corrections.empty());
}

TEST_CASE("a mapping may carry its format number, not a newer one") {
  json numbered = json::parse(kMapping);
  numbered["plumb_format"] = 1;
  CHECK(parse_source_mapping(numbered.dump(), "one.json").name == "one");
  numbered["plumb_format"] = 2;
  check_refused<SpecError>([&] { parse_source_mapping(numbered.dump(), "one.json"); },
                           "one.json: format 2 of a mapping", "reads up to 1: update Plumb, or ");
}

TEST_CASE("copy takes another field of the row") {
  const SourceMapping mapping = parse_source_mapping(kMapping, "one.json");
  CHECK(value_at(*read_by(mapping, parsed_row(R"({"arguments": {"ffn": 64}})")).row, "model.ffn") == 64);
  CHECK(value_at(*read_by(mapping, parsed_row(R"({"model": {"ffn": 32}, "arguments": {"ffn": 64}})")).row,
                 "model.ffn") == 32);
  CHECK(value_at(*read_by(mapping, parsed_row("{}")).row, "model.ffn").is_null());
}

TEST_CASE("derive is the sum of other fields if all are printed") {
  const SourceMapping mapping = parse_source_mapping(kMapping, "one.json");
  const json sizes = *read_by(mapping, parsed_row(R"({"model": {"hidden": 512}, "arguments": {"plain": 128}})")).row;
  CHECK(value_at(sizes, "model.expert_ffn") == 2048);
  CHECK(value_at(sizes, "model.head_size").is_null());
  CHECK(value_at(*read_by(mapping, parsed_row(R"({"arguments": {"plain": 128, "turned": 64}})")).row,
                 "model.head_size") == 192);
  CHECK(value_at(*read_by(mapping, parsed_row(R"({"model": {"hidden": 512, "expert_ffn": 7}})")).row,
                 "model.expert_ffn") == 7);
}

TEST_CASE("a rule can say why rows are left out") {
  const SourceMapping mapping = parse_source_mapping(kMapping, "one.json");
  CHECK(read_by(mapping, parsed_row(R"({"kind": "ANALYTIC, not measured"})")).skip == "computed, not measured");
  CHECK(read_by(mapping, parsed_row(R"({"kind": null})")).skip.empty());
}

TEST_CASE("a mapping says what its rows leave unknown") {
  const SourceMapping mapping =
      parse_source_mapping(R"({"name": "a", "cites": ["x"], "clusters": [], "limits": ["one row is odd"]})", "a.json");
  CHECK(mapping.limits == std::vector<std::string>{"one row is odd"});
  for (const char* limits : {R"("odd")", R"([3])", R"([""])"}) {
    CAPTURE(limits);
    const std::string text = std::string(R"({"name": "a", "cites": ["x"], "clusters": [], "limits": )") + limits + "}";
    check_refused<SpecError>([&] { parse_source_mapping(text, "a.json"); }, "a.json", "sentences");
  }
}

TEST_CASE("a row finds its mapping by what it cites, the longest beginning first") {
  const std::vector<SourceMapping> mappings = {
      parse_source_mapping(R"({"name": "a", "cites": ["owner/"], "clusters": []})", "a"),
      parse_source_mapping(R"({"name": "b", "cites": ["owner/one"], "clusters": []})", "b")};
  CHECK(mapping_for(mappings, parsed_row(R"({"source": {"repo": "owner/one"}})"))->name == "b");
  CHECK(mapping_for(mappings, parsed_row(R"({"source": {"repo": "owner/two"}})"))->name == "a");
  CHECK(mapping_for(mappings, parsed_row(R"({"source": {"paper": "A paper"}})")) == nullptr);
  CHECK(mapping_for(mappings, parsed_row(R"({"id": "no source"})")) == nullptr);
}

TEST_CASE("the mapping that cites nothing reads what no other names") {
  const std::vector<SourceMapping> mappings = {
      parse_source_mapping(R"({"name": "general", "cites": [], "clusters": []})", "general"),
      parse_source_mapping(R"({"name": "a", "cites": ["owner/"], "clusters": []})", "a"),
      parse_source_mapping(R"({"name": "other", "cites": [], "clusters": []})", "other")};
  CHECK(mapping_for(mappings, parsed_row(R"({"source": {"repo": "owner/one"}})"))->name == "a");
  CHECK(mapping_for(mappings, parsed_row(R"({"source": {"paper": "A paper"}})"))->name == "general");
  CHECK(mapping_for(mappings, parsed_row("{}"))->name == "general");
}

TEST_CASE("the first cluster whose expression is found in the hardware counts, whatever the case") {
  const SourceMapping mapping = parse_source_mapping(kMapping, "one.json");
  CHECK(cluster_rule_for(mapping, "A100 SXM, one node")->cluster == "small");
  CHECK(cluster_rule_for(mapping, "a100-80GB")->cluster == "large");
  CHECK(cluster_rule_for(mapping, "H100") == nullptr);
}

TEST_CASE("a mapping's faults are named with their place") {
  const auto refused = [](const char* text, const char* place, const char* part) {
    check_refused<SpecError>([text] { parse_source_mapping(text, "m.json"); }, place, part);
  };
  refused(R"({"cites": ["a"], "clusters": []})", "m.json", "name");
  refused(R"({"name": "m", "cites": "a", "clusters": []})", "m.json", "cites");
  refused(R"({"name": "m", "cites": ["a"], "clusters": [{"hardware": "(", "cluster": "x"}]})", "hardware",
          "no regular expression");
  refused(R"({"name": "m", "cites": ["a"], "clusters": [], "rules": [{"correct": {"tp": 2}}]})", "because", "evidence");
  refused(R"({"name": "m", "cites": ["a"], "clusters": [], "rules": [{"fil": {"tp": 2}}]})", "fil", "fill");
  refused(R"({"name": "m", "cites": ["a"], "clusters": [], "rules": [{"copy": {"tp": 2}}]})", "copy", "name the field");
  refused(R"({"name": "m", "cites": ["a"], "clusters": [], "rules": [{"derive": {"tp": [["pp", 2]]}}]})", "derive",
          "factors");
}

TEST_CASE("rows are chosen by a field and an expression") {
  const RowConditions only = {parse_row_condition("precision=^BF16"), parse_row_condition("model.name=70B")};
  CHECK(row_meets(only, parsed_row(R"({"precision": "bf16", "model": {"name": "LLAMA3_70B"}})")));
  CHECK(!row_meets(only, parsed_row(R"({"precision": "bf16", "model": {"name": "LLAMA3_8B"}})")));
  CHECK(!row_meets(only, parsed_row(R"({"model": {"name": "LLAMA3_70B"}})")));
  CHECK(row_meets({}, parsed_row("{}")));
  CHECK_THROWS_WITH_AS(parse_row_condition("precision"), doctest::Contains("FIELD=EXPRESSION"), SpecError);
  CHECK_THROWS_WITH_AS(parse_row_condition("precision=("), doctest::Contains("no regular expression"), SpecError);
}

TEST_CASE("a rule is not for rows that meet one of its exclusions") {
  const SourceMapping mapping = parse_source_mapping(
      R"({"name": "m", "cites": ["a"], "clusters": [],
          "rules": [{"where": {"case": "1node$"}, "unless": {"case": "release", "kind": "old"}, "fill": {"gpus": 4}}]})",
      "m.json");
  const auto gpus = [&](const char* row) { return value_at(*read_by(mapping, parsed_row(row)).row, "gpus"); };
  CHECK(gpus(R"({"case": "gpt 1node"})") == 4);
  CHECK(gpus(R"({"case": "Release gpt 1node"})").is_null());
  CHECK(gpus(R"({"case": "gpt 1node", "kind": "old"})").is_null());
  CHECK(gpus(R"({"case": "gpt"})").is_null());
}

}  // namespace plumb::test
