// Products of pipeline schedules, replicas, tensor, sequence, context and expert parallelism, ZeRO, recomputation and
// offloading, against one rank, for a model with dense blocks, experts that are full, and dropout. Each product
// compares the first step's gradients and the losses of 3 steps, and every fourth the losses of 20 steps (2 under
// sanitizers). Every pair of values is run. PLUMB_ALL_LAYOUTS=1 in the environment runs every product, and
// PLUMB_ALL_LAYOUTS=N a random N of them (PLUMB_LAYOUTS_SEED), for their first step only.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/product_forms.h"
#include "tests/executor/small_model.h"
#include "tests/sanitized.h"

namespace plumb::test {
namespace {

// A seed with which no router has two experts so close that rounding decides in 20 steps.
constexpr std::uint64_t kLayoutSeed = 3;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// A step takes several times as long, and a sanitizer finds its errors in the first steps.
constexpr int kLayoutSteps = 2, kFewLayoutSteps = 2;
#else
constexpr int kLayoutSteps = 20, kFewLayoutSteps = 3;
#endif
constexpr int kLayoutMicrobatches = 4, kMostRanks = 4;

/// Returns every synchronous schedule of the catalogue that trains.
const std::vector<CatalogueEntry>& synchronous_entries() {
  static const std::vector<CatalogueEntry> kSchedules = [] {
    std::vector<CatalogueEntry> all;
    for (const CatalogueEntry& entry : catalogue()) {
      if (entry.name == "forward-only" || !entry.unpriced.empty()) continue;
      const ScheduleParameters shape{.ranks = 2, .microbatches = kLayoutMicrobatches, .chunks = entry.chunks};
      if (!is_asynchronous(make_schedule(entry.name, shape))) all.push_back(entry);
    }
    return all;
  }();
  return kSchedules;
}

constexpr std::array kLayoutShardings = {StateSharding{"", 0},
                                         StateSharding{" zero 1", 1},
                                         StateSharding{" zero 2", 2},
                                         StateSharding{" zero 3", 3},
                                         StateSharding{" zero 2 layer by layer", 2, true},
                                         StateSharding{" zero 3 layer by layer", 3, true},
                                         StateSharding{" zero 3 owned by layers", 3, false, ShardBy::kLayer}};

constexpr std::array kLayoutRecomputations = {
    Recomputation{""},
    Recomputation{" recomputed", Recompute::kStage},
    Recomputation{" recomputed selectively", Recompute::kSelective},
    Recomputation{" recomputed every 2 layers", Recompute::kFull},
    Recomputation{" recomputed always", Recompute::kStage, Checkpoint::kAlways},
    Recomputation{" recomputed except last", Recompute::kStage, Checkpoint::kExceptLast}};

// The factors of a product, which has a value of each.
struct LayoutProductFactors {
  enum Number : std::size_t {
    kSchedule,
    kRanks,
    kData,
    kTensor,
    kContext,
    kExpert,
    kZero,
    kRebuild,
    kOffload,
    kSends,
    kFactors
  };
};
using LayoutProduct = std::array<int, LayoutProductFactors::kFactors>;

LayoutProduct layout_counts() {
  return {
      static_cast<int>(synchronous_entries().size()), kMostRanks, 2, 3, 3, 2, static_cast<int>(kLayoutShardings.size()),
      static_cast<int>(kLayoutRecomputations.size()), 3,          2};
}

const CatalogueEntry& schedule_of_layout(const LayoutProduct& product) {
  using enum LayoutProductFactors::Number;
  return synchronous_entries()[static_cast<std::size_t>(product[kSchedule])];
}

const StateSharding& sharding_of_layout(const LayoutProduct& product) {
  using enum LayoutProductFactors::Number;
  return kLayoutShardings[static_cast<std::size_t>(product[kZero])];
}

/// Returns true if the product exists. Experts are spread over replicas or context ranks. State is sharded over these
/// and over copies of stages in a pipeline, which exist on an even number of ranks; the copies of GEMS do not do the
/// same in the same order. BPipe moves its activations itself.
bool layout_exists(const LayoutProduct& product) {
  using enum LayoutProductFactors::Number;
  const CatalogueEntry& schedule = schedule_of_layout(product);
  const bool has_replicas = product[kData] > 0 || product[kContext] > 0;
  const int ranks = product[kRanks] + 1, zero = sharding_of_layout(product).zero;
  return (zero == 0 || has_replicas || schedule.both_ends) && (product[kExpert] == 0 || has_replicas) &&
         (!schedule.both_ends || ranks % 2 == 0) && (product[kOffload] != 2 || schedule.name != "bpipe") &&
         (zero < 2 || schedule.name != "gems");
}

std::vector<LayoutProduct> all_products() {
  using enum LayoutProductFactors::Number;
  const LayoutProduct counts = layout_counts();
  std::vector<LayoutProduct> products;
  LayoutProduct product{};
  while (true) {
    if (layout_exists(product)) products.push_back(product);
    std::size_t factor = 0;
    while (factor < kFactors && ++product[factor] == counts[factor]) product[factor++] = 0;
    if (factor == kFactors) return products;
  }
}

/// Pairs of two factors' values that have been seen, as a flat table, since the greedy cover asks for hundreds of
/// millions.
class SeenPairs {
  static constexpr std::size_t kFactors = LayoutProductFactors::kFactors;

 public:
  explicit SeenPairs(const LayoutProduct& counts) : values_(std::ranges::max(counts)) {
    seen_.resize(kFactors * kFactors * static_cast<std::size_t>(values_ * values_), 0);
  }
  void add(const LayoutProduct& product) {
    for (std::size_t a = 0; a < kFactors; ++a)
      for (std::size_t b = a + 1; b < kFactors; ++b) seen_[place(product, a, b)] = 1;
  }
  int new_ones(const LayoutProduct& product) const {
    int found = 0;
    const char* seen = seen_.data();
    for (std::size_t a = 0; a < kFactors; ++a)
      for (std::size_t b = a + 1; b < kFactors; ++b) found += seen[place(product, a, b)] == 0 ? 1 : 0;
    return found;
  }

 private:
  std::size_t place(const LayoutProduct& product, std::size_t a, std::size_t b) const {
    return ((a * kFactors + b) * static_cast<std::size_t>(values_) + static_cast<std::size_t>(product[a])) *
               static_cast<std::size_t>(values_) +
           static_cast<std::size_t>(product[b]);
  }

  int values_;
  std::vector<char> seen_;
};

/// Returns a greedy cover: of the shuffled products each that has a pair which has not been seen, products with many
/// such pairs first.
std::vector<LayoutProduct> greedy_cover(std::vector<LayoutProduct> all) {
  using enum LayoutProductFactors::Number;
  std::ranges::shuffle(all, std::mt19937_64(1));
  SeenPairs seen(layout_counts());
  std::vector<LayoutProduct> cover;
  for (int wanted = kFactors * (kFactors - 1) / 2; wanted > 0; wanted = wanted > 6 ? wanted * 2 / 3 : wanted - 1) {
    std::vector<LayoutProduct> left;  // a product without a new pair has none later
    for (const LayoutProduct& product : all) {
      const int gain = seen.new_ones(product);
      if (gain < wanted) {
        if (gain > 0) left.push_back(product);
        continue;
      }
      cover.push_back(product);
      seen.add(product);
    }
    all = std::move(left);
  }
  return cover;
}

/// Returns a model with four heads, so that two tensor and two context ranks can share them. Every other block has
/// experts. It has eight layers, for two chunks on each of four ranks.
std::vector<Layer> layout_model() {
  std::vector<Layer> layers = with_dropout(gpt_model(6), 0.1);
  layers[2] = layers[4] = layers[6] = shared_expert_block();
  for (Layer& layer : layers)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->heads = block->kv_heads = 4, block->head_size = 4;
  return layers;
}

RunSpec spec_of_layout(const LayoutProduct& product) {
  using enum LayoutProductFactors::Number;
  const CatalogueEntry& schedule = schedule_of_layout(product);
  const StateSharding& sharding = sharding_of_layout(product);
  const Recomputation& recomputation = kLayoutRecomputations[static_cast<std::size_t>(product[kRebuild])];
  const int data = product[kData] + 1, context = product[kContext] > 0 ? 2 : 1;
  const Schedule order = make_schedule(schedule.name, {.ranks = product[kRanks] + 1,
                                                       .microbatches = kLayoutMicrobatches,
                                                       .chunks = schedule.takes_chunks ? 2 : schedule.chunks,
                                                       .slices = schedule.takes_slices ? 2 : 1});
  LoweringOptions options{.checkpoint = recomputation.checkpoint,
                          .data = {.enabled = data * context > 1, .zero = sharding.zero}};
  if (product[kOffload] == 2) options.offload = 1;
  RunSpec spec = with_forms(spec_of_lowered(layout_model(), lower(order, options), data), sharding, recomputation);
  spec = with_groups(std::move(spec), product[kTensor], product[kContext], product[kExpert]);
  spec.offload_optimizer = product[kOffload] == 1;
  spec.sends = product[kSends] == 1 ? Sends::kRendezvous : Sends::kBuffered;
  spec.sequence = 8;
  spec.seed = kLayoutSeed;
  return spec;
}

std::string layout_text(const LayoutProduct& product) {
  using enum LayoutProductFactors::Number;
  return std::string(schedule_of_layout(product).name) + " pp " + std::to_string(product[kRanks] + 1) + " dp " +
         std::to_string(product[kData] + 1) + std::array{" tp 1", " tp 2", " tp 2 sp"}[product[kTensor]] +
         std::array{" cp 1", " cp 2 ring", " cp 2 ulysses"}[product[kContext]] + " ep " +
         std::to_string(product[kExpert] + 1) + sharding_of_layout(product).name +
         kLayoutRecomputations[static_cast<std::size_t>(product[kRebuild])].name +
         std::array{"", " optimizer offloaded", " activations offloaded"}[product[kOffload]] +
         (product[kSends] == 1 ? " rendezvous" : "");
}

/// Returns one rank's gradients of the first step and losses of `steps` steps. [replicas]
std::map<int, RunResult> of_one_rank(int steps) {
  std::map<int, RunResult> expected;
  for (const int data : {1, 2}) {
    RunSpec alone = one_rank(layout_model(), data * kLayoutMicrobatches);
    alone.sequence = 8;
    alone.seed = kLayoutSeed;
    alone.steps = steps;
    expected[data] = run(alone, {.capture_gradients = true});
  }
  return expected;
}

void check_layout(const LayoutProduct& product, int steps, const std::map<int, RunResult>& expected) {
  CAPTURE(layout_text(product));
  RunSpec spec = spec_of_layout(product);
  spec.steps = steps;
  RunResult result;
  try {
    result = run(spec, {.capture_gradients = true});
  } catch (const std::exception& error) {
    FAIL_CHECK(error.what());
    return;
  }
  const RunResult& alone = expected.at(product[LayoutProductFactors::kData] + 1);
  CHECK(worst_difference(result.gradients.front(), alone.gradients.front()) <= 1e-5);
  for (std::size_t step = 0; step < static_cast<std::size_t>(steps); ++step)
    CHECK(result.losses[step] == doctest::Approx(alone.losses[step]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("products of layouts and schedules give the gradients and losses of one rank") {
  std::vector<LayoutProduct> products = all_products();
  const std::size_t all = products.size();
  const char* wanted = std::getenv("PLUMB_ALL_LAYOUTS");
  const int steps = wanted == nullptr ? kLayoutSteps : 1;
  const std::map<int, RunResult> expected = of_one_rank(steps);
  if (wanted == nullptr) {
    products = greedy_cover(std::move(products));
    if (kIsSanitized) products.resize(products.size() / 3);
  } else if (const std::size_t count = std::strtoull(wanted, nullptr, 10); count > 1) {
    const char* seed = std::getenv("PLUMB_LAYOUTS_SEED");
    std::ranges::shuffle(products, std::mt19937_64(seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10)));
    products.resize(std::min(products.size(), count));
  }
  // An error in a single step shows in the first steps. An error that piles up over steps shows in a few products as
  // well as in all.
  for (std::size_t i = 0; i < products.size(); ++i)
    check_layout(products[i], i % 4 == 0 ? steps : std::min(steps, kFewLayoutSteps), expected);
  MESSAGE(products.size(), " products of ", all);
}

}  // namespace plumb::test
