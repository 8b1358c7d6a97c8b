// Exports are read back: each target, over the presets of models and over layouts that are drawn at random.

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "planner/exchange/export_settings.h"
#include "planner/exchange/facts/derived_facts.h"
#include "planner/exchange/forms/settings_text.h"
#include "planner/exchange/import_settings.h"
#include "tests/planner/exchange/exchange_fixtures.h"
#include "tests/planner/fixtures.h"

using namespace plumb;
using namespace plumb::test;

namespace {

/// Draws layouts of a model: mostly such as a framework may run, and sometimes any value of a key.
class LayoutDraw {
 public:
  explicit LayoutDraw(unsigned seed) : random_(seed) {}

  Layout layout(const ModelSpec& model) {
    Layout drawn{.data = one_of({1, 2, 4, 8}),
                 .tensor = one_of({1, 1, 2, 8}),
                 .pipeline = one_of({1, 1, 2, 4}),
                 .context = one_of({1, 1, 2})};
    if (drawn.pipeline * 2 > model.layers) drawn.pipeline = 1;  // there is a layer for each of two stages a rank
    drawn.chunks = drawn.pipeline > 1 ? one_of({1, 1, 2}) : 1;
    drawn.zero = one_of({0, 1, 2, 3});
    drawn.shard = one_of({0, 0, 0, 2, 4});
    drawn.sequence_parallel = drawn.tensor > 1 && one_of({0, 1}) == 1;
    drawn.microbatch = one_of({1, 2});
    drawn.recompute = std::vector{Recompute::kNone, Recompute::kSelective, Recompute::kFull}[one_of({0, 1, 2})];
    if (drawn.recompute == Recompute::kFull) drawn.recompute_layers = one_of({0, 0, 0, 0, 1, 2});
    drawn.offload.optimizer = one_of({0, 0, 0, 1}) == 1;
    drawn.schedule = drawn.chunks == 1 ? "1f1b" : "interleaved";
    if (drawn.pipeline > 1 && one_of({0, 0, 1}) == 1) drawn.schedule = drawn.chunks == 1 ? "gpipe" : "bfs";
    if (drawn.schedule == "interleaved") drawn.group = one_of({0, 0, drawn.pipeline});
    drawn.context_kind = std::vector{ContextKind::kOfStack, ContextKind::kOfStack, ContextKind::kRing,
                                     ContextKind::kAllGather, ContextKind::kUlysses}[one_of({0, 1, 2, 3, 4})];
    drawn.bucket_mib = one_of({0, 0, 0, 0, 0, 0, 40});
    if (drawn.pipeline > 1 && drawn.data > 1 && one_of({0, 0, 0, 1}) == 1) drawn.order = RankOrder::kReplicasApart;
    if (model.experts > 0) {
      drawn.expert = one_of({1, 2});
      drawn.expert_tensor = one_of({1, drawn.tensor});
    }
    drawn.split = split(static_cast<int>(model.layers), drawn.pipeline * drawn.chunks);
    return drawn;
  }

  TrainingSpec training() {
    TrainingSpec drawn{.global_batch = one_of({64, 128}), .sequence = one_of({2048, 8192})};
    drawn.precision = std::vector{Precision::kBf16, Precision::kBf16, Precision::kFp16, Precision::kFp8,
                                  Precision::kFp32}[one_of({0, 1, 2, 3, 4})];
    drawn.gradient_precision = one_of({0, 0, 1}) == 1 ? Precision::kBf16 : Precision::kFp32;
    drawn.optimizer = one_of({0, 0, 0, 1}) == 1 ? Optimizer::kSgd : Optimizer::kAdamW;
    return drawn;
  }

  int one_of(const std::vector<int>& values) { return values[random_() % values.size()]; }

 private:
  /// Even where that is possible, or some layers moved to the next stage.
  std::vector<int> split(int layers, int parts) {
    std::vector<int> drawn(static_cast<std::size_t>(parts), layers / parts);
    for (int left = 0; left < layers % parts; ++left) ++drawn[left];
    if (parts > 1 && drawn.front() > 1 && one_of({0, 1, 1}) == 0) --drawn.front(), ++drawn[1];
    return drawn;
  }

  std::mt19937 random_;
};

/// Returns the facts without those that a target does not tell apart: stages of as many layers need no names.
Facts comparable(Facts facts) {
  const auto& split = facts["split"];
  if (split.is_null() || std::ranges::all_of(split, [&](const auto& layers) { return layers == split.front(); }))
    facts["split"] = {};
  return facts;
}

/// Returns what the user has to say besides the settings: what the target leaves unsaid, and the devices.
Facts besides(const Target& target, const Facts& of_run) {
  Facts known;
  for (const auto& [fact, value] : of_run) {
    if (is_unsaid(target, fact) && !fact.starts_with("model.") && fact != "dp") known[fact] = value;
  }
  Facts derived = of_run;
  add_derived(derived);
  known["devices"] = derived["devices"];
  return known;
}

}  // namespace

TEST_CASE("reading an export gives the run that was exported, wherever the export does not refuse") {
  for (const Target& target : all_targets()) {
    CAPTURE(target.name);
    LayoutDraw draw(7);
    int exported = 0, refused = 0;
    std::map<std::string, int> reasons;  // sentences up to the value
    for (const std::string& name : preset_names("models")) {
      ModelSpec model = preset_model(name);
      if (model.graph) continue;
      if (model.experts > 0 && model.states.index() == 0) model.mtp_modules = draw.one_of({0, 1});
      for (int i = 0; i < 60; ++i) {
        const Layout layout = draw.layout(model);
        const TrainingSpec training = draw.training();
        CAPTURE(name);
        CAPTURE(to_text(layout));
        Facts facts = facts_of(model, training, layout);
        facts["devices_per_node"] = 8;
        facts["nodes"] = layout.data * layout.tensor * layout.pipeline * layout.context / 8;
        if (facts["nodes"] == 0)
          facts["nodes"] = 1,
          facts["devices_per_node"] = layout.data * layout.tensor * layout.pipeline * layout.context;
        const Exported out = export_settings(target, facts);
        if (!out.refused.empty()) {
          ++refused;
          for (const std::string& sentence : out.refused) ++reasons[sentence.substr(0, sentence.find('='))];
          continue;
        }
        ++exported;
        const std::string text = settings_text(target.form, out.settings, "");
        CAPTURE(text);
        const Settings settings = read_settings(target.form, text, "file");
        const Imported in = import_settings(target, settings, besides(target, facts), "file");
        CHECK(in.ignored.empty());
        const TrainingSpec read{.global_batch = in.run.global_batch.value(),
                                .sequence = in.run.sequence.value(),
                                .precision = in.run.precision.value(),
                                .gradient_precision = in.run.gradient_precision.value(),
                                .optimizer = in.run.optimizer.value()};
        const Facts before = comparable(facts_of(model, training, layout));
        const Facts after = comparable(facts_of(in.run.model.value_or(model), read, layout_of(in.run.layout)));
        for (const auto& [fact, value] : before) {
          CAPTURE(fact);
          CHECK(fact_at(after, fact) == value);
        }
        CHECK(before.size() == after.size());
      }
    }
    MESSAGE(fmt::format("{}: {} exported and read back, {} refused", target.name, exported, refused));
    for (const auto& [sentence, times] : reasons) MESSAGE(fmt::format("  {} times: {}", times, sentence));
    // A table that refuses everything would pass what stands above.
    CHECK(exported > 20);
    CHECK(refused > 20);
  }
}
