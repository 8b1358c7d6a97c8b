#include "schedules/forms/strict_json.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"

namespace plumb::test {
using nlohmann::json;

TEST_CASE("values are read by name and type") {
  const json document = parse_json(R"({"name": "x", "layers": 3, "share": 0.5, "tied": true, "node": {"gpus": 8},
                                      "list": [1, 2], "rate": {"value": 2.5, "source": "datasheet"}})",
                                   "m.json");
  StrictObject object(document, "m.json");
  CHECK(object.text("name") == "x");
  CHECK(object.positive_integer("layers") == 3);
  CHECK(object.fraction("share") == 0.5);
  CHECK(object.boolean("tied"));
  CHECK(object.object("node").positive_integer("gpus") == 8);
  CHECK(object.integers("list") == std::vector<std::int64_t>{1, 2});
  CHECK(object.positive_sourced("rate").value == 2.5);
  CHECK(object.positive_sourced("rate").source == "datasheet");
  CHECK(object.positive_integer_or("absent", 7) == 7);
  object.finish();
}

TEST_CASE("every fault names file, path and remedy") {
  const json document = parse_json(
      R"({"layers": 3, "heads": -1, "ffn": 1.5, "vocab_size": 1e18, "name": 4, "node": {"gpu": 8}, "zero": 0})",
      "m.json");
  StrictObject object(document, "m.json");
  CHECK_THROWS_WITH_AS(object.positive_integer("heads"), "m.json: heads: -1 is out of range: give 1 or more",
                       SpecError);
  CHECK_THROWS_WITH_AS(object.positive_integer("zero"), "m.json: zero: 0 is out of range: give 1 or more", SpecError);
  CHECK_THROWS_WITH_AS(object.positive_integer("ffn"), "m.json: ffn: 1.5 is not a whole number: give 1 or more",
                       SpecError);
  CHECK_THROWS_WITH_AS(object.positive_integer("vocab_size"),
                       "m.json: vocab_size: 1e+18 is more than 2^53, which no count here can be: give 1 or more",
                       SpecError);
  CHECK_THROWS_WITH_AS(object.text("name"), "m.json: name: a string is wanted, not number", SpecError);
  CHECK_THROWS_WITH_AS(object.text("vocab"), "m.json: vocab: this key is missing: add it", SpecError);
  CHECK_THROWS_WITH_AS(object.object("layers"), "m.json: layers: a JSON object is wanted, not number", SpecError);
  StrictObject node = object.object("node");
  CHECK_THROWS_WITH_AS(node.positive_integer("gpus"), "m.json: node.gpus: this key is missing: add it", SpecError);
  CHECK_THROWS_WITH_AS(node.finish(), "m.json: node.gpu: this key is unknown: remove it, or did you mean \"gpus\"?",
                       SpecError);
}

TEST_CASE("a choice names what is allowed and what may have been meant") {
  const json document = parse_json(R"({"norm": "rmsnrom"})", "m.json");
  StrictObject object(document, "m.json");
  CHECK_THROWS_WITH_AS(object.choice("norm", {"rmsnorm", "layernorm"}),
                       "m.json: norm: \"rmsnrom\" is none of rmsnorm, layernorm; did you mean \"rmsnorm\"?", SpecError);
}

TEST_CASE("text that is no JSON is refused with line and column") {
  CHECK_THROWS_WITH_AS(parse_json("{\n  \"a\": 1,\n", "m.json"),
                       "m.json: line 3, column 1: the JSON ends too early: close what is open, or fetch the whole file",
                       SpecError);
  CHECK_THROWS_WITH_AS(parse_json("{\n  \"a\": nope}", "m.json"),
                       "m.json: line 2, column 9: this is not JSON: mend it here", SpecError);
  CHECK_THROWS_WITH_AS(parse_json(R"({"a": {"b": 1}, "c": {"b": 1, "d": [{"b": 1}], "b": 2}})", "m.json"),
                       "m.json: one object has the key \"b\" twice: keep one", SpecError);
  CHECK_NOTHROW(parse_json(R"([{"b": 1}, {"b": {"b": [{"b": 1}, {"b": 1}]}}])", "m.json"));
  CHECK_THROWS_AS(parse_json("{} trailing", "m.json"), SpecError);
  CHECK_THROWS_AS(parse_json("", "m.json"), SpecError);
}

TEST_CASE("a count has a largest value where its reader gives one") {
  const json document = parse_json(R"({"stages": 17})", "s.json");
  StrictObject object(document, "s.json");
  CHECK(object.positive_integer("stages", 17) == 17);
  CHECK_THROWS_WITH_AS(object.non_negative_integer("stages", 16), "s.json: stages: 17 is out of range: give at most 16",
                       SpecError);
}

TEST_CASE("a long list of objects is read in proportion to its length") {
  std::string text = "[{}";  // as traces are; minutes where each object looks through all before it
  for (int i = 0; i < 300'000; ++i) text += ",{}";
  CHECK(parse_json(text + "]", "long.json").size() == 300'001);
}

TEST_CASE("a number larger than any is refused with its place, wherever it stands") {
  CHECK_THROWS_WITH_AS(parse_json("{\"a\": \"1e999\",\n \"b\": [0, -1e999]}", "m.json"),
                       "m.json: line 2, column 11: -1e999 is larger than any number: mend it here", SpecError);
}

TEST_CASE("a number that no quantity can be is refused, in either direction") {
  const json document =
      parse_json(R"({"tiny": 5e-324, "vast": 1e308, "none": 0, "flops": 1e21, "share": 1e-9})", "m.json");
  StrictObject object(document, "m.json");
  CHECK_THROWS_WITH_AS(object.positive_number("tiny"),
                       doctest::Contains("m.json: tiny: 5e-324 is out of range: nothing"), SpecError);
  CHECK_THROWS_WITH_AS(object.non_negative_number("vast"), doctest::Contains("nothing here is so large"), SpecError);
  CHECK(object.non_negative_number("none") == 0);
  CHECK(object.positive_number("flops") == 1e21);
  CHECK(object.fraction("share") == 1e-9);
}

}  // namespace plumb::test
