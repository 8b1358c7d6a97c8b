#include "planner/spec/layout_space.h"

#include <doctest/doctest.h>

#include "planner/spec/layout_keys.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("a key has one value, a list of them, or bounds") {
  const LayoutSpace space = parse_layout_space("tp=2|4|8,pp=4..16,mbs=..8,dp=2..,recompute=full|none,sp=1");
  CHECK(space.tensor.named == std::vector{2, 4, 8});
  CHECK(space.tensor.of({1, 2, 3}) == std::vector{2, 4, 8});
  CHECK(space.pipeline.of({1, 2, 4, 8, 16, 32}) == std::vector{4, 8, 16});
  CHECK(space.microbatch.of({1, 8, 16}) == std::vector<std::int64_t>{1, 8});
  CHECK(space.data.of({1, 2, 64}) == std::vector{2, 64});
  CHECK(space.recompute.named == std::vector{Recompute::kNone, Recompute::kFull});
  CHECK(space.sequence_parallel.named == std::vector{true});
  CHECK(space.context.is_open());
  CHECK(space.context.of({1, 2}) == std::vector{1, 2});
  CHECK(parse_layout_space("") == LayoutSpace{});
  CHECK(LayoutSpace(parse_layout("tp=2,split=4:4")) == parse_layout_space("tp=2,split=4:4"));
}

TEST_CASE("the order and the number of times in which values are written change nothing") {
  CHECK(parse_layout_space("tp=8|2|4|2,schedule=gpipe|1F1B") == parse_layout_space("schedule=1f1b|gpipe,tp=2|4|8"));
  CHECK(parse_layout_space("sp=1|0") == parse_layout_space("sp=0|1"));
  CHECK(parse_layout_space("split=5:3|4:4") == parse_layout_space("split=4:4|5:3"));
  CHECK(parse_layout_space("offload=optimizer|none") == parse_layout_space("offload=none|optimizer"));
}

TEST_CASE("a space survives its text") {
  for (const char* text : {"dp=2..,tp=2|4|8,pp=4..16,mbs=..8,recompute=none|full,schedule=1f1b|zb-h1,split=4:4|5:3",
                           "cp=2,cp_kind=ring|ulysses,ep=8,etp=1,zero=0,shard=8,sp=0|1,offload=none",
                           "pp=2,order=tp-cp-dp-pp|tp-cp-pp-dp", ""}) {
    CHECK(to_text(parse_layout_space(text)) == text);
    CHECK(parse_layout_space(to_text(parse_layout_space(text))) == parse_layout_space(text));
  }
}

TEST_CASE("a file says the same as a text") {
  CHECK(parse_layout_space_file(R"({"tp": [8, 4, 2], "pp": "..16", "mbs": 1, "sp": [true, false], "split": [4, 4],
                                    "schedule": ["1f1b", "gpipe"], "recompute": "full", "cp_kind": "ring"})",
                                "pins.json") ==
        parse_layout_space("tp=2|4|8,pp=..16,mbs=1,sp=0|1,split=4:4,schedule=1f1b|gpipe,recompute=full,cp_kind=ring"));
  CHECK(parse_layout_space_file(R"({"split": [[4, 4], [5, 3]]})", "pins.json") == parse_layout_space("split=4:4|5:3"));
}

TEST_CASE("what holds no layout is refused with key and remedy") {
  const auto refused = [](const char* text, const char* place, const char* part) {
    check_refused<SpecError>([&] { parse_layout_space(text); }, place, part);
  };
  refused("pp=8..4", "pp=8..4", "smaller one first");
  refused("pp=..", "pp=..", "there is no bound");
  refused("recompute=none..full", "recompute", "list the values");
  refused("sp=0..1", "sp", "only numbers");
  refused("tp=2||4", "tp=", "whole number");
  refused("tp=2|x", "tp=x", "whole number");
  refused("zero=1..4", "zero=4", "0 to 3");
  refused("tpp=1..2", "tpp", "no such key");
  refused("tp=2,tp=4", "tp", "given twice");
  refused("tp", "tp", "KEY=VALUE");
  const auto refused_file = [](const char* text, const char* part) {
    check_refused<SpecError>([&] { parse_layout_space_file(text, "pins.json"); }, "pins.json", part);
  };
  refused_file(R"({"tp": []})", "lists no value");
  refused_file(R"({"tpp": 2})", "tp");
  refused_file(R"({"tp": [2, "a"]})", "tp");
  refused_file(R"({"pp": "8..4"})", "smaller one first");
  refused_file(R"({"cp_kind": ["ring", "p2p"]})", "ulysses");
  refused_file(R"([2])", "object");
}

TEST_CASE("spaces are joined where no key is in both") {
  CHECK(joined(parse_layout_space("tp=2|4"), parse_layout_space("pp=..4,split=4:4")) ==
        parse_layout_space("tp=2|4,pp=..4,split=4:4"));
  check_refused<SpecError>([] { joined(parse_layout_space("tp=2|4"), parse_layout_space("tp=2")); }, "tp", "twice");
}

TEST_CASE("a space holds the layouts whose keys it allows, and names what a user has listed") {
  const LayoutSpace space = parse_layout_space("tp=2|4,pp=..4,recompute=none");
  CHECK(holds(space, {.data = 3, .tensor = 4, .pipeline = 2}));
  CHECK(!holds(space, {.tensor = 8, .pipeline = 2}));
  CHECK(!holds(space, {.tensor = 4, .pipeline = 8}));
  CHECK(!holds(space, {.tensor = 4, .recompute = Recompute::kFull}));
  CHECK(names_all(space, parse_layout("tp=16,recompute=full")));
  CHECK(!names_all(space, parse_layout("pp=2")));  // a bound names no value
  CHECK(fixed_keys(space) == parse_layout("recompute=none"));
}

}  // namespace plumb::test
