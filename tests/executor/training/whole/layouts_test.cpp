// Tensor, sequence and context parallelism against one rank: the gradients of every tensor agree within 1e-5 of its
// largest, the losses of 20 steps within 1e-4 (docs/design.md).

#include <doctest/doctest.h>

#include <string_view>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

/// Returns the run over a grid, with 8 tokens a sequence, so that 2 and 4 ranks can share them.
RunSpec over_grid(RunSpec spec, const ProcessGrid& grid, bool sequence_parallel = false) {
  const int pipeline = spec.grid.pipeline;
  spec.grid = grid;
  spec.grid.pipeline = pipeline;
  spec.sequence_parallel = sequence_parallel;
  spec.sequence = 8;
  return spec;
}

std::vector<Layer> parallel_gpt() {
  std::vector<Layer> model = gpt_model(2);
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->parallel_residual = true;
  return model;
}

}  // namespace

TEST_CASE("tensor parallelism gives the gradients of one rank, with and without sequence parallelism") {
  for (const std::vector<Layer>& model : {llama_model(2), gpt_model(2), parallel_gpt()}) {
    const RunSpec alone = over_grid(one_rank(model, 2), {});
    const ModelValues expected = gradients_of(alone);
    for (const bool sequence_parallel : {false, true}) {
      CAPTURE(sequence_parallel);
      CHECK(worst_difference(gradients_of(over_grid(alone, {.tensor = 2}, sequence_parallel)), expected) <= 1e-5);
    }
  }
  const RunSpec alone = over_grid(one_rank(wide_llama(2), 2), {});
  for (const bool sequence_parallel : {false, true})
    CHECK(worst_difference(gradients_of(over_grid(alone, {.tensor = 4}, sequence_parallel)), gradients_of(alone)) <=
          1e-5);
}

TEST_CASE("a tensor rank holds its share of the parameters") {
  // A block like GPT-2's has 12 h^2 elements that are divided, 7 h of biases that are divided, and 9 h that are not
  // (two norms, two biases). The 32 tokens of the vocabulary are divided over 2 and 4 ranks, the 16 positions are not.
  constexpr std::int64_t h = 16, f = 32, blocks = 2;
  RunSpec spec = over_grid(one_rank(gpt_model(blocks), 1), {});
  for (const int ranks : {1, 2}) {
    spec.grid.tensor = ranks;
    const std::int64_t divided = 2 * kVocab * h + blocks * (4 * h * h + 2 * h * f + 3 * h + f);
    const std::int64_t replicated = 16 * h + blocks * (4 * h + 2 * h) + 2 * h;
    const std::vector<ParameterBytes> held = run(spec).parameter_bytes;
    REQUIRE(held.size() == static_cast<std::size_t>(ranks));
    const std::int64_t own = divided / ranks + replicated;
    for (const ParameterBytes& bytes : held)
      CHECK(bytes == ParameterBytes{.weights = 4 * own, .gradients = 4 * own, .optimizer = 8 * own});
  }
}

TEST_CASE("tensor ranks that share a kv head sum its gradients, and hold it each") {
  for (const std::int64_t kv_heads : {1, 2}) {
    std::vector<Layer> model = llama_model(2);
    for (Layer& layer : model)
      if (auto* block = std::get_if<TransformerLayer>(&layer)) block->kv_heads = kv_heads, block->qkv_bias = true;
    RunSpec alone = over_grid(one_rank(model, 4), {});
    alone.clip_norm = 0.5;
    const ModelValues expected = gradients_of(alone);
    alone.steps = 20;
    const RunResult trained = run(alone, {.capture_weights = true});
    for (const bool sequence_parallel : {false, true})
      for (const char* name : {"1f1b", "zb-h1", "seq1f1b"})
        for (const int zero : {0, 3}) {
          CAPTURE(kv_heads);
          CAPTURE(name);
          CAPTURE(zero);
          const int slices = std::string_view(name) == "seq1f1b" ? 2 : 1;
          const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 2, .slices = slices});
          RunSpec spec = spec_of_lowered(model, lower(order, {.data = {.enabled = true, .zero = zero}}), 2);
          spec = over_grid(std::move(spec), {.tensor = 4, .data = 2}, sequence_parallel);
          spec.zero = zero;
          spec.clip_norm = 0.5;
          CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
          spec.steps = 20;
          const RunResult shared = run(spec, {.capture_weights = true});
          for (std::size_t step = 0; step < 20; ++step)
            CHECK(shared.losses[step] == doctest::Approx(trained.losses[step]).epsilon(1e-4));
          CHECK(worst_difference(shared.weights, trained.weights) <= 1e-4);
        }
    RunSpec spec = over_grid(one_rank(model, 1), {.tensor = 4});
    std::int64_t elements = 0;
    for (const Layer& layer : model) elements += parameter_count(layer, 4);
    for (const ParameterBytes& bytes : run(spec).parameter_bytes)
      CHECK(bytes == ParameterBytes{.weights = 4 * elements, .gradients = 4 * elements, .optimizer = 8 * elements});
  }
}

TEST_CASE("a vocabulary that the tensor ranks do not divide is padded, and the padding changes nothing") {
  for (const std::int64_t vocab : {33, 35}) {  // over 4 ranks: 9 9 9 6 and 9 9 9 8
    std::vector<Layer> model = wide_llama(2);
    std::get<EmbeddingLayer>(model.front()).vocab = vocab;
    std::get<HeadLayer>(model.back()).vocab = vocab;
    RunSpec alone = over_grid(one_rank(model, 2), {});
    RunSpec divided = over_grid(alone, {.tensor = 4}, true);
    CHECK(worst_difference(gradients_of(divided), gradients_of(alone)) <= 1e-5);
    alone.steps = divided.steps = 3;
    const ModelValues weights = run(alone, {.capture_weights = true}).weights;
    CHECK(worst_difference(run(divided, {.capture_weights = true}).weights, weights) <= 1e-4);
  }
}

TEST_CASE("tensor parallelism goes with every synchronous schedule, with replicas, and with recomputation") {
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "stp", "dualpipe", "chimera", "seq1f1b"}) {
    CAPTURE(name);
    const bool is_sliced = std::string_view(name) == "seq1f1b";
    ScheduleParameters shape{.ranks = 2, .microbatches = 4};
    if (std::string_view(name) == "interleaved") shape.chunks = 2;
    if (is_sliced) shape.slices = 2;
    RunSpec spec = over_grid(spec_of(gpt_model(), make_schedule(name, shape), 2), {.tensor = 2, .data = 2}, true);
    spec.rebuild = std::string_view(name) == "1f1b" ? Recompute::kStage : Recompute::kNone;
    CHECK(worst_difference(gradients_of(spec), gradients_of(over_grid(one_rank(gpt_model(), 8), {}))) <= 1e-5);
  }
}

TEST_CASE("pairs of one stage take turns over tensor ranks and in a ring of context ranks") {
  const Schedule order = make_schedule("stp", {.ranks = 2, .microbatches = 6});
  const ModelValues expected = gradients_of(over_grid(one_rank(gpt_model(), 6), {}));
  for (const ProcessGrid& grid :
       {ProcessGrid{.tensor = 2}, ProcessGrid{.context = 2}, ProcessGrid{.tensor = 2, .context = 2}})
    CHECK(worst_difference(gradients_of(over_grid(spec_of(gpt_model(), order, grid.context), grid)), expected) <= 1e-5);
}

TEST_CASE("losses of 20 steps are those of one rank") {
  RunSpec alone = over_grid(one_rank(gpt_model(), 4), {});
  RunSpec divided = over_grid(spec_of(gpt_model(), make_schedule("1f1b", {.ranks = 2, .microbatches = 2}), 2),
                              {.tensor = 2, .data = 2}, true);
  alone.steps = divided.steps = 20;
  const std::vector<double> expected = run(alone).losses, losses = run(divided).losses;
  for (std::size_t step = 0; step < 20; ++step) CHECK(losses[step] == doctest::Approx(expected[step]).epsilon(1e-4));
  CHECK(losses.back() < losses.front());
}

TEST_CASE("context parallelism gives the gradients of one rank, by the ring and by all-to-all") {
  for (const std::vector<Layer>& model : {llama_model(2), gpt_model(2)})
    for (const std::int64_t window : {0, 3}) {
      std::vector<Layer> layers = model;
      for (Layer& layer : layers)
        if (auto* block = std::get_if<TransformerLayer>(&layer)) block->window = window;
      RunSpec alone = over_grid(one_rank(layers, 2), {});
      const ModelValues expected = gradients_of(alone);
      RunSpec shared =
          over_grid(spec_of(layers, make_schedule("naive", {.ranks = 1, .microbatches = 2}), 2), {.context = 2});
      for (const ContextAttention attention : {ContextAttention::kRing, ContextAttention::kUlysses}) {
        shared.context_attention = attention;
        CAPTURE(static_cast<int>(attention));
        CHECK(worst_difference(gradients_of(shared), expected) <= 1e-5);
      }
    }
}

TEST_CASE("context parallelism goes with tensor and sequence parallelism, pipelines, replicas and recomputation") {
  const std::vector<Layer> model = [] {
    std::vector<Layer> layers = gpt_model();
    for (Layer& layer : layers)
      if (auto* block = std::get_if<TransformerLayer>(&layer)) block->heads = block->kv_heads = 4, block->head_size = 4;
    return layers;
  }();
  const ModelValues expected = gradients_of(over_grid(one_rank(model, 8), {}));
  for (const ContextAttention attention : {ContextAttention::kRing, ContextAttention::kUlysses}) {
    RunSpec spec = over_grid(spec_of(model, make_schedule("zb-h1", {.ranks = 2, .microbatches = 4}), 2),
                             {.tensor = 2, .context = 2, .data = 2}, true);
    spec.context_attention = attention;
    for (const Recompute rebuild : {Recompute::kNone, Recompute::kStage}) {
      spec.rebuild = rebuild;
      CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
    }
  }
}

TEST_CASE("context ranks share every slice of a sequence, by the ring and by all-to-all") {
  for (const std::vector<Layer>& model : {llama_model(2), gpt_model(2)})
    for (const std::int64_t window : {0, 3}) {
      std::vector<Layer> layers = model;
      for (Layer& layer : layers)
        if (auto* block = std::get_if<TransformerLayer>(&layer)) block->window = window;
      const ModelValues expected = gradients_of(over_grid(one_rank(layers, 2), {}));
      RunSpec shared = over_grid(
          spec_of(layers, make_schedule("seq1f1b", {.ranks = 2, .microbatches = 2, .slices = 2}), 2), {.context = 2});
      for (const ContextAttention attention : {ContextAttention::kRing, ContextAttention::kUlysses})
        for (const Recompute rebuild : {Recompute::kNone, Recompute::kStage}) {
          shared.context_attention = attention;
          shared.rebuild = rebuild;
          CAPTURE(static_cast<int>(attention));
          CHECK(worst_difference(gradients_of(shared), expected) <= 1e-5);
        }
    }
}

TEST_CASE("four context ranks agree with one") {
  std::vector<Layer> model = wide_llama(2);
  const RunSpec alone = over_grid(one_rank(model, 2), {});
  RunSpec shared =
      over_grid(spec_of(model, make_schedule("naive", {.ranks = 1, .microbatches = 2}), 2), {.context = 4});
  for (const ContextAttention attention : {ContextAttention::kRing, ContextAttention::kUlysses}) {
    shared.context_attention = attention;
    CHECK(worst_difference(gradients_of(shared), gradients_of(alone)) <= 1e-5);
    CHECK(run(shared).losses.front() == doctest::Approx(run(alone).losses.front()).epsilon(1e-6));
  }
}

TEST_CASE("what context ranks cannot share is refused with the layer and the remedy") {
  const RunSpec good =
      over_grid(spec_of(llama_model(2), make_schedule("naive", {.ranks = 1, .microbatches = 2}), 2), {.context = 2});
  RunSpec spec = good;
  spec.sequence = 6;
  CHECK_THROWS_WITH_AS(run(spec),
                       "layer 0: sequences of 6 tokens cannot be cut into 4 runs for 2 context ranks; choose a "
                       "multiple of 4",
                       SpecError);
  spec = good;
  spec.grid.context = 4;
  spec.context_attention = ContextAttention::kUlysses;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("4 heads and 2 kv heads a tensor rank cannot be divided over 4"),
                       SpecError);
  spec = over_grid(spec_of(llama_model(2), make_schedule("seq1f1b", {.ranks = 2, .microbatches = 2, .slices = 4}), 2),
                   {.context = 2});
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("slices of 2 tokens cannot be cut into 4 runs"), SpecError);
}

TEST_CASE("what tensor ranks cannot share is refused with the layer and the remedy") {
  const RunSpec good = over_grid(one_rank(llama_model(2), 1), {.tensor = 2});
  RunSpec spec = good;
  for (std::vector<Layer>& layers : spec.stage_layers)
    for (Layer& layer : layers)
      if (auto* block = std::get_if<TransformerLayer>(&layer)) block->heads = 12, block->kv_heads = 3;
  CHECK_THROWS_WITH_AS(run(spec),
                       "layer 1: 3 kv heads cannot be divided over 2 tensor ranks; choose a tensor degree that "
                       "divides them",
                       SpecError);
  spec = good;
  spec.grid.tensor = 3;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("4 heads cannot be divided over 3"), SpecError);
  spec = good;
  spec.sequence_parallel = true;
  spec.microbatch = 1;
  spec.sequence = 7;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("a micro-batch of 7 tokens cannot be divided over 2 tensor ranks"),
                       SpecError);
}

}  // namespace plumb::test
