#include "planner/spec/state_mixer_json.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

StateMixer read(const nlohmann::json& model) {
  StrictObject object(model, "m");
  return state_mixer_from_json(model, object, "m");
}

StateMixer again(const StateMixer& mixer) {
  nlohmann::ordered_json json;
  add_state_mixer(json, mixer);
  return read(nlohmann::json::parse(json.dump()));
}

}  // namespace

TEST_CASE("each state mixer is read as it is written") {
  const StateMixer mamba2 =
      Mamba2Mixer{.heads = 8, .head_size = 16, .state_size = 32, .groups = 4, .gated_norm = false};
  const StateMixer mamba = MambaMixer{.channels = 64, .state_size = 16, .step_rank = 4, .inner_norms = true};
  const StateMixer net = DeltaNetMixer{.key_heads = 2, .value_heads = 4, .key_size = 8, .value_size = 16, .chunk = 32};
  for (const StateMixer& mixer : {mamba2, mamba, net}) CHECK(again(mixer) == mixer);
  CHECK(read(nlohmann::json::object()).index() == 0);
}

TEST_CASE("a state mixer that cannot exist is refused with its place") {
  const auto refused = [](const char* text, const char* says) {
    check_refused<SpecError>([&] { read(nlohmann::json::parse(text)); }, "m, ", says);
  };
  refused(R"({"mamba2": {"heads": 8, "head_size": 16, "state_size": 32, "groups": 3}})",
          "3 does not divide the 8 heads");
  refused(R"({"mamba": {"channels": 64, "state_size": 16}})", "step_rank");
  refused(R"({"delta_net": {"key_heads": 3, "value_heads": 4, "key_size": 8, "value_size": 8}})",
          "3 does not divide the 4 value heads");
  refused(R"({"mamba": {"channels": 64, "state_size": 16, "step_rank": 4, "heads": 1}})", "heads");
}

}  // namespace plumb::test
