#include "executor/device/stage/stage_rebuild.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "executor/device/run_device.h"
#include "schedules/error.h"
#include "tests/executor/device/host_run.h"
#include "tests/executor/small_model.h"

using namespace plumb;
using namespace plumb::test;

namespace {

RunSpec rebuilding(const std::vector<Layer>& model, const char* name, Rebuild what, Checkpoint lists, int chunks = 1) {
  const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 6, .chunks = chunks});
  RunSpec spec = spec_of_lowered(model, lower(order, {.checkpoint = lists}));
  spec.steps = 2;
  spec.rebuild = what;
  spec.rebuild_layers = 2;
  return spec;
}

}  // namespace

TEST_CASE("a device that computes cheap tensors, groups of layers or stages again has the same bits, in less memory") {
  for (const char* name : {"1f1b", "zb-h1", "interleaved"})
    for (const std::vector<Layer>& model : {llama_model(7), untied_gpt_model(7)}) {
      const int chunks = std::string_view(name) == "interleaved" ? 2 : 1;
      const RunResult kept = on_host(rebuilding(model, name, Rebuild::kNothing, Checkpoint::kNever, chunks));
      for (const Rebuild what : {Rebuild::kSelective, Rebuild::kLayers, Rebuild::kStage})
        for (const Checkpoint lists : {Checkpoint::kNever, Checkpoint::kAlways}) {
          INFO(name << ", rebuilds " << static_cast<int>(what) << (lists == Checkpoint::kNever ? "" : " in R"));
          const RunSpec spec = rebuilding(model, name, what, lists, chunks);
          const RunResult rebuilt = on_host(spec);
          CHECK(rebuilt.losses == kept.losses);
          CHECK(rebuilt.weights == kept.weights);
          CHECK(rebuilt.peak_memory_bytes.front() < kept.peak_memory_bytes.front());
          CHECK(on_host(spec, 3).weights == kept.weights);
        }
    }
}

TEST_CASE("in bf16, too, a device rebuilds the same bits selectively") {
  RunSpec spec = rebuilding(llama_model(7), "1f1b", Rebuild::kNothing, Checkpoint::kNever);
  spec.half = HalfFormat::kBf16;
  const RunResult kept = on_host(spec);
  spec.rebuild = Rebuild::kSelective;
  CHECK(on_host(spec).weights == kept.weights);
}

TEST_CASE("where B rebuilds by itself, a device has one group of layers at a time") {
  const auto arena = [](int layers) {
    RunSpec spec = rebuilding(llama_model(14), "gpipe", Rebuild::kLayers, Checkpoint::kNever);
    spec.rebuild_layers = layers;
    return on_host(spec).peak_memory_bytes.front();
  };
  CHECK(arena(2) < arena(8));
}

TEST_CASE("a stage whose micro-batches list no R keeps all of them where those that are rebuilt are listed") {
  RunSpec spec = rebuilding(llama_model(), "1f1b", Rebuild::kStage, Checkpoint::kNever);
  CHECK(stage_rebuild(spec, 0).what == Rebuild::kStage);
  CHECK_FALSE(stage_rebuild(spec, 0).at_once);
  spec.rebuild_which = RebuildWhich::kListed;
  CHECK(stage_rebuild(spec, 0).what == Rebuild::kNothing);
  CHECK_FALSE(rebuilds_some(spec, 0));

  spec = rebuilding(llama_model(), "1f1b", Rebuild::kStage, Checkpoint::kAlways);
  spec.rebuild_which = RebuildWhich::kListed;
  CHECK(stage_rebuild(spec, 0).what == Rebuild::kStage);
  CHECK(stage_rebuild(spec, 0).at_once);
  CHECK_FALSE(rebuilds_some(spec, 0));

  spec = rebuilding(llama_model(), "1f1b", Rebuild::kStage, Checkpoint::kExceptLast);
  spec.rebuild_which = RebuildWhich::kListed;
  CHECK(rebuilds_some(spec, 0));
  CHECK_THROWS_WITH_AS(require_device_runnable(spec), doctest::Contains("some of a stage's micro-batches"), SpecError);
}
