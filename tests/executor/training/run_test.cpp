#include "executor/training/run.h"

#include <doctest/doctest.h>

#include "executor/transport/transport.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"

namespace plumb::test {

TEST_CASE("naive, GPipe and 1F1B on any number of ranks give the gradients of one rank, bitwise") {
  // Each schedule adds its weight gradients in ascending micro-batch order, as one rank does.
  for (const auto& model : {llama_model(), gpt_model()})
    for (const int microbatches : {1, 2, 5}) {
      const ModelValues expected = gradients_of(one_rank(model, microbatches));
      for (const char* name : {"naive", "gpipe", "1f1b"})
        for (int ranks = 1; ranks <= static_cast<int>(model.size()); ++ranks) {
          CAPTURE(name);
          CAPTURE(ranks);
          CAPTURE(microbatches);
          const Schedule schedule = make_schedule(name, {.ranks = ranks, .microbatches = microbatches});
          CHECK(gradients_of(spec_of(model, schedule)) == expected);
        }
    }
}

TEST_CASE("interleaved 1F1B gives the gradients of one rank") {
  for (const auto& model : {llama_model(), gpt_model()})
    for (const int microbatches : {1, 3, 4, 5}) {
      const ModelValues expected = gradients_of(one_rank(model, microbatches));
      for (const auto& [ranks, chunks] : std::vector<std::pair<int, int>>{{1, 3}, {2, 2}, {2, 3}, {3, 2}}) {
        CAPTURE(ranks);
        CAPTURE(chunks);
        CAPTURE(microbatches);
        const Schedule schedule =
            make_schedule("interleaved", {.ranks = ranks, .microbatches = microbatches, .chunks = chunks});
        CHECK(worst_difference(gradients_of(spec_of(model, schedule)), expected) <= 1e-5);
      }
    }
}

TEST_CASE("the two actions of an overlapped pair begin and end together") {
  const RunSpec spec = spec_of(llama_model(4), make_schedule("dualpipe", {.ranks = 2, .microbatches = 4}));
  const RunResult result = run(spec);
  int pairs = 0;
  for (const RankTimeline& rank : result.timelines.front().ranks)
    for (std::size_t i = 0; i + 1 < rank.spans.size(); ++i) {
      if (!rank.spans[i].action.overlaps_next) continue;
      ++pairs;
      CHECK(rank.spans[i].start == rank.spans[i + 1].start);
      CHECK(rank.spans[i].end == rank.spans[i + 1].end);
      CHECK(rank.spans[i].end > rank.spans[i].start);
    }
  CHECK(pairs > 0);
}

TEST_CASE("every synchronous schedule of the catalogue that trains gives the gradients of one rank") {
  const std::vector<Layer> model = llama_model(6);
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == "forward-only" || !entry.unpriced.empty()) continue;
    for (const auto& [ranks, microbatches] : std::vector<std::pair<int, int>>{{2, 4}, {4, 8}}) {
      CAPTURE(entry.name);
      CAPTURE(ranks);
      const int chunks = entry.takes_chunks ? 8 / ranks : entry.chunks;
      const Schedule schedule =
          make_schedule(entry.name, {.ranks = ranks, .microbatches = microbatches, .chunks = chunks});
      if (is_asynchronous(schedule)) continue;
      const ModelValues expected = gradients_of(one_rank(model, microbatches));
      CHECK(worst_difference(gradients_of(spec_of(model, schedule)), expected) <= 1e-5);
    }
  }
}

TEST_CASE("recomputation as actions of their own changes no number") {
  const std::vector<Layer> model = llama_model();
  const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 4});
  const ModelValues expected = gradients_of(spec_of(model, order));
  for (const Checkpoint checkpoint : {Checkpoint::kAlways, Checkpoint::kExceptLast}) {
    RunSpec spec = spec_of(model, order);
    spec.schedule = lower(order, {.checkpoint = checkpoint});
    spec.rebuild = Recompute::kStage;
    CHECK(gradients_of(spec) == expected);
  }
}

TEST_CASE("two replicas give the gradients of one rank with all their micro-batches") {
  for (const auto& model : {llama_model(), gpt_model()})
    for (const char* name : {"naive", "gpipe", "1f1b", "interleaved"})
      for (const int microbatches : {1, 3}) {
        CAPTURE(name);
        CAPTURE(microbatches);
        const bool chunked = std::string_view(name) == "interleaved";
        const Schedule schedule =
            make_schedule(name, {.ranks = 2, .microbatches = microbatches, .chunks = chunked ? 2 : 1});
        const ModelValues expected = gradients_of(one_rank(model, 2 * microbatches));
        CHECK(worst_difference(gradients_of(spec_of(model, schedule, 2)), expected) <= 1e-5);
      }
}

TEST_CASE("micro-batches whose R a schedule lists are computed again, and the others keep what they need") {
  const Schedule order = make_schedule("gpipe", {.ranks = 2, .microbatches = 4});
  const RunSpec kept = spec_of(llama_model(), order);
  std::vector<std::int64_t> peaks = {run(kept).peak_memory_bytes[0]};
  for (const Checkpoint checkpoint : {Checkpoint::kExceptLast, Checkpoint::kAlways}) {
    RunSpec spec = spec_of_lowered(llama_model(), lower(order, {.checkpoint = checkpoint}));
    spec.rebuild = Recompute::kStage;
    spec.rebuild_which = RebuildWhich::kListed;
    CHECK(gradients_of(spec) == gradients_of(kept));
    peaks.push_back(run(spec).peak_memory_bytes[0]);
  }
  CHECK(peaks[1] < peaks[0]);
  CHECK(peaks[2] <= peaks[1]);
}

TEST_CASE("after 20 steps every synchronous schedule has the loss of one rank") {
  for (const auto& model : {llama_model(2), gpt_model(2)}) {
    RunSpec reference = one_rank(model, 4);
    reference.steps = 20;
    const std::vector<double> expected = run(reference).losses;
    REQUIRE(expected.size() == 20);
    for (const char* name : {"naive", "gpipe", "1f1b", "interleaved"})
      for (const int data : {1, 2}) {
        CAPTURE(name);
        CAPTURE(data);
        const bool chunked = std::string_view(name) == "interleaved";
        RunSpec spec = spec_of(
            model, make_schedule(name, {.ranks = 2, .microbatches = 4 / data, .chunks = chunked ? 2 : 1}), data);
        spec.steps = 20;
        CHECK(run(spec).losses.back() == doctest::Approx(expected.back()).epsilon(1e-4));
      }
  }
}

TEST_CASE("the first loss is the logarithm of the vocabulary and 30 steps take a third off") {
  for (const auto& model : {llama_model(2), gpt_model(2)}) {
    RunSpec spec = spec_of(model, make_schedule("1f1b", {.ranks = 2, .microbatches = 4}));
    spec.optimizer = AdamW{.learning_rate = 1e-2F};
    spec.steps = 30;
    const std::vector<double> losses = run(spec).losses;
    CHECK(losses.front() == doctest::Approx(std::log(double(kVocab))).epsilon(0.02));
    CHECK(losses.back() < 2.0 / 3.0 * losses.front());
  }
}

TEST_CASE("the same specification gives the same losses and weights, bitwise, whatever the threads do") {
  RunSpec spec = spec_of(gpt_model(), make_schedule("1f1b", {.ranks = 3, .microbatches = 3}), 2);
  spec.steps = 5;
  const RunResult first = run(spec, {.capture_weights = true});
  for (int repeat = 0; repeat < 3; ++repeat) {
    const RunResult again = run(spec, {.capture_weights = true});
    CHECK(again.losses == first.losses);
    CHECK(again.weights == first.weights);
  }
}

TEST_CASE("rendezvous sends change no number") {
  RunSpec spec = spec_of(llama_model(), make_schedule("interleaved", {.ranks = 3, .microbatches = 4, .chunks = 2}));
  const ModelValues expected = gradients_of(spec);
  spec.sends = Sends::kRendezvous;
  CHECK(gradients_of(spec) == expected);
}

TEST_CASE("recomputation changes no number and holds less memory") {
  for (const auto& model : {llama_model(), gpt_model()}) {
    RunSpec spec = spec_of(model, make_schedule("gpipe", {.ranks = 2, .microbatches = 6}));
    const RunResult kept = run(spec, {.capture_gradients = true});
    spec.rebuild = Recompute::kStage;
    const RunResult rebuilt = run(spec, {.capture_gradients = true});
    CHECK(rebuilt.gradients == kept.gradients);
    CHECK(rebuilt.losses == kept.losses);
    CHECK(rebuilt.peak_memory_bytes[0] < kept.peak_memory_bytes[0]);
    CHECK(rebuilt.peak_memory_bytes[1] < kept.peak_memory_bytes[1]);
  }
}

TEST_CASE("1F1B holds fewer activations than GPipe, most on the first rank") {
  const auto peaks = [](const char* name) {
    return run(spec_of(llama_model(6), make_schedule(name, {.ranks = 4, .microbatches = 8}))).peak_memory_bytes;
  };
  const auto gpipe = peaks("gpipe"), one_f_one_b = peaks("1f1b");
  for (std::size_t rank = 0; rank < 4; ++rank) CHECK(one_f_one_b[rank] < gpipe[rank]);
}

TEST_CASE("a measured timeline has a span for each action, in issue order, and compute that does not overlap") {
  RunSpec spec = spec_of(llama_model(), make_schedule("1f1b", {.ranks = 3, .microbatches = 4}));
  spec.steps = 2;
  const RunResult result = run(spec);
  REQUIRE(result.timelines.size() == 2);
  for (const Timeline& timeline : result.timelines) {
    CHECK(timeline.source == Timeline::Source::kMeasured);
    REQUIRE(timeline.ranks.size() == 3);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const RankTimeline& measured = timeline.ranks[rank];
      REQUIRE(measured.spans.size() == spec.schedule.ranks[rank].size());
      SimTime free{0};
      for (std::size_t i = 0; i < measured.spans.size(); ++i) {
        const Span& span = measured.spans[i];
        CHECK(span.action == spec.schedule.ranks[rank][i]);
        CHECK(span.end >= span.start);
        if (span.stream != Stream::kCompute) continue;
        CHECK(span.start >= free);
        free = span.end;
      }
      for (std::size_t i = 1; i < measured.memory.size(); ++i)
        CHECK(measured.memory[i].time >= measured.memory[i - 1].time);
    }
  }
}

TEST_CASE("a message is delivered after its producer's end and before its consumer's start") {
  const RunSpec spec = spec_of(llama_model(), make_schedule("gpipe", {.ranks = 2, .microbatches = 3}));
  const Timeline timeline = run(spec).timelines[0];
  const auto span_of = [&](std::size_t rank, const char* token) {
    return *std::ranges::find(timeline.ranks[rank].spans, *parse_action(token), &Span::action);
  };
  for (const auto& [producer, send, receive, consumer] : std::vector<std::array<const char*, 4>>{
           {"0F0", "0SEND_F0", "1RECV_F0", "1F0"}, {"0F2", "0SEND_F2", "1RECV_F2", "1F2"}}) {
    CHECK(span_of(0, send).start >= span_of(0, producer).end);
    CHECK(span_of(1, receive).end >= span_of(0, send).start);
    CHECK(span_of(1, consumer).start >= span_of(1, receive).end);
  }
}

TEST_CASE("wrong specifications are refused with place and remedy") {
  const RunSpec good = one_rank(llama_model(), 2);
  RunSpec spec = good;
  spec.text.resize(7);
  CHECK_THROWS_WITH_AS(
      run(spec), "the text has 7 bytes, and a sequence of 7 tokens needs 8: give a longer text or a shorter sequence",
      InputError);
  spec = good;
  spec.text[3] = 200;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("byte 3 of the text is 200"), InputError);
  spec = good;
  spec.stage_layers[0].pop_back();
  CHECK_THROWS_AS(run(spec), SpecError);
  spec = good;
  std::get<TransformerLayer>(spec.stage_layers[0][1]).kv_heads = 3;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("kv heads must divide heads"), SpecError);
  spec = good;
  spec.grid.expert = 2;
  CHECK_THROWS_AS(run(spec), SpecError);
  spec = good;
  spec.steps = -1;
  CHECK_THROWS_AS(run(spec), SpecError);
  spec = spec_of(gpt_model(), make_schedule("1f1b", {.ranks = 2, .microbatches = 2}));
  spec.sequence = 17;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("16 positions"), SpecError);
}

}  // namespace plumb::test
