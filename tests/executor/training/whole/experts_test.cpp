// Expert parallelism against one rank: the gradients of every tensor agree within 1e-5 of its largest, the losses of 20
// steps within 1e-4 (docs/design.md).

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <string_view>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

std::vector<std::vector<Layer>> mixtures() {
  return {mixtral_model(2), shared_expert_model(2), with_dropout(shared_expert_model(2)), sink_model(2)};
}

/// Returns a mixture with four kv heads, so that two tensor and two context ranks can share them.
std::vector<Layer> wide(std::vector<Layer> model) {
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->kv_heads = 4;
  return model;
}
std::vector<Layer> wide_mixture() {
  return wide(mixtral_model(2));
}

/// Returns blocks like DeepSeek's, whose experts drop picks, with four heads and dropout.
std::vector<Layer> with_four_heads() {
  std::vector<Layer> model = with_dropout(shared_expert_model(2));
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) {
      block->heads = 4;
      block->head_size = 4;
    }
  return model;
}

}  // namespace

TEST_CASE("experts spread over replicas give the gradients of one rank") {
  for (const std::vector<Layer>& model : mixtures()) {
    const ModelValues expected = gradients_of(alone_on_one_rank(model, 4));
    for (const int experts : {1, 2, 4}) {
      CAPTURE(experts);
      const ScheduleParameters shape{.ranks = 1, .microbatches = 1};
      CHECK(worst_difference(gradients_of(spec_over(model, "naive", shape, {.expert = experts, .data = 4})),
                             expected) <= 1e-5);
    }
  }
}

TEST_CASE("experts spread over context ranks, with experts that tensor ranks divide, give the gradients of one rank") {
  for (const std::vector<Layer>& model : {wide_mixture(), wide(sink_model(2)), with_dropout(shared_expert_model(2))})
    for (const ContextAttention attention : {ContextAttention::kRing, ContextAttention::kUlysses})
      for (const bool sequence_parallel : {false, true}) {
        const bool is_narrow = std::get<TransformerLayer>(model[1]).kv_heads < 4;
        const int tensor = attention == ContextAttention::kUlysses && is_narrow ? 1 : 2;
        RunSpec spec = spec_over(model, "naive", {.ranks = 1, .microbatches = 2},
                                 {.tensor = tensor, .context = 2, .expert = 2, .data = 2});
        spec.sequence_parallel = sequence_parallel;
        spec.context_attention = attention;
        CHECK(worst_difference(gradients_of(spec), gradients_of(alone_on_one_rank(model, 4))) <= 1e-5);
      }
}

TEST_CASE("tensor ranks that have different experts, or share them in pairs, give the gradients of one rank") {
  struct Division {
    ProcessGrid grid;
    bool sequence_parallel = false;
  };
  const Division divisions[] = {{{.tensor = 2, .expert = 2, .expert_tensor = 1}},
                                {{.tensor = 2, .expert = 2, .expert_tensor = 1}, true},
                                {{.tensor = 2, .expert = 2, .expert_tensor = 1, .data = 2}},
                                {{.tensor = 2, .expert = 4, .expert_tensor = 1, .data = 2}, true},
                                {{.tensor = 2, .context = 2, .expert = 4, .expert_tensor = 1}, true},
                                {{.tensor = 4, .expert = 4, .expert_tensor = 1}},
                                {{.tensor = 4, .expert = 2, .expert_tensor = 2}, true}};
  for (const std::vector<Layer>& model : {wide_mixture(), wide(sink_model(2)), wide(with_four_heads())})
    for (const Division& division : divisions) {
      CAPTURE(division.grid.tensor);
      CAPTURE(division.grid.context);
      CAPTURE(division.grid.data);
      CAPTURE(division.grid.expert);
      const int microbatches = 4 / division.grid.data;
      RunSpec spec = spec_over(model, "naive", {.ranks = 1, .microbatches = microbatches}, division.grid);
      spec.sequence_parallel = division.sequence_parallel;
      CHECK(worst_difference(gradients_of(spec), gradients_of(alone_on_one_rank(model, 4))) <= 1e-5);
    }
}

TEST_CASE("whole experts on tensor ranks go with slices, sharded state, recomputation and clipping") {
  const std::vector<Layer> model = with_dropout(shared_expert_model());
  RunSpec alone = alone_on_one_rank(model, 8);
  alone.clip_norm = 0.5;
  alone.steps = 4;
  const std::vector<double> expected = run(alone).losses;
  const ProcessGrid grid{.tensor = 2, .expert = 2, .expert_tensor = 1, .data = 2};
  for (const char* name : {"1f1b", "zb-h1", "seq1f1b"})
    for (const int zero : {0, 1, 3}) {
      CAPTURE(name);
      CAPTURE(zero);
      ScheduleParameters shape{.ranks = 2, .microbatches = 4};
      if (std::string_view(name) == "seq1f1b") shape.slices = 2;
      RunSpec spec = spec_over(model, name, shape, grid, zero);
      spec.rebuild = zero > 0 ? Recompute::kStage : Recompute::kNone;
      spec.clip_norm = 0.5;
      spec.steps = 4;
      const std::vector<double> losses = run(spec).losses;
      for (std::size_t step = 0; step < losses.size(); ++step)
        CHECK(losses[step] == doctest::Approx(expected[step]).epsilon(1e-4));
    }
}

TEST_CASE("experts go with every kind of schedule, with slices, sharded state and recomputation") {
  const std::vector<Layer> model = with_dropout(shared_expert_model());
  const ModelValues expected = gradients_of(alone_on_one_rank(model, 8));
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "stp", "dualpipe", "chimera", "seq1f1b"}) {
    const std::string_view schedule = name;
    ScheduleParameters shape{.ranks = 2, .microbatches = 4};
    if (schedule == "interleaved") shape.chunks = 2;
    if (schedule == "seq1f1b") shape.slices = 2;
    const bool has_copies = schedule == "dualpipe" || schedule == "chimera";
    for (const int zero : {0, has_copies ? 1 : 3}) {
      CAPTURE(name);
      CAPTURE(zero);
      RunSpec spec = spec_over(model, name, shape, {.expert = 2, .data = 2}, zero);
      spec.rebuild = zero > 0 ? Recompute::kStage : Recompute::kNone;
      CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
    }
  }
}

TEST_CASE("experts go layer by layer under ZeRO 2 and 3, over copies of their own") {
  for (const std::vector<Layer>& model : {mixtral_model(), shared_expert_model()})
    for (const int zero : {2, 3})
      for (const int experts : {1, 2, 4}) {
        CAPTURE(zero);
        CAPTURE(experts);
        RunSpec spec = spec_over(model, "1f1b", {.ranks = 2, .microbatches = 2}, {.expert = experts, .data = 4}, zero);
        spec.layerwise = true;
        CHECK(worst_difference(gradients_of(spec), gradients_of(alone_on_one_rank(model, 8))) <= 1e-5);
      }
}

TEST_CASE("a rank holds its share of the experts, and of their state what their fewer copies leave") {
  const std::vector<Layer> model = mixtral_model(2);
  std::int64_t routed = 0, others = 0;
  for (const Layer& layer : model) {
    routed += expert_parameter_count(layer);
    others += parameter_count(layer) - expert_parameter_count(layer);
  }
  CHECK(routed == 4 * (2 * 12 * 16 + 16 * 12));
  for (const int experts : {1, 2, 4})
    for (const int zero : {0, 1, 2, 3}) {
      CAPTURE(experts);
      CAPTURE(zero);
      const std::vector<ParameterBytes> held =
          run(spec_over(model, "naive", {.ranks = 1, .microbatches = 2}, {.expert = experts, .data = 4}, zero))
              .parameter_bytes;
      const auto elements = [&](bool sharded) {
        return routed / experts / (sharded ? 4 / experts : 1) + others / (sharded ? 4 : 1);
      };
      for (const ParameterBytes& bytes : held)
        CHECK(bytes == ParameterBytes{.weights = 4 * elements(zero >= 3),
                                      .gradients = 4 * elements(zero >= 2),
                                      .optimizer = 8 * elements(zero >= 1)});
    }
}

TEST_CASE("losses of 20 steps, of tokens and of balance, are those of one rank, and fall") {
  RunSpec one = alone_on_one_rank(mixtral_model(), 4);
  RunSpec spread =
      spec_over(mixtral_model(), "1f1b", {.ranks = 2, .microbatches = 2}, {.tensor = 2, .expert = 2, .data = 2});
  spread.sequence_parallel = true;
  one.steps = spread.steps = 20;
  const RunResult expected = run(one), result = run(spread);
  REQUIRE(result.balance_losses.size() == 20);
  for (std::size_t step = 0; step < 20; ++step) {
    CHECK(result.losses[step] == doctest::Approx(expected.losses[step]).epsilon(1e-4));
    CHECK(result.balance_losses[step] == doctest::Approx(expected.balance_losses[step]).epsilon(1e-4));
  }
  CHECK(result.losses.back() < result.losses.front());
  // The model has three mixtures; E sum f P is 1 where the load is even, and at most E.
  CHECK(result.balance_losses.front() >= 3 * 0.02 * 0.9);
  CHECK(result.balance_losses.front() <= 3 * 0.02 * 4);
}

TEST_CASE("steady steps of spread experts take no new memory, with a capacity and without, whatever is picked") {
  for (const bool has_capacity : {false, true})
    for (const std::optional<HalfFormat> half : {std::optional<HalfFormat>{}, std::optional(HalfFormat::kBf16)}) {
      std::vector<Layer> model = mixtral_model();
      for (Layer& layer : model)
        if (auto* block = std::get_if<TransformerLayer>(&layer); block != nullptr && has_capacity)
          block->capacity_factor = 1.5;
      RunSpec spec = spec_over(model, "1f1b", {.ranks = 2, .microbatches = 4}, {.expert = 2, .data = 2});
      spec.half = half;
      spec.steps = 2;
      const std::vector<std::int64_t> settled = run(spec).allocations;
      spec.steps = 12;
      CHECK(run(spec).allocations == settled);
    }
}

TEST_CASE("spread experts give the same bits every time, and checkpoints that another layout takes up") {
  const std::vector<Layer> model = with_dropout(mixtral_model());
  RunSpec spread = spec_over(model, "1f1b", {.ranks = 2, .microbatches = 2}, {.expert = 2, .data = 2}, 1);
  spread.steps = 4;
  const RunResult first = run(spread, {.capture_weights = true}), second = run(spread, {.capture_weights = true});
  CHECK(first.losses == second.losses);
  CHECK(first.weights == second.weights);

  TrainingState state;
  RunSpec half = spread;
  half.steps = 2;
  run(half, {.checkpoint_every = 2, .checkpoint = [&](const TrainingState& saved) { state = saved; }});
  RunSpec on = spread;
  on.resume = std::make_shared<const TrainingState>(state);
  CHECK(run(on, {.capture_weights = true}).weights == first.weights);
  RunSpec elsewhere = alone_on_one_rank(model, 4);
  RunSpec on_tensor_ranks =
      spec_over(model, "naive", {.ranks = 1, .microbatches = 4}, {.tensor = 2, .expert = 2, .expert_tensor = 1});
  for (RunSpec* other : {&elsewhere, &on_tensor_ranks}) {
    other->steps = 4;
    other->resume = on.resume;
    const std::vector<double> losses = run(*other).losses;
    for (std::size_t step = 0; step < 2; ++step)
      CHECK(losses[step] == doctest::Approx(first.losses[2 + step]).epsilon(1e-5));
  }
}

TEST_CASE("experts that cannot be spread are refused in one sentence") {
  const ScheduleParameters shape{.ranks = 1, .microbatches = 1};
  CHECK_THROWS_WITH_AS(run(spec_over(mixtral_model(2), "naive", shape, {.expert = 3, .data = 3})),
                       "layer 2: 4 experts cannot be spread over 3 expert ranks; choose an expert degree that divides "
                       "them",
                       SpecError);
  CHECK_THROWS_WITH_AS(run(spec_over(mixtral_model(2), "naive", shape, {.expert = 2, .data = 3})),
                       "2 expert ranks do not divide the 3 replicas times 1 context ranks; choose a degree that does",
                       SpecError);
  CHECK_THROWS_WITH_AS(run(spec_over(mixtral_model(2), "naive", shape, {.tensor = 2, .expert_tensor = 1, .data = 2})),
                       "1 expert ranks put the same experts on some of 2 tensor ranks, 1 of which share an expert; "
                       "choose a multiple of 2",
                       SpecError);
  CHECK_THROWS_WITH_AS(run(spec_over(mixtral_model(2), "naive", shape, {.tensor = 2, .expert_tensor = 3})),
                       "3 ranks share an expert, which do not divide the 2 tensor ranks; choose a degree that does",
                       SpecError);
  RunSpec quantised = spec_over(mixtral_model(2), "naive", shape, {.expert = 2, .data = 2});
  quantised.optimizer = AdamW8Bit{};
  CHECK_THROWS_AS(run(quantised), SpecError);
}

}  // namespace plumb::test
