#include "executor/parameters/device/stage_rebuild.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "executor/training/device/run_device.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"

namespace plumb::test {
namespace {

RunSpec rebuilding(const std::vector<Layer>& model, const char* name, Recompute what, Checkpoint lists,
                   int chunks = 1) {
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
      const RunResult kept = on_host(rebuilding(model, name, Recompute::kNone, Checkpoint::kNever, chunks));
      for (const Recompute what : {Recompute::kSelective, Recompute::kFull, Recompute::kStage})
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
  RunSpec spec = rebuilding(llama_model(7), "1f1b", Recompute::kNone, Checkpoint::kNever);
  spec.half = HalfFormat::kBf16;
  const RunResult kept = on_host(spec);
  spec.rebuild = Recompute::kSelective;
  CHECK(on_host(spec).weights == kept.weights);
}

TEST_CASE("where B or I rebuilds by itself, a device has one group of layers at a time, and what W needs of all") {
  const auto arena = [](const char* name, Checkpoint lists, int layers) {
    RunSpec spec = rebuilding(llama_model(14), name, Recompute::kFull, lists);
    spec.rebuild_layers = layers;
    return on_host(spec).peak_memory_bytes.front();
  };
  for (const char* name : {"gpipe", "zb-h1"}) {
    CAPTURE(name);
    CHECK(arena(name, Checkpoint::kNever, 2) < arena(name, Checkpoint::kNever, 8));
    CHECK(arena(name, Checkpoint::kNever, 2) < arena(name, Checkpoint::kAlways, 2));
  }
}

TEST_CASE("a stage whose micro-batches list no R keeps all of them where those that are rebuilt are listed") {
  RunSpec spec = rebuilding(llama_model(), "1f1b", Recompute::kStage, Checkpoint::kNever);
  CHECK(stage_rebuild(spec, 0).what == Recompute::kStage);
  CHECK_FALSE(stage_rebuild(spec, 0).at_once);
  spec.rebuild_which = RebuildWhich::kListed;
  CHECK(stage_rebuild(spec, 0).what == Recompute::kNone);
  CHECK(kept_microbatches(spec, 0).empty());

  spec = rebuilding(llama_model(), "1f1b", Recompute::kStage, Checkpoint::kAlways);
  spec.rebuild_which = RebuildWhich::kListed;
  CHECK(stage_rebuild(spec, 0).what == Recompute::kStage);
  CHECK(stage_rebuild(spec, 0).at_once);
  CHECK(kept_microbatches(spec, 0).empty());

  spec = rebuilding(llama_model(), "1f1b", Recompute::kStage, Checkpoint::kExceptLast);
  CHECK(kept_microbatches(spec, 0).empty());
  spec.rebuild_which = RebuildWhich::kListed;
  CHECK(stage_rebuild(spec, 0).at_once);
  CHECK(kept_microbatches(spec, 0) == std::vector<bool>{false, false, false, false, false, true});
}

TEST_CASE("a device that computes some of a stage's micro-batches again has the same bits, in memory between") {
  for (const char* name : {"1f1b", "zb-h1", "interleaved", "gpipe"})
    for (const std::vector<Layer>& model : {llama_model(7), untied_gpt_model(7)}) {
      const int chunks = std::string_view(name) == "interleaved" ? 2 : 1;
      const RunResult kept = on_host(rebuilding(model, name, Recompute::kNone, Checkpoint::kNever, chunks));
      for (const Recompute what : {Recompute::kSelective, Recompute::kFull, Recompute::kStage}) {
        INFO(name << ", rebuilds " << static_cast<int>(what));
        RunSpec all = rebuilding(model, name, what, Checkpoint::kAlways, chunks);
        RunSpec some = rebuilding(model, name, what, Checkpoint::kExceptLast, chunks);
        all.rebuild_which = some.rebuild_which = RebuildWhich::kListed;
        const RunResult rebuilt = on_host(some);
        CHECK(rebuilt.losses == kept.losses);
        CHECK(rebuilt.weights == kept.weights);
        CHECK(on_host(some, 5).weights == kept.weights);
        if (std::string_view(name) == "gpipe")  // the others have two at a time: the last, and one that is rebuilt
          CHECK(rebuilt.peak_memory_bytes.front() < kept.peak_memory_bytes.front());
        CHECK(rebuilt.peak_memory_bytes.front() >= on_host(all).peak_memory_bytes.front());
      }
    }
}

TEST_CASE("a schedule may list an R for any of a stage's micro-batches") {
  const std::vector<Layer> model = llama_model(7);
  const RunResult kept = on_host(rebuilding(model, "gpipe", Recompute::kNone, Checkpoint::kNever));
  std::int64_t more = kept.peak_memory_bytes.front();
  for (const int listed : {2, 3, 5}) {  // of the first micro-batches; one alone is whole again beside all others
    CAPTURE(listed);
    RunSpec spec = rebuilding(model, "gpipe", Recompute::kStage, Checkpoint::kAlways);
    spec.rebuild_which = RebuildWhich::kListed;
    for (std::vector<Action>& actions : spec.schedule.ranks)
      std::erase_if(actions, [&](const Action& a) { return a.op == Op::kRecompute && a.microbatch >= listed; });
    const RunResult rebuilt = on_host(spec, 2);
    CHECK(rebuilt.weights == kept.weights);
    CHECK(rebuilt.peak_memory_bytes.front() < more);
    more = rebuilt.peak_memory_bytes.front();
  }
}

}  // namespace plumb::test
