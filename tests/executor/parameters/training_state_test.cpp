#include "executor/parameters/training_state.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>

#include "schedules/error.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

using State = std::shared_ptr<const TrainingState>;

struct CheckpointedTraining {
  std::vector<double> losses;
  ModelValues weights;
  std::vector<State> states;  // one for each checkpoint, as read from its bytes
};

CheckpointedTraining train_with_checkpoints(RunSpec spec, int steps, State from = nullptr, int every = 0) {
  CheckpointedTraining trained;
  spec.steps = steps;
  spec.resume = std::move(from);
  RunOptions options{.capture_weights = true, .checkpoint_every = every};
  options.checkpoint = [&](const TrainingState& state) {
    trained.states.push_back(
        std::make_shared<TrainingState>(training_state_from_bytes(to_bytes(state), "the checkpoint")));
    CHECK(*trained.states.back() == state);
  };
  const RunResult result = run(spec, options);
  trained.losses = result.losses;
  trained.weights = result.weights;
  return trained;
}

RunSpec pipeline_spec(const OptimizerSettings& optimizer, int data = 1, int zero = 0, int ranks = 2) {
  const Schedule order = make_schedule("1f1b", {.ranks = ranks, .microbatches = 4 / data});
  RunSpec spec = spec_of_lowered(gpt_model(2), lower(order, {.data = {.enabled = data > 1, .zero = zero}}), data);
  spec.zero = zero;
  spec.sequence = 8;
  spec.optimizer = optimizer;
  return spec;
}

void check_tail(const std::vector<double>& tail, const std::vector<double>& all, double epsilon) {
  for (std::size_t i = 0; i < tail.size(); ++i)
    CHECK(tail[i] == doctest::Approx(all[all.size() - tail.size() + i]).epsilon(epsilon));
}

}  // namespace

TEST_CASE("training goes on from a checkpoint to bitwise the same losses and weights, with every optimizer") {
  for (const OptimizerSettings& optimizer : kAllOptimizers)
    for (const bool offloaded : {false, true}) {
      CAPTURE(optimizer.index());
      RunSpec spec = pipeline_spec(optimizer);
      spec.offload_optimizer = offloaded;
      const CheckpointedTraining whole = train_with_checkpoints(spec, 6, nullptr, 2);
      REQUIRE(whole.states.size() == 3);
      const CheckpointedTraining rest = train_with_checkpoints(spec, 6, whole.states[0]);
      CHECK(rest.losses == std::vector<double>(whole.losses.begin() + 2, whole.losses.end()));
      CHECK(rest.weights == whole.weights);
    }
}

TEST_CASE("sharded state, 16-bit weights and the loss scale go on bitwise too") {
  for (const int zero : {1, 2, 3})
    for (const std::optional<HalfFormat> half :
         {std::optional<HalfFormat>{}, std::optional(HalfFormat::kBf16), std::optional(HalfFormat::kFp16)}) {
      CAPTURE(zero);
      RunSpec spec = pipeline_spec(AdamW{}, 2, zero);
      spec.half = half;
      spec.clip_norm = 1;
      const CheckpointedTraining whole = train_with_checkpoints(spec, 5, nullptr, 3);
      REQUIRE(whole.states.size() == 2);
      const CheckpointedTraining rest = train_with_checkpoints(spec, 5, whole.states[0]);
      CHECK(rest.losses == std::vector<double>(whole.losses.begin() + 3, whole.losses.end()));
      CHECK(rest.weights == whole.weights);
    }
}

TEST_CASE("training goes on with other pipeline, data and tensor degrees, shardings and schedules") {
  const CheckpointedTraining whole = train_with_checkpoints(pipeline_spec(AdamW{}), 8, nullptr, 4);
  std::vector<RunSpec> others = {pipeline_spec(AdamW{}, 1, 0, 1), pipeline_spec(AdamW{}, 1, 0, 4),
                                 pipeline_spec(AdamW{}, 2),       pipeline_spec(AdamW{}, 2, 1),
                                 pipeline_spec(AdamW{}, 2, 3),    pipeline_spec(AdamW{}, 4, 2, 1)};
  others.push_back(pipeline_spec(AdamW{}));
  others.back().grid.tensor = 2;
  others.push_back(pipeline_spec(AdamW{}, 2, 1));
  others.back().grid.tensor = 2;
  others.back().sequence_parallel = true;
  for (const RunSpec& other : others) {
    const CheckpointedTraining rest = train_with_checkpoints(other, 8, whole.states[0], 4);
    REQUIRE(rest.losses.size() == 4);
    check_tail(rest.losses, whole.losses, 1e-5);
    check_tail(train_with_checkpoints(pipeline_spec(AdamW{}), 10, rest.states.back()).losses,
               // The reverse direction.
               train_with_checkpoints(pipeline_spec(AdamW{}), 10, whole.states.back()).losses, 1e-5);
  }
}

TEST_CASE("an asynchronous run goes on from a flush") {
  RunSpec spec = spec_of(llama_model(2), make_schedule("pipedream", {.ranks = 2, .microbatches = 4}));
  const CheckpointedTraining whole = train_with_checkpoints(spec, 4, nullptr, 2);
  const CheckpointedTraining rest = train_with_checkpoints(spec, 4, whole.states[0]);
  CHECK(rest.losses ==
        std::vector<double>(whole.losses.end() - static_cast<std::ptrdiff_t>(rest.losses.size()), whole.losses.end()));
}

TEST_CASE("bytes that are cut anywhere, damaged, or no checkpoint are refused") {
  TrainingState state = room_for_state(one_rank(llama_model(1), 1));
  state.steps = 3;
  const std::string bytes = to_bytes(state);
  CHECK(training_state_from_bytes(bytes, "c") == state);
  for (std::size_t length = 0; length < bytes.size(); length += 1 + bytes.size() / 97)
    CHECK_THROWS_AS(training_state_from_bytes(bytes.substr(0, length), "c"), InputError);
  CHECK_THROWS_WITH_AS(training_state_from_bytes(bytes.substr(0, bytes.size() - 1), "ckpt/state"),
                       doctest::Contains("ckpt/state is cut short"), InputError);
  for (const std::size_t at : {std::size_t{60}, bytes.size() / 2, bytes.size() - 3}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    CHECK_THROWS_WITH_AS(training_state_from_bytes(damaged, "c"), doctest::Contains("checksum"), InputError);
  }
  std::string newer = bytes;
  newer.replace(newer.find('1'), 1, "2");
  CHECK_THROWS_WITH_AS(training_state_from_bytes(newer, "c"),
                       doctest::Contains("c: format 2 of a checkpoint is newer than this Plumb, which reads up to 1"),
                       InputError);
  for (const char* nonsense : {"x", "-", "0", "."}) {
    newer.replace(newer.find('\n') - 1, 1, nonsense);
    CHECK_THROWS_WITH_AS(training_state_from_bytes(newer, "c"), doctest::Contains("is no whole number"), InputError);
  }
  CHECK_THROWS_WITH_AS(training_state_from_bytes("{}", "c"), doctest::Contains("is no checkpoint of Plumb"),
                       InputError);
}

TEST_CASE("a checkpoint of another model, optimizer, seed, batch or text is refused with what differs") {
  const RunSpec spec = one_rank(llama_model(1), 2);
  const State saved = train_with_checkpoints(spec, 1, nullptr, 1).states.back();
  const auto refused = [&](RunSpec other, const char* says) {
    other.steps = 2;
    other.resume = saved;
    CHECK_THROWS_WITH_AS(run(other), doctest::Contains(says), InputError);
  };
  refused(one_rank(llama_model(2), 2), "is of another model: in layer 2");
  RunSpec other = spec;
  other.optimizer = Sgd{};
  refused(other, "was made with another optimizer, adamw, and this run's is sgd");
  other = spec;
  other.seed = 7;
  refused(other, "was made with another seed, 1, and this run's is 7");
  other = spec;
  other.microbatch = 1;
  refused(other, "another batch, 4 samples of 7 tokens, and this run's is 2 samples of 7 tokens");
  other = spec;
  other.text.pop_back();
  refused(other, "another text");
  other = spec;
  other.half = HalfFormat::kBf16;
  refused(other, "another precision, fp32, and this run's is bf16");
  other = spec;
  other.steps = 1;
  other.resume = saved;
  CHECK_THROWS_WITH_AS(run(other), "the checkpoint has 1 steps behind it, and 1 are asked for: ask for more",
                       InputError);
}

TEST_CASE("the initial weights are a checkpoint too, from which any layout trains to the same losses") {
  for (const OptimizerSettings& optimizer : kAllOptimizers)
    for (const int zero : {0, 3}) {
      CAPTURE(optimizer.index());
      const bool can_share = optimizer.index() == 0 || zero == 0;
      if (!can_share) continue;
      const RunSpec spec = pipeline_spec(optimizer, zero > 0 ? 2 : 1, zero);
      const CheckpointedTraining none = train_with_checkpoints(spec, 0, nullptr, 5),
                                 whole = train_with_checkpoints(spec, 3);
      CHECK(none.losses.empty());
      REQUIRE(none.states.size() == 1);
      CHECK(none.states[0]->steps == 0);
      const CheckpointedTraining rest = train_with_checkpoints(spec, 3, none.states[0]);
      CHECK(rest.losses == whole.losses);
      CHECK(rest.weights == whole.weights);
    }
}

TEST_CASE("a training that is asked to end does so before the next step on all ranks, with a last checkpoint") {
  RunSpec spec = pipeline_spec(AdamW{});
  const CheckpointedTraining whole = train_with_checkpoints(spec, 5);
  for (const int every : {1, 4}) {
    CAPTURE(every);
    spec.steps = 5;
    spec.resume = nullptr;
    std::atomic<int> asked{0};
    std::vector<State> states;
    const RunResult ended = run(
        spec,
        {.checkpoint_every = every,
         .checkpoint = [&](const TrainingState& state) { states.push_back(std::make_shared<TrainingState>(state)); },
         .ends = [&] { return ++asked >= 5; }});  // asked by two ranks
    REQUIRE_FALSE(states.empty());
    const auto done = static_cast<int>(ended.step_seconds.size());
    CHECK(done > 0);
    CHECK(done < 5);
    CHECK(states.back()->steps == done);
    if (states.size() > 1) CHECK(states[states.size() - 2]->steps < done);
    CHECK(train_with_checkpoints(spec, 5, states.back()).losses ==
          std::vector<double>(whole.losses.begin() + done, whole.losses.end()));
  }
}

}  // namespace plumb::test
