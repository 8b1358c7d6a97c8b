// Activations and weights that move, and sequences in slices: no number changes, and memory falls as predicted.

#include <doctest/doctest.h>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "schedules/liveness.h"
#include "simulator/simulate.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

int moves_in(const Schedule& schedule) {
  int moves = 0;
  for (const auto& actions : schedule.ranks)
    for (const Action& action : actions) moves += takes_away(action.op) ? 1 : 0;
  return moves;
}

bool has_copied_stages(const Schedule& schedule) {
  const std::vector<bool> copied = stages_with_copies(schedule);
  return std::ranges::find(copied, true) != copied.end();
}

/// Returns every synchronous schedule of the catalogue that trains, for 4 ranks and 8 micro-batches.
std::vector<Schedule> synchronous_schedules() {
  std::vector<Schedule> schedules;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == "forward-only" || !entry.unpriced.empty()) continue;
    Schedule schedule = make_schedule(entry.name, {.ranks = 4,
                                                   .microbatches = 8,
                                                   .chunks = entry.takes_chunks ? 2 : entry.chunks,
                                                   .slices = entry.takes_slices ? 3 : 1});
    if (!is_asynchronous(schedule)) schedules.push_back(std::move(schedule));
  }
  return schedules;
}

constexpr LayerWork kWork{.microbatch = 2, .sequence = 7};

/// Returns the bytes that a rank with blocks only holds for one micro-batch from forward to backward.
std::int64_t activation_bytes(const std::vector<Layer>& layers) {
  std::int64_t elements = 0;
  for (const Layer& layer : layers)
    for (const SavedTensor& tensor : saved_tensors(layer_program(layer, kWork)))
      if (!tensor.from_input_grad) elements += tensor.elements;
  return 4 * elements;
}

/// Returns by how much two peaks may differ besides, if one is in a forward and the other in a backward: by
/// temporaries, and by the message that only one of them has.
std::int64_t temporary_bytes(const Layer& block) {
  const LayerProgram program = layer_program(block, kWork);
  std::int64_t bytes = 0;
  for (const Pass pass : {Pass::kForward, Pass::kInputGrad, Pass::kWeightGrad})
    bytes = std::max(bytes, workspace_bytes(program, pass, 4));
  return bytes + 4 * output_elements(block, kWork);
}

std::vector<int> predicted_activations(const Schedule& lowered) {
  return simulate(lowered, chunk_cost_table(static_cast<int>(lowered.stages.size()), {})).peak_activations;
}

}  // namespace

TEST_CASE("sequences in slices give the gradients of one rank, whatever the number of slices") {
  for (const auto& model : {llama_model(), gpt_model()})
    for (const int ranks : {1, 2, 3})
      for (const int slices : {1, 2, 3, 7}) {
        CAPTURE(ranks);
        CAPTURE(slices);
        const Schedule order = make_schedule("seq1f1b", {.ranks = ranks, .microbatches = 3, .slices = slices});
        const RunSpec spec = spec_of(model, order);
        CHECK(worst_difference(gradients_of(spec), gradients_of(one_rank(model, 3))) <= 1e-5);
      }
}

TEST_CASE("SlimPipe gives the gradients of one rank, also where p does not divide its slices") {
  const std::vector<Layer> model = llama_model(6);
  for (const int ranks : {2, 3})
    for (const int chunks : {1, 2})
      for (const int slices : {2, 4, 5}) {
        INFO("ranks=", ranks, " chunks=", chunks, " slices=", slices);
        const Schedule order =
            make_schedule("slimpipe", {.ranks = ranks, .microbatches = 3, .chunks = chunks, .slices = slices});
        CHECK(worst_difference(gradients_of(spec_of(model, order)), gradients_of(one_rank(model, 3))) <= 1e-5);
      }
}

TEST_CASE("slices see a window that reaches back over several of them") {
  std::vector<Layer> model = llama_model(2);
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->window = 4;
  const Schedule order = make_schedule("seq1f1b", {.ranks = 2, .microbatches = 2, .slices = 5});
  CHECK(worst_difference(gradients_of(spec_of(model, order)), gradients_of(one_rank(model, 2))) <= 1e-5);
}

TEST_CASE("slices train to the same loss, with recomputation too, and steady steps take no new memory") {
  const std::vector<Layer> model = gpt_model(2);
  RunSpec whole = one_rank(model, 4);
  whole.steps = 10;
  const std::vector<double> expected = run(whole).losses;
  RunSpec spec = spec_of(model, make_schedule("seq1f1b", {.ranks = 2, .microbatches = 4, .slices = 3}));
  spec.steps = 10;
  for (const Recompute rebuild : {Recompute::kNone, Recompute::kStage}) {
    spec.rebuild = rebuild;
    CHECK(run(spec).losses.back() == doctest::Approx(expected.back()).epsilon(1e-4));
  }
}

TEST_CASE("more slices than tokens are refused") {
  const Schedule order = make_schedule("seq1f1b", {.ranks = 2, .microbatches = 2, .slices = 8});
  CHECK_THROWS_WITH_AS(run(spec_of(llama_model(), order)),
                       "sequences of 7 tokens cannot be cut into 8 slices: give longer ones", SpecError);
}

TEST_CASE("every synchronous schedule offloads without changing a number") {
  const std::vector<Layer> model = llama_model(6);
  for (const Schedule& order : synchronous_schedules()) {
    if (order.name == "bpipe") continue;  // BPipe moves activations itself
    const ModelValues expected = gradients_of(spec_of(model, order));
    for (const int kept : {0, 2}) {
      CAPTURE(order.name);
      CAPTURE(kept);
      CHECK(gradients_of(spec_of_lowered(model, lower(order, {.offload = kept}))) == expected);
    }
    CAPTURE(order.name);
    CHECK(gradients_of(spec_of_lowered(model, lower(order, {.offload_stages = 1}))) == expected);
  }
}

TEST_CASE("every synchronous schedule without copies trains with sharded parameters in groups of one") {
  const std::vector<Layer> model = llama_model(6);
  for (const Schedule& order : synchronous_schedules()) {
    if (has_copied_stages(order)) continue;
    const ModelValues expected = gradients_of(spec_of(model, order));
    for (const Sharding& sharding : {Sharding{}, Sharding{.gathered_stages = 1, .prefetch = true}}) {
      CAPTURE(order.name);
      const Schedule sharded = lower(order, {.data = {.enabled = true, .zero = 3, .sharding = sharding}});
      CHECK(gradients_of(spec_of_lowered(model, sharded)) == expected);
    }
  }
}

TEST_CASE("BPipe gives the gradients of one rank, bitwise, though activations visit other ranks") {
  for (const auto& [ranks, model] :
       std::vector<std::pair<int, std::vector<Layer>>>{{4, llama_model()}, {6, gpt_model()}}) {
    const Schedule order = make_schedule("bpipe", {.ranks = ranks, .microbatches = 8});
    REQUIRE(moves_in(order) > 0);
    for (const Sends sends : {Sends::kBuffered, Sends::kRendezvous})
      for (const Recompute rebuild : {Recompute::kNone, Recompute::kStage}) {
        RunSpec spec = spec_of(model, order);
        spec.sends = sends;
        spec.rebuild = rebuild;
        CHECK(gradients_of(spec) == gradients_of(one_rank(model, 8)));
      }
  }
}

TEST_CASE("replicas have partners of their own") {
  const std::vector<Layer> model = llama_model();
  const Schedule order = make_schedule("bpipe", {.ranks = 4, .microbatches = 6});
  CHECK(worst_difference(gradients_of(spec_of(model, order, 2)), gradients_of(one_rank(model, 12))) <= 1e-5);
}

TEST_CASE("offloading takes from the rank's memory what the prediction says, and puts it into the host's") {
  const std::vector<Layer> model = llama_model(10);
  const Schedule order = make_schedule("gpipe", {.ranks = 3, .microbatches = 9});
  constexpr std::size_t kMiddle = 1;  // a rank with blocks only
  struct Peak {
    int activations;  // predicted number
    std::int64_t bytes;
  };
  const RunSpec plain = spec_of(model, order);
  const RunResult all = run(plain);
  CHECK(all.peak_host_bytes == std::vector<std::int64_t>{0, 0, 0});
  const std::int64_t bytes = activation_bytes(plain.stage_layers[kMiddle]);
  std::vector<Peak> peaks;
  for (const int kept : {2, 4, 6}) {
    CAPTURE(kept);
    const RunSpec spec = spec_of_lowered(model, lower(order, {.offload = kept}));
    const RunResult result = run(spec);
    peaks.push_back({predicted_activations(spec.schedule)[kMiddle], result.peak_memory_bytes[kMiddle]});
    CHECK(peaks.back().activations == kept + 1);
    // The rank keeps `kept` activations at the end of the forwards; the others are away, and none has come back.
    CHECK(result.peak_host_bytes[kMiddle] == (9 - kept) * bytes);
    for (std::size_t rank = 0; rank < 3; ++rank) CHECK(result.peak_memory_bytes[rank] < all.peak_memory_bytes[rank]);
  }
  for (std::size_t i = 1; i < peaks.size(); ++i)
    CHECK(peaks[i].bytes - peaks[0].bytes == (peaks[i].activations - peaks[0].activations) * bytes);
  // The peak is in the first backward without offloading, and in the last forward with it.
  const std::int64_t fewer = predicted_activations(plain.schedule)[kMiddle] - peaks[0].activations;
  CHECK(std::abs(all.peak_memory_bytes[kMiddle] - peaks[0].bytes - fewer * bytes) <= temporary_bytes(llama_block()));
}

TEST_CASE("BPipe's ranks hold no more than predicted, and the first one far less than under 1F1B") {
  constexpr int kRanks = 6;
  const std::vector<Layer> model = llama_model(16);
  const RunSpec bpipe = spec_of(model, make_schedule("bpipe", {.ranks = kRanks, .microbatches = 12}));
  const RunSpec plain = spec_of(model, make_schedule("1f1b", {.ranks = kRanks, .microbatches = 12}));
  const RunResult moved = run(bpipe), stayed = run(plain);
  const std::vector<int> predicted = predicted_activations(bpipe.schedule);
  const std::vector<int> before = predicted_activations(plain.schedule);
  const std::vector<RankLiveness> bound = liveness(bpipe.schedule);
  int evicting = 0;
  for (std::size_t rank = 1; rank + 1 < kRanks; ++rank) {  // ranks with blocks only
    CAPTURE(rank);
    const std::int64_t bytes = activation_bytes(bpipe.stage_layers[rank]);
    const std::int64_t change = moved.peak_memory_bytes[rank] - stayed.peak_memory_bytes[rank];
    if (predicted[rank] < before[rank]) {  // it evicts: its own list alone decides
      ++evicting;
      CHECK(std::abs(change - (predicted[rank] - before[rank]) * bytes) <= temporary_bytes(llama_block()));
    } else {  // the number of guests at once depends on how the ranks drift
      CHECK(change <= (bound[rank].peak - before[rank]) * bytes + temporary_bytes(llama_block()));
    }
  }
  CHECK(evicting > 0);
  CHECK(moved.peak_memory_bytes[0] < stayed.peak_memory_bytes[0]);
}

}  // namespace plumb::test
