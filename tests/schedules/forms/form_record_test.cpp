#include "schedules/forms/form_record.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/forms/strict_json.h"

namespace plumb::test {
namespace {

using Json = nlohmann::ordered_json;

void read_part(StrictObject part) {
  part.positive_integer("count", 10);
  part.text_or("note", "");
  part.finish();
}

void read_sample(const char* text) {
  const nlohmann::json json = parse_json(text, "sample.json");
  StrictObject object(json, "sample.json");
  object.choice("kind", {"a", "b"});
  if (object.has("share")) object.fraction("share");
  for (StrictObject& part : object.objects("parts")) read_part(part);
  if (object.has("inner")) read_part(StrictObject(object.raw("inner"), object.object("inner").place()));
  object.finish();
}

Json schema_of_samples() {
  FormRecord record;
  const FormRecord::Scope recording(record);
  read_sample(R"({"kind": "a", "parts": [{"count": 3}, {"count": 4, "note": "x"}]})");
  read_sample(R"({"kind": "b", "share": 0.5, "parts": [], "inner": {"count": 1}})");
  return record.schema("A sample");
}

}  // namespace

TEST_CASE("a schema says what the reader asks: types, bounds, what is required and what is unknown") {
  const Json schema = schema_of_samples();
  CHECK(schema["title"] == "A sample");
  CHECK(schema["required"] == Json{"kind", "parts"});
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["properties"]["kind"] == Json{{"enum", {"a", "b"}}});
  const Json& share = schema["properties"]["share"];
  CHECK(share["anyOf"][0]["$ref"] == "#/$defs/number_above_0.0_to_1.0");
  const Json& number = schema["$defs"]["number_above_0.0_to_1.0"];
  CHECK(number["anyOf"][0] == Json{{"type", "number"}, {"exclusiveMinimum", 0.0}, {"maximum", 1.0}});
  CHECK(number["anyOf"][1]["properties"]["value"] == number["anyOf"][0]);
  CHECK(share["anyOf"][1] == Json{{"type", "null"}});
}

TEST_CASE("entries of a list share a schema, and a part that another function reads has its own") {
  const Json schema = schema_of_samples();
  const Json& part = schema["properties"]["parts"]["items"];
  CHECK(part["required"] == Json{"count"});
  CHECK(part["properties"]["count"]["$ref"] == "#/$defs/integer_from_1_to_10");
  CHECK(part["properties"]["note"]["anyOf"][0] == Json{{"type", "string"}});
  CHECK(schema["properties"]["inner"]["anyOf"][0]["required"] == Json{"count"});
}

TEST_CASE("nothing is noted outside of a scope") {
  FormRecord record;
  { const FormRecord::Scope recording(record); }
  CHECK(FormRecord::current() == nullptr);
  read_sample(R"({"kind": "a", "parts": []})");
}

}  // namespace plumb::test
