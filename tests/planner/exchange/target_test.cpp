#include "planner/exchange/target.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/exchange/exchange_fixtures.h"
#include "tests/planner/refusal.h"

using namespace plumb;
using namespace plumb::test;

namespace {

/// Returns the words of a file of documented keys, without its comments.
std::set<std::string> documented_keys(const std::string& target) {
  std::istringstream lines(source_text("tests/planner/exchange/documented/" + target + ".txt"));
  std::set<std::string> keys;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.starts_with('#') ? "" : line);
    for (std::string word; words >> word;) keys.insert(word);
  }
  return keys;
}

/// Facts of a run by the derived facts from which they can be solved.
const std::map<std::string, std::vector<std::string>> kSolvedFrom = {
    {"dp", {"devices", "fsdp_shards", "nodes", "microbatches"}},
    {"v", {"megatron_chunks", "torchtitan_stages"}},
    {"shard", {"state_copies", "fsdp_shards"}},
    {"mbs", {"call_batch"}},
    {"zero", {"fsdp_reshard"}},
    {"global_batch", {"microbatches"}},
    {"gradient_precision", {"fp32_gradients"}},
    {"recompute_layers", {"rebuilt_layers"}},
    {"split", {"stage_shares", "megatron_stages", "torchtitan_stages"}},
};

bool says(const Target& target, const std::string& fact) {
  return std::ranges::find(target.keys, fact, &TargetKey::fact) != target.keys.end() ||
         std::ranges::find(target.implied, fact, &ImpliedFact::fact) != target.implied.end() || is_unsaid(target, fact);
}

}  // namespace

TEST_CASE("every key of a table is a documented key of its target") {
  for (const Target& target : all_targets()) {
    CAPTURE(target.name);
    const std::set<std::string> documented = documented_keys(target.name);
    CHECK(documented.size() > 25);
    for (const TargetKey& key : target.keys) {
      CAPTURE(key.key);
      // Words of a command line that are no options are the programs that it starts.
      const bool program = target.form == SettingsForm::kArguments && !key.key.starts_with("--");
      CHECK((program || documented.contains(key.key)));
    }
  }
}

TEST_CASE(
    "every table accounts for every fact of a run: a key holds it, all runs have it, or it is said to be elsewhere") {
  for (const Target& target : all_targets()) {
    CAPTURE(target.name);
    for (const std::string& fact : run_fact_names()) {
      CAPTURE(fact);
      const auto solved = kSolvedFrom.find(fact);
      const bool derived =
          solved != kSolvedFrom.end() &&
          std::ranges::any_of(solved->second, [&](const std::string& from) { return says(target, from); });
      // A trainer without pipelines has one stage.
      const ImpliedFact* pipeline = implied_of(target, {}, "pp");
      const bool one_stage = fact == "split" && pipeline != nullptr && pipeline->value == 1;
      CHECK((says(target, fact) || derived || one_stage));
    }
  }
}

TEST_CASE("the stacks that targets name exist") {
  const std::vector<std::string> stacks = preset_names("stacks");
  for (const Target& target : all_targets()) {
    for (const auto& [stack, when] : target.stacks) CHECK(std::ranges::find(stacks, stack) != stacks.end());
  }
}

TEST_CASE("the first stack and the first implied value whose condition holds count") {
  const Target bridge = target_named("megatron-bridge");
  CHECK(stack_of(bridge, {{"ep", 8}}) == "nemo-moe");
  CHECK(stack_of(bridge, {{"ep", 1}}) == "nemo");
  CHECK(implied_of(bridge, {{"v", 2}}, "schedule")->value == "interleaved");
  CHECK(implied_of(bridge, {{"v", 1}}, "schedule")->value == "1f1b");
  CHECK(implied_of(bridge, {}, "tp") == nullptr);
}

TEST_CASE("a table with an unknown key is refused with its place") {
  check_refused<SpecError>(
      [] {
        parse_target(R"({"name": "x", "note": "", "source": "", "form": "toml", "launch": "", "stacks": [],
                         "keys": [{"key": "a", "fct": "tp"}]})",
                     "x.json");
      },
      "x.json", "fct");
}
