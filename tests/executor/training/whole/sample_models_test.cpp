// Networks of images and of vectors in every schedule compute the gradients of one rank.

#include <doctest/doctest.h>

#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

constexpr int kSampleMicrobatches = 4;

/// Returns every schedule that trains synchronously and does not cut sequences, with two ranks.
std::vector<Schedule> two_rank_schedules() {
  std::vector<Schedule> all;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == "forward-only" || entry.takes_slices || !entry.unpriced.empty()) continue;
    const int chunks = entry.takes_chunks ? 2 : entry.chunks;
    Schedule schedule = make_schedule(entry.name, {.ranks = 2, .microbatches = kSampleMicrobatches, .chunks = chunks});
    if (!is_asynchronous(schedule)) all.push_back(std::move(schedule));
  }
  return all;
}

Schedule named_schedule(const std::string& name, int ranks) {
  return make_schedule(name, {.ranks = ranks, .microbatches = kSampleMicrobatches});
}

}  // namespace

TEST_CASE("every synchronous schedule gives images and vectors the gradients of one rank, dropout included") {
  for (const std::vector<Layer>& model : {cnn_model(), mlp_model()}) {
    const ModelValues expected = gradients_of(one_rank(model, kSampleMicrobatches));
    for (const Schedule& schedule : two_rank_schedules()) {
      CAPTURE(schedule.name);
      CHECK(worst_difference(gradients_of(spec_of(model, schedule)), expected) <= 1e-5);
    }
  }
}

TEST_CASE("replicas share the samples of a step and give the gradients of one rank") {
  for (const std::vector<Layer>& model : {cnn_model(), mlp_model()})
    CHECK(worst_difference(gradients_of(spec_of(model, named_schedule("1f1b", 2), 2)),
                           gradients_of(one_rank(model, 2 * kSampleMicrobatches))) <= 1e-5);
}

TEST_CASE("twenty steps of a pipeline have the losses of one rank, and they fall") {
  for (const std::vector<Layer>& model : {cnn_model(), mlp_model()}) {
    RunSpec alone = one_rank(model, kSampleMicrobatches), piped = spec_of(model, named_schedule("zb-h1", 3));
    for (RunSpec* spec : {&alone, &piped}) {
      spec->steps = 20;
      spec->microbatch = 5;
      std::get<AdamW>(spec->optimizer).learning_rate = 2e-2F;
    }
    const std::vector<double> expected = run(alone).losses, losses = run(piped).losses;
    for (std::size_t step = 0; step < losses.size(); ++step)
      CHECK(losses[step] == doctest::Approx(expected[step]).epsilon(1e-4));
    double early = 0, late = 0;
    for (std::size_t step = 0; step < 5; ++step) {
      early += losses[step];
      late += losses[15 + step];
    }
    CHECK(late < 0.95 * early);
  }
}

TEST_CASE("a stage that is computed again draws the same dropout") {
  for (const std::vector<Layer>& model : {cnn_model(), mlp_model()}) {
    RunSpec again = spec_of(model, named_schedule("1f1b", 3));
    again.rebuild = Recompute::kStage;
    CHECK(gradients_of(again) == gradients_of(spec_of(model, named_schedule("1f1b", 3))));
  }
}

TEST_CASE("a stage of the loss alone is computed again from what it was given") {
  for (const std::vector<Layer>& model : {cnn_model(), mlp_model()}) {
    const Schedule order = make_schedule("interleaved", {.ranks = 3, .microbatches = 6, .chunks = 2});
    RunSpec again = spec_of(model, order);
    again.rebuild = Recompute::kStage;
    CHECK(run(again).losses == run(spec_of(model, order)).losses);
  }
}

}  // namespace plumb::test
