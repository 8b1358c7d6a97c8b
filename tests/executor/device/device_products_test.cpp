// Products of everything that a device takes - schedules, unequal meshes, replicas, tensor, sequence and context
// parallelism, ZeRO, recomputation, offloading, optimizers, 16 bits, clipping, models - beside the cpu backend: losses
// and the first step's gradients; the same bits in a random order of what streams and events allow, and behind a
// checkpoint; the exchanges of every rank those of NCCL's planned list. Of products that have every pair of values
// which the device takes together, the first few are run; with PLUMB_DEVICE_PRODUCTS=pairs in the environment all of
// them, with PLUMB_DEVICE_PRODUCTS=N so many random products (PLUMB_LAYOUTS_SEED).

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "executor/run.h"
#include "executor/training/training_plan.h"
#include "executor/training/training_state.h"
#include "schedules/error.h"
#include "tests/executor/device/host_run.h"
#include "tests/executor/device/noting_machine.h"
#include "tests/executor/product_pairs.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

constexpr int kMicrobatches = 4, kSteps = 3, kStop = 1;
constexpr std::size_t kProductsInPassing = 20;

struct Sharding {
  const char* name = "";
  int zero = 0;
  bool layerwise = false;
  ShardBy by = ShardBy::kElement;
};
constexpr std::array kShardings = {Sharding{},
                                   Sharding{"zero 1", 1},
                                   Sharding{"zero 2", 2},
                                   Sharding{"zero 3", 3},
                                   Sharding{"zero 2 layer by layer", 2, true},
                                   Sharding{"zero 3 layer by layer", 3, true},
                                   Sharding{"zero 3 layer by layer, owned by layers", 3, true, ShardBy::kLayer},
                                   Sharding{"zero 2 owned by layers", 2, false, ShardBy::kLayer}};

struct Recomputation {
  const char* name = "";
  Rebuild rebuild = Rebuild::kNothing;
  Checkpoint checkpoint = Checkpoint::kNever;
};
constexpr std::array kRecomputations = {
    Recomputation{},
    Recomputation{"recomputed", Rebuild::kStage},
    Recomputation{"selectively", Rebuild::kSelective},
    Recomputation{"every 2 layers", Rebuild::kLayers},
    Recomputation{"by R", Rebuild::kStage, Checkpoint::kAlways},
    Recomputation{"every 2 layers by R", Rebuild::kLayers, Checkpoint::kAlways},
    Recomputation{"except last", Rebuild::kStage, Checkpoint::kExceptLast},
    Recomputation{"selectively except last", Rebuild::kSelective, Checkpoint::kExceptLast}};

/// Of the pipeline's ranks by turns; data 0: all are alike.
struct Meshes {
  const char* name = "";
  StageMesh even, odd;
  Resharding resharding = Resharding::kAllGather;
};
constexpr std::array kMeshes = {Meshes{"", {.data = 0}, {.data = 0}},
                                Meshes{"tp2,dp2 direct", {.tensor = 2}, {.data = 2}, Resharding::kDirect},
                                Meshes{"dp2,tp2 gathered", {.data = 2}, {.tensor = 2}, Resharding::kAllGather},
                                Meshes{"dp1,dp2tp2 broadcast", {}, {.data = 2, .tensor = 2}, Resharding::kBroadcast}};

constexpr std::array kModels = {"tied gpt with dropout", "llama", "mixtures of experts", "images", "mlp"};
constexpr std::array kOptimizers = {"adamw", "8-bit adamw", "sgd", "lion", "adafactor"};

// A product is a value of each of these.
enum Factor : std::size_t {
  kSchedule,
  kRanks,
  kData,
  kTensor,
  kContext,
  kMesh,
  kZero,
  kRebuild,
  kOffload,
  kOptimizer,
  kStored,
  kClip,
  kModel,
  kBuckets,
  kSlices,
  kExpert,
  kFactors
};
using Product = std::array<int, kFactors>;

/// Every schedule of the catalogue that trains, asynchronous ones, too.
const std::vector<CatalogueEntry>& schedules() {
  static const std::vector<CatalogueEntry> kSchedules = [] {
    std::vector<CatalogueEntry> all;
    for (const CatalogueEntry& entry : catalogue())
      if (entry.name != "forward-only") all.push_back(entry);
    return all;
  }();
  return kSchedules;
}

Product counts() {
  return {static_cast<int>(schedules().size()),
          4,
          2,
          3,
          3,
          static_cast<int>(kMeshes.size()),
          static_cast<int>(kShardings.size()),
          static_cast<int>(kRecomputations.size()),
          3,
          static_cast<int>(kOptimizers.size()),
          3,
          2,
          static_cast<int>(kModels.size()),
          2,
          2,
          2};
}

template <class Of>
const typename Of::value_type& value(const Of& all, const Product& product, Factor factor) {
  return all[static_cast<std::size_t>(product[factor])];
}

std::string to_text(const Product& product) {
  return std::string(value(schedules(), product, kSchedule).name) + ", pp " + std::to_string(product[kRanks] + 1) +
         ", dp " + std::to_string(product[kData] + 1) + std::array{"", ", tp 2", ", tp 2 sp"}[product[kTensor]] +
         std::array{"", ", cp 2 ring", ", cp 2 ulysses"}[product[kContext]] + ", " +
         value(kMeshes, product, kMesh).name + ", " + value(kShardings, product, kZero).name + ", " +
         value(kRecomputations, product, kRebuild).name +
         std::array{"", ", optimizer offloaded", ", activations offloaded"}[product[kOffload]] + ", " +
         value(kOptimizers, product, kOptimizer) + std::array{", fp32", ", bf16", ", fp16"}[product[kStored]] +
         (product[kClip] != 0 ? ", clipped, " : ", ") + value(kModels, product, kModel) +
         (product[kBuckets] != 0 ? ", 2 buckets" : "") + (product[kSlices] != 0 ? ", 2 slices" : "") +
         (product[kExpert] != 0 ? ", ep 2" : "");
}

/// Eight layers, for two chunks on each of four ranks; heads that two tensor and two context ranks can share.
std::vector<Layer> model_of(int number) {
  if (number == 3) return cnn_model();
  if (number == 4) return mlp_model();
  std::vector<Layer> layers = number == 0 ? with_dropout(gpt_model(6), 0.1) : llama_model(6);
  if (number == 2) layers[2] = layers[5] = mixtral_block();
  for (Layer& layer : layers)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) {
      block->heads = block->kv_heads = 4;
      block->head_size = 4;
    }
  return layers;
}

OptimizerSettings optimizer_of(int number) {
  switch (number) {
    case 0:
      return smooth_adamw();
    case 1:
      return AdamW8Bit{.adamw = smooth_adamw()};
    case 2:
      return Sgd{.learning_rate = 0.01F, .momentum = 0.9F};
    case 3:
      return Lion{.learning_rate = 1e-4F};
    default:
      return Adafactor{};
  }
}

/// Throws SpecError or ScheduleError where one of the planes refuses.
RunSpec spec_of(const Product& product) {
  const CatalogueEntry& schedule = value(schedules(), product, kSchedule);
  const Sharding& sharding = value(kShardings, product, kZero);
  const Recomputation& recomputation = value(kRecomputations, product, kRebuild);
  const Meshes& meshes = value(kMeshes, product, kMesh);
  const int ranks = product[kRanks] + 1, data = product[kData] + 1, context = product[kContext] > 0 ? 2 : 1;
  const int chunks = schedule.takes_chunks && schedule.chunks == 1 ? 2 : schedule.chunks;
  const Schedule order = make_schedule(
      schedule.name, {.ranks = ranks, .microbatches = kMicrobatches, .chunks = chunks, .slices = product[kSlices] + 1});
  const bool has_copies = data * context > 1 || meshes.even.data > 0;
  LoweringOptions options{.checkpoint = recomputation.checkpoint,
                          .data = {.enabled = has_copies, .zero = sharding.zero}};
  if (product[kBuckets] != 0) options.data.buckets.assign(order.stages.size(), 2);
  if (product[kOffload] == 2) options.offload = 1;
  RunSpec spec = spec_of_lowered(model_of(product[kModel]), lower(order, options), data);
  spec.zero = sharding.zero;
  spec.layerwise = sharding.layerwise;
  spec.shard_by = sharding.by;
  spec.grid.tensor = product[kTensor] > 0 ? 2 : 1;
  spec.sequence_parallel = product[kTensor] == 2;
  spec.grid.context = context;
  spec.grid.expert = product[kExpert] + 1;
  spec.context_attention = product[kContext] == 2 ? ContextAttention::kUlysses : ContextAttention::kRing;
  if (meshes.even.data > 0)
    for (int rank = 0; rank < ranks; ++rank) {
      StageMesh mesh = rank % 2 == 0 ? meshes.even : meshes.odd;
      mesh.data *= data;
      spec.meshes.push_back(mesh);
    }
  spec.resharding = meshes.resharding;
  spec.rebuild = recomputation.rebuild;
  spec.rebuild_layers = recomputation.rebuild == Rebuild::kLayers ? 2 : 1;
  if (recomputation.checkpoint == Checkpoint::kExceptLast) spec.rebuild_which = RebuildWhich::kListed;
  spec.offload_optimizer = product[kOffload] == 1;
  spec.optimizer = optimizer_of(product[kOptimizer]);
  if (product[kStored] > 0) spec.half = product[kStored] == 1 ? HalfFormat::kBf16 : HalfFormat::kFp16;
  spec.clip_norm = product[kClip] != 0 ? 0.5 : 0;
  spec.sequence = reads_samples(model_of(product[kModel])) ? 1 : 8;
  spec.steps = kSteps;
  return spec;
}

/// Whether the device takes it; values that would say nothing do not make another product.
bool exists(const Product& product) {
  const bool has_meshes = product[kMesh] > 0;
  if (has_meshes && (product[kTensor] == 1 || product[kRanks] == 0)) return false;  // 2: rows are divided
  if (product[kExpert] != 0 && product[kModel] != 2) return false;
  try {
    const RunSpec spec = spec_of(product);
    require_device_runnable(spec);
    plan_training(spec);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

Product random_product(std::mt19937_64& random) {
  Product product{};
  const Product most = counts();
  for (std::size_t factor = 0; factor < kFactors; ++factor)
    product[factor] = static_cast<int>(random() % static_cast<std::uint64_t>(most[factor]));
  return product;
}

std::vector<FactorPair> all_pairs() {
  const Product most = counts();
  std::vector<FactorPair> pairs;
  for (std::size_t a = 0; a < kFactors; ++a)
    for (std::size_t b = a + 1; b < kFactors; ++b)
      for (int x = 0; x < most[a]; ++x)
        for (int y = 0; y < most[b]; ++y) pairs.push_back({static_cast<int>(a), static_cast<int>(b), x, y});
  return pairs;
}

/// FactorPair by pair, in a random order: of random products that have it and that the device takes, the one with most
/// pairs that are missing; at most so many.
std::vector<Product> pairwise_cover(std::size_t most_products) {
  constexpr int kTrials = 400, kCandidates = 8;
  std::mt19937_64 random(1);
  std::vector<FactorPair> pairs = all_pairs();
  std::ranges::shuffle(pairs, random);
  std::set<FactorPair> missing(pairs.begin(), pairs.end());
  std::vector<Product> cover;
  for (const FactorPair& pair : pairs) {
    if (!missing.contains(pair)) continue;
    std::optional<Product> best;
    std::ptrdiff_t best_gain = 0;
    for (int trial = 0, found = 0; trial < kTrials && found < kCandidates; ++trial) {
      Product product = random_product(random);
      product[static_cast<std::size_t>(pair[0])] = pair[2];
      product[static_cast<std::size_t>(pair[1])] = pair[3];
      if (!exists(product)) continue;
      ++found;
      const std::vector<FactorPair> own = pairs_of(product);
      const std::ptrdiff_t gain =
          std::ranges::count_if(own, [&](const FactorPair& of) { return missing.contains(of); });
      if (gain > best_gain) best = product, best_gain = gain;
    }
    if (!best) continue;  // the two exclude each other
    for (const FactorPair& own : pairs_of(*best)) missing.erase(own);
    cover.push_back(*best);
    if (cover.size() == most_products) break;
  }
  return cover;
}

std::vector<Product> random_products(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Product> products;
  while (products.size() < count)
    if (const Product product = random_product(random); exists(product)) products.push_back(product);
  return products;
}

/// The device's result behind kStop steps and a checkpoint.
RunResult stopped_and_resumed(RunSpec spec) {
  std::string bytes;
  spec.steps = kStop;
  HostMachine machine(spec.half);
  run_device(spec, machine,
             {.checkpoint_every = 5, .checkpoint = [&](const TrainingState& state) { bytes = to_bytes(state); }});
  spec.steps = kSteps;
  spec.resume = std::make_shared<const TrainingState>(training_state_from_bytes(bytes, "the checkpoint"));
  return on_host(spec);
}

/// Between ranks of one device alone.
bool evicts(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& action) { return action.op == Op::kEvict; });
  });
}

/// In 16 bits an odd number of elements of a stage, or of its experts, fills a word in one of the backends.
void check_bytes(const std::vector<ParameterBytes>& device, const std::vector<ParameterBytes>& cpu) {
  REQUIRE(device.size() == cpu.size());
  for (std::size_t rank = 0; rank < cpu.size(); ++rank) {
    CHECK(std::abs(device[rank].weights - cpu[rank].weights) <= 8);
    CHECK(device[rank].gradients == cpu[rank].gradients);
    CHECK(device[rank].optimizer == cpu[rank].optimizer);
  }
}

void check(const Product& product) {
  const RunSpec spec = spec_of(product);
  const RunResult cpu = run(spec, {.capture_gradients = true}), device = on_host(spec);
  const bool is_exact = !spec.half;
  REQUIRE(device.losses.size() == cpu.losses.size());
  CHECK(device.losses.front() == doctest::Approx(cpu.losses.front()).epsilon(is_exact ? 1e-6 : 1e-2));
  for (std::size_t step = 1; step < cpu.losses.size(); ++step)
    CHECK(device.losses[step] == doctest::Approx(cpu.losses[step]).epsilon(is_exact ? 1e-3 : 2e-2));
  CHECK(device.loss_scales == cpu.loss_scales);
  CHECK(device.skipped_steps == cpu.skipped_steps);
  if (is_exact) CHECK(worst_difference(device.gradients.front(), cpu.gradients.front()) < 2e-5);
  check_bytes(device.parameter_bytes, cpu.parameter_bytes);
  const RunResult other = on_host(spec, 3);
  CHECK(other.losses == device.losses);
  CHECK(other.weights == device.weights);
  const RunResult rest = stopped_and_resumed(spec);
  CHECK(rest.weights == device.weights);
  if (!evicts(spec.schedule)) check_lists(spec);
}

}  // namespace

TEST_CASE("products of all that a device takes train as the CPU's, in every order, and exchange NCCL's planned list") {
  const char* const wanted = std::getenv("PLUMB_DEVICE_PRODUCTS");
  const char* const seed = std::getenv("PLUMB_LAYOUTS_SEED");
  std::vector<Product> products;
  if (wanted == nullptr)
    products = pairwise_cover(kProductsInPassing);
  else if (std::string_view(wanted) == "pairs")
    products = pairwise_cover(SIZE_MAX);
  else
    products =
        random_products(std::strtoull(wanted, nullptr, 10), seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10));
  for (const Product& product : products) {
    CAPTURE(to_text(product));
    try {
      check(product);
    } catch (const std::exception& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
  MESSAGE(products.size(), " products");
}

}  // namespace plumb::test
