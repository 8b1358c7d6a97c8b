#include "planner/spec/training_spec.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("a training survives its JSON form") {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    const TrainingSpec training{
        .global_batch = 8, .sequence = 16, .precision = precision, .gradient_precision = precision};
    CHECK(parse_training(to_json(training).dump(), "again") == training);
  }
  const TrainingSpec defaults = parse_training(R"({"global_batch": 1, "seq": 2})", "t");
  CHECK(defaults.precision == Precision::kBf16);
  CHECK(defaults.gradient_precision == Precision::kFp32);
}

TEST_CASE("optimizer bytes are those of mixed precision AdamW") {
  // The moments have 4 + 4 bytes, and a master weight 4 where the weights are narrower.
  CHECK(optimizer_bytes_per_parameter({.precision = Precision::kFp32}) == 8);
  CHECK(optimizer_bytes_per_parameter({.precision = Precision::kBf16}) == 12);
  // fp32: p, g, m, v read and written. bf16 with bf16 gradients: 2 + 2, 24 for m, v and the master, 2 for the copy.
  CHECK(optimizer_traffic_per_parameter({.precision = Precision::kFp32, .gradient_precision = Precision::kFp32}) == 32);
  CHECK(optimizer_traffic_per_parameter({.precision = Precision::kBf16, .gradient_precision = Precision::kBf16}) == 30);
}

TEST_CASE("a bad training file is refused with place and remedy") {
  const auto refused = [](const char* text, const char* part) {
    CAPTURE(text);
    check_refused<SpecError>([&] { parse_training(text, "t.json"); }, "t.json", part);
  };
  refused(R"({"seq": 2})", "global_batch");
  refused(R"({"global_batch": 2})", "seq");
  refused(R"({"global_batch": 0, "seq": 2})", "global_batch");
  refused(R"({"global_batch": 2, "seq": -2})", "seq");
  refused(R"({"global_batch": "2", "seq": 2})", "global_batch");
  refused(R"({"global_batch": 2, "seq": 1e12})", "at most");
  refused(R"({"global_batch": 2, "seq": 2, "precison": "bf16"})", "precision");
  refused(R"({"global_batch": 2, "seq": 2, "precision": "int8"})", "fp16");
  refused(R"({"global_batch": 2, "seq": 2, "optimizer": "adam"})", "adamw");
  refused(R"({"global_batch": 2, "seq": 2, "stack": {"name": "x", "tensor_hidden": 1.5}})", "tensor_hidden");
  refused(R"({"global_batch": 2, "seq": 2, "stack": {"name": "x", "atention": "flash2"}})", "attention");
  refused(R"({"global_batch": 2, "se)", "line 1");
}

TEST_CASE("a batch is bounded where sequences are counted, a sequence where tokens are") {
  CHECK(parse_training(R"({"global_batch": 16777216, "seq": 268435456})", "t.json").sequence == 268435456);
  check_refused<SpecError>([] { parse_training(R"({"global_batch": 16777217, "seq": 2})", "t.json"); }, "global_batch",
                           "at most 16777216");
}

}  // namespace plumb::test
