// Copies of a stage that reduce gradients in buckets, shard its state, and agree on clipping and loss scales have the
// numbers of one rank.

#include "executor/replay/copy_collectives.h"

#include <doctest/doctest.h>

#include "executor/layers/parameter_places.h"
#include "schedules/dependencies/like_copies.h"
#include "schedules/error.h"
#include "tests/executor/sharded_spec.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

/// Returns the spans of an operation on one rank.
std::vector<Span> spans_of(const RankTimeline& rank, Op op) {
  std::vector<Span> spans;
  for (const Span& span : rank.spans)
    if (span.action.op == op) spans.push_back(span);
  return spans;
}

}  // namespace

TEST_CASE("state sharded over replicas gives one rank's gradients and its losses of 20 steps") {
  for (const auto& model : {llama_model(2), gpt_model(2)}) {
    const ModelValues expected = gradients_of(one_rank(model, 4));
    const std::vector<double> losses = losses_after(one_rank(model, 4), 20);
    for (const Sharded& sharded : kAllShardings)
      for (const char* name : {"1f1b", "interleaved", "zb-h1"}) {
        CAPTURE(sharded.zero);
        CAPTURE(int(sharded.by));
        CAPTURE(name);
        const int chunks = std::string_view(name) == "interleaved" ? 2 : 1;
        const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 2, .chunks = chunks});
        const RunSpec spec = sharded_spec(model, order, 2, sharded);
        CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
        check_losses(losses_after(spec, 20), losses);
      }
  }
}

TEST_CASE("state is sharded over replicas and copies under every synchronous schedule") {
  const std::vector<Layer> model = llama_model(6);
  const ModelValues expected = gradients_of(one_rank(model, 8));
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == "forward-only" || !entry.unpriced.empty()) continue;
    const int chunks = entry.takes_chunks ? 4 : entry.chunks;
    const Schedule order = make_schedule(entry.name, {.ranks = 2, .microbatches = 4, .chunks = chunks});
    if (is_asynchronous(order)) continue;
    for (const int zero : {1, 2, 3}) {
      CAPTURE(entry.name);
      CAPTURE(zero);
      if (zero > 1 && !why_copies_cannot_share(order, zero == 3).empty()) continue;
      for (const bool layerwise : {false, true}) {
        if (layerwise && zero < 2) continue;
        const RunSpec spec = sharded_spec(model, order, 2, {.zero = zero, .layerwise = layerwise});
        CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
      }
    }
  }
}

TEST_CASE("a tied table on one rank, or at both ends, is summed where state is sharded over three replicas") {
  const std::vector<Layer> model = gpt_model(2);
  const ModelValues expected = gradients_of(one_rank(model, 6));
  for (const int ranks : {1, 2})
    for (const Sharded& sharded : kAllShardings) {
      CAPTURE(ranks);
      CAPTURE(sharded.zero);
      const Schedule order = make_schedule("gpipe", {.ranks = ranks, .microbatches = 2});
      const ModelValues gradients = gradients_of(sharded_spec(model, order, 3, sharded));
      CHECK(worst_difference(gradients, expected) <= 1e-5);
      CHECK(gradients.front()[0] == gradients.back().back());
    }
}

TEST_CASE("ranks that hold one end of each of two tied tables share state without waiting for each other") {
  const std::vector<Layer> model = gpt_model(2);
  const ModelValues expected = gradients_of(one_rank(model, 8));
  for (const char* name : {"chimera", "dualpipe"})
    for (const Sharded& sharded : kAllShardings) {
      CAPTURE(name);
      CAPTURE(sharded.zero);
      const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4});
      CHECK(worst_difference(gradients_of(sharded_spec(model, order, 2, sharded)), expected) <= 1e-5);
    }
}

TEST_CASE("copies of one pipeline share state without replicas, and train and clip as one rank does") {
  const std::vector<Layer> model = llama_model(6);
  RunSpec alone = one_rank(model, 4);
  alone.clip_norm = 0.5;
  const ModelValues expected = gradients_of(alone);
  const std::vector<double> losses = losses_after(alone, 20);
  for (const char* name : {"chimera", "dualpipe"})
    for (const int ranks : {2, 4})
      for (const Sharded& sharded : kAllShardings) {
        CAPTURE(name);
        CAPTURE(ranks);
        CAPTURE(sharded.zero);
        CAPTURE(int(sharded.by));
        RunSpec spec = sharded_spec(model, make_schedule(name, {.ranks = ranks, .microbatches = 4}), 1, sharded);
        spec.clip_norm = 0.5;
        CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
        if (ranks == 4) check_losses(losses_after(spec, 20), losses);
      }
}

TEST_CASE("a rank holds one of two stages' shares over copies and replicas together") {
  const std::vector<Layer> model = gpt_model(2);
  for (const char* name : {"chimera", "dualpipe"})
    for (const int data : {1, 2, 3})
      for (const int zero : {0, 1, 2, 3}) {
        const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4});
        const RunSpec spec = sharded_spec(model, order, data, {.zero = zero});
        std::int64_t weights = 0, gradients = 0, optimizer = 0;  // bytes of a rank that keeps all or the largest share
        std::int64_t elements = 0;
        for (const std::size_t part : {0, 1}) {  // both parts are on each rank
          std::int64_t of_part = 0;
          for (const Layer& layer : spec.stage_layers[part]) of_part += parameter_count(layer);
          const std::int64_t share = shares_by_element(of_part, 2 * data)[1];
          CHECK(share <= of_part / (2 * data) + 2);
          weights += 4 * (zero >= 3 ? share : of_part);
          gradients += 4 * (zero >= 2 ? share : of_part);
          optimizer += 8 * (zero >= 1 ? share : of_part);
          elements += of_part;
        }
        ParameterBytes all;
        for (const ParameterBytes& held : run(spec).parameter_bytes) {
          CHECK(held.weights <= weights);
          CHECK(held.gradients <= gradients);
          CHECK(held.optimizer <= optimizer);
          all = all + held;
        }
        CHECK(all.weights == 4 * elements * (zero >= 3 ? 1 : 2 * data));
        CHECK(all.gradients == 4 * elements * (zero >= 2 ? 1 : 2 * data));
        CHECK(all.optimizer == 8 * elements * (zero >= 1 ? 1 : 2 * data));
      }
}

TEST_CASE("a rank holds its share of what is sharded, and a whole copy of the rest") {
  const std::vector<Layer> model = gpt_model(2);
  std::int64_t elements = 0;
  for (const Layer& layer : model) elements += parameter_count(layer);
  for (const int data : {2, 3})
    for (const int zero : {0, 1, 2, 3}) {
      const Schedule order = make_schedule("gpipe", {.ranks = 1, .microbatches = 2});
      RunSpec spec = sharded_spec(model, order, data, {.zero = zero});
      const std::vector<std::int64_t> bounds = shares_by_element(elements, data);
      const std::vector<ParameterBytes> held = run(spec).parameter_bytes;
      REQUIRE(held.size() == static_cast<std::size_t>(data));
      std::int64_t optimizer_elements = 0;
      for (int rank = 0; rank < data; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        const std::int64_t share = bounds[at + 1] - bounds[at];
        CHECK(share <= elements / data + 2);
        CHECK(held[at].weights == 4 * (zero >= 3 ? share : elements));
        CHECK(held[at].gradients == 4 * (zero >= 2 ? share : elements));
        CHECK(held[at].optimizer == 8 * (zero >= 1 ? share : elements));
        optimizer_elements += held[at].optimizer / 8;
      }
      CHECK(optimizer_elements == (zero >= 1 ? elements : data * elements));
    }
}

TEST_CASE("sharded state lowers a rank's peak, step by step of ZeRO") {
  const auto peak = [](int zero) {
    const Schedule order = make_schedule("gpipe", {.ranks = 2, .microbatches = 2});
    return run(sharded_spec(llama_model(6), order, 4, {.zero = zero})).peak_memory_bytes.front();
  };
  CHECK(peak(1) < peak(0));
}

TEST_CASE("steady steps with sharded state take no new memory") {
  for (const Sharded& sharded : kAllShardings) {
    for (const char* name : {"1f1b", "dualpipe"}) {
      const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4});
      RunSpec spec = sharded_spec(gpt_model(2), order, 2, sharded);
      spec.steps = 2;
      const std::vector<std::int64_t> settled = run(spec).allocations;
      spec.steps = 6;
      CHECK(run(spec).allocations == settled);
    }
  }
}

TEST_CASE("buckets inside the last backward change no number but for the order of additions, and start inside it") {
  const std::vector<Layer> model = llama_model();
  for (const char* name : {"1f1b", "zb-h1"})
    for (const int zero : {0, 1}) {
      CAPTURE(name);
      CAPTURE(zero);
      const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4});
      RunSpec spec = spec_of_lowered(model, lower(order, {.data = {.enabled = true, .zero = zero, .buckets = {3}}}), 2);
      spec.zero = zero;
      CHECK(worst_difference(gradients_of(spec), gradients_of(spec_of(model, order, 2))) <= 1e-5);
      const RunResult result = run(spec);
      for (const RankTimeline& rank : result.timelines.front().ranks) {
        Span last_gradient;
        for (const Span& span : rank.spans)
          if (gives_weight_gradient(span.action.op)) last_gradient = span;
        const std::vector<Span> reductions = spans_of(rank, Op::kReduceGrad);
        REQUIRE(reductions.size() == 3);
        CHECK(reductions[0].start >= last_gradient.start);  // a bucket is complete only inside
        for (std::size_t bucket = 1; bucket < 3; ++bucket)
          CHECK(reductions[bucket].start >= reductions[bucket - 1].end);
      }
    }
}

TEST_CASE("a clipped gradient is one rank's, whatever is sharded, and its norm is the limit") {
  for (const auto& model : {llama_model(2), gpt_model(2)}) {
    RunSpec reference = one_rank(model, 4);
    reference.clip_norm = 0.05;
    const ModelValues expected = gradients_of(reference);
    double square_sum = 0;
    const bool is_tied = std::get<HeadLayer>(model.back()).tied;
    for (std::size_t layer = 0; layer < expected.size(); ++layer)
      for (std::size_t i = 0; i < expected[layer].size(); ++i)
        if (!is_tied || layer + 1 < expected.size() || i + 1 < expected[layer].size())
          for (const float g : expected[layer][i]) square_sum += double(g) * double(g);
    CHECK(std::sqrt(square_sum) == doctest::Approx(0.05).epsilon(1e-5));
    const std::vector<double> losses = losses_after(reference, 20);
    for (const int zero : {0, 1, 2, 3})
      for (const char* name : {"gpipe", "interleaved", "zb-h1"}) {
        CAPTURE(zero);
        CAPTURE(name);
        const int chunks = std::string_view(name) == "interleaved" ? 2 : 1;
        const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 2, .chunks = chunks});
        RunSpec spec = sharded_spec(model, order, 2, {.zero = zero});
        spec.clip_norm = 0.05;
        CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
        check_losses(losses_after(spec, 20), losses);
      }
  }
}

TEST_CASE("sharding and clipping go with tensor parallelism") {
  RunSpec reference = one_rank(gpt_model(2), 4);
  reference.clip_norm = 0.05;
  reference.sequence = 8;
  const ModelValues expected = gradients_of(reference);
  const std::vector<double> losses = losses_after(reference, 20);
  for (const Sharded& sharded : kAllShardings)
    for (const bool sequence_parallel : {false, true}) {
      CAPTURE(sharded.zero);
      CAPTURE(int(sharded.by));
      RunSpec spec = sharded_spec(gpt_model(2), make_schedule("1f1b", {.ranks = 2, .microbatches = 2}), 2, sharded);
      spec.grid.tensor = 2;
      spec.sequence_parallel = sequence_parallel;
      spec.clip_norm = 0.05;
      spec.sequence = 8;
      CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
      check_losses(losses_after(spec, 20), losses);
    }
}

TEST_CASE("every optimizer trains, and gives one rank's losses on two ranks of two replicas") {
  const std::vector<OptimizerSettings> optimizers = {AdamW{.learning_rate = 1e-2F}, AdamW8Bit{{.learning_rate = 1e-2F}},
                                                     Sgd{.learning_rate = 0.1F}, Lion{.learning_rate = 2e-3F},
                                                     Adafactor{.learning_rate = 5e-2F}};
  const std::vector<Layer> model = gpt_model(2);
  for (const OptimizerSettings& optimizer : optimizers) {
    CAPTURE(optimizer.index());
    RunSpec reference = one_rank(model, 4);
    reference.optimizer = optimizer;
    const std::vector<double> expected = losses_after(reference, 20);
    CHECK(expected.back() < 0.95 * expected.front());
    RunSpec spec = spec_of(model, make_schedule("1f1b", {.ranks = 2, .microbatches = 2}), 2);
    spec.optimizer = optimizer;
    const std::vector<double> losses = losses_after(spec, 20);
    // The sign of a momentum near 0, and codes near a boundary, follow the order of additions.
    const bool is_discrete = std::holds_alternative<Lion>(optimizer) || std::holds_alternative<AdamW8Bit>(optimizer);
    for (std::size_t i = 0; i < 20; ++i)
      CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(is_discrete ? 1e-3 : 1e-4));
  }
}

TEST_CASE("optimizer state in the host's memory changes no bit and leaves the rank's") {
  const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
  for (const int zero : {0, 1, 3}) {
    RunSpec spec = sharded_spec(gpt_model(2), order, 2, {.zero = zero});
    spec.steps = 3;
    const RunResult here = run(spec, {.capture_weights = true});
    spec.offload_optimizer = true;
    const RunResult away = run(spec, {.capture_weights = true});
    CHECK(away.losses == here.losses);
    CHECK(away.weights == here.weights);
    CHECK(away.parameter_bytes == here.parameter_bytes);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const int world_rank = world_rank_of(spec.grid, {.pipeline = static_cast<int>(rank)});
      const std::int64_t optimizer = here.parameter_bytes[static_cast<std::size_t>(world_rank)].optimizer;
      const auto held = [rank](const RunResult& result) {
        return result.timelines.back().ranks[rank].memory.front().bytes;  // bytes held between steps
      };
      CHECK(held(away) == held(here) - optimizer);
      CHECK(away.peak_host_bytes[rank] >= optimizer);
    }
  }
}

TEST_CASE("layer by layer, two layers' weights and one layer's gradients stand whole beside the shares") {
  // The two runs differ in nothing else. By stage, weights and gradients of all blocks stand whole in the backward;
  // layer by layer, weights of two and gradients of one. The embedding and the head are small beside 16 blocks.
  constexpr int kBlocks = 16;
  const std::vector<Layer> model = llama_model(kBlocks);
  const Schedule order = make_schedule("gpipe", {.ranks = 1, .microbatches = 1});
  const std::int64_t block = 4 * parameter_count(Layer(llama_block()));
  const auto peak = [&](bool layerwise, bool recomputes) {
    RunSpec spec = sharded_spec(model, order, 2, {.zero = 3, .layerwise = layerwise});
    if (recomputes) spec.rebuild = Recompute::kFull;
    return run(spec).peak_memory_bytes[0];
  };
  const std::int64_t saved = peak(false, false) - peak(true, false);
  CHECK(saved >= (2 * kBlocks - 3 - 1) * block);
  CHECK(saved <= (2 * kBlocks + 2) * block);
  CHECK(peak(true, true) < peak(true, false));
}

TEST_CASE("what cannot be sharded or agreed on is refused in a sentence") {
  const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
  RunSpec spec = sharded_spec(llama_model(), order, 2, {.zero = 1});
  spec.optimizer = Adafactor{};
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("Adafactor sums rows and columns"), SpecError);
  spec.optimizer = AdamW8Bit{};
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("8-bit AdamW quantises blocks"), SpecError);
  spec = spec_of_lowered(llama_model(), lower(make_schedule("chimera", {.ranks = 2, .microbatches = 2}),
                                              {.data = {.enabled = true, .zero = 1}}));
  spec.zero = 1;
  spec.optimizer = Adafactor{};
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("Adafactor sums rows and columns"), SpecError);
  spec = sharded_spec(llama_model(), order, 2, {.zero = 1});
  spec.zero = 0;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("gathers weights that are whole"), ScheduleError);
  spec.zero = 3;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("are not whole"), ScheduleError);
  spec = spec_of(llama_model(), order, 2);
  spec.zero = 1;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("not whole; lower it with ZeRO stage 1"), ScheduleError);
  spec.zero = 4;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("there is no ZeRO stage 4"), SpecError);
  spec = spec_of(llama_model(), make_schedule("pipedream", {.ranks = 2, .microbatches = 4}));
  spec.clip_norm = 1;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("use a synchronous schedule"), ScheduleError);
  spec = sharded_spec(llama_model(), make_schedule("dualpipe", {.ranks = 2, .microbatches = 4}), 1, {.zero = 2});
  std::vector<Action>& actions = spec.schedule.ranks[1];
  const auto sum = std::ranges::find(actions, Op::kReduceGrad, &Action::op);
  std::rotate(sum, sum + 1, std::find_if(sum + 1, actions.end(), [](const Action& action) {
                return action.op == Op::kReduceGrad;
              }));  // now behind another gradient on one of two ranks
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("ranks 0 and 1 hold copies of model part 0"), ScheduleError);
  spec = spec_of_lowered(llama_model(2), lower(order, {.data = {.enabled = true, .buckets = {9}}}), 2);
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("give each bucket a layer"), SpecError);
}

}  // namespace plumb::test
