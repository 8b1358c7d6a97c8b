// Products of everything that a device takes - schedules, unequal meshes, replicas, tensor, sequence and context
// parallelism, ZeRO, recomputation, offloading, optimizers, 16 bits, clipping, models - beside the cpu backend: losses
// and the first step's gradients; the same bits in a random order of what streams and events allow, and behind a
// checkpoint; the exchanges of every rank those of the cpu backend. The products have every pair of values that the
// device takes together, and the first few of them are run; PLUMB_DEVICE_PRODUCTS=pairs runs all of them, and
// PLUMB_DEVICE_PRODUCTS=N so many random products (PLUMB_LAYOUTS_SEED).

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

#include "executor/parameters/training_state.h"
#include "executor/training/run.h"
#include "executor/training/training_plan.h"
#include "schedules/error.h"
#include "tests/executor/product_forms.h"
#include "tests/executor/product_pairs.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/device/host_run.h"
#include "tests/executor/transport/nccl/order/exchange_lists.h"
#include "tests/sanitized.h"

namespace plumb::test {
namespace {

constexpr int kDeviceMicrobatches = 4, kDeviceSteps = 3, kDeviceStop = 1;
constexpr std::size_t kProductsInPassing = 20;

constexpr std::array kDeviceShardings = {
    StateSharding{},
    StateSharding{"zero 1", 1},
    StateSharding{"zero 2", 2},
    StateSharding{"zero 3", 3},
    StateSharding{"zero 2 layer by layer", 2, true},
    StateSharding{"zero 3 layer by layer", 3, true},
    StateSharding{"zero 3 layer by layer, owned by layers", 3, true, ShardBy::kLayer},
    StateSharding{"zero 2 owned by layers", 2, false, ShardBy::kLayer}};

constexpr std::array kDeviceRecomputations = {
    Recomputation{},
    Recomputation{"recomputed", Recompute::kStage},
    Recomputation{"selectively", Recompute::kSelective},
    Recomputation{"every 2 layers", Recompute::kFull},
    Recomputation{"by R", Recompute::kStage, Checkpoint::kAlways},
    Recomputation{"every 2 layers by R", Recompute::kFull, Checkpoint::kAlways},
    Recomputation{"except last", Recompute::kStage, Checkpoint::kExceptLast},
    Recomputation{"selectively except last", Recompute::kSelective, Checkpoint::kExceptLast}};

/// Meshes of the pipeline's ranks by turns; data 0: all are alike.
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
struct DeviceProductFactors {
  enum Number : std::size_t {
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
};
using DeviceProduct = std::array<int, DeviceProductFactors::kFactors>;

/// Every schedule of the catalogue that trains, asynchronous ones, too.
const std::vector<CatalogueEntry>& trained_entries() {
  static const std::vector<CatalogueEntry> kSchedules = [] {
    std::vector<CatalogueEntry> all;
    for (const CatalogueEntry& entry : catalogue())
      if (entry.name != "forward-only" && entry.unpriced.empty()) all.push_back(entry);
    return all;
  }();
  return kSchedules;
}

DeviceProduct device_counts() {
  return {static_cast<int>(trained_entries().size()),
          4,
          2,
          3,
          3,
          static_cast<int>(kMeshes.size()),
          static_cast<int>(kDeviceShardings.size()),
          static_cast<int>(kDeviceRecomputations.size()),
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
const typename Of::value_type& value_of_factor(const Of& all, const DeviceProduct& product,
                                               DeviceProductFactors::Number factor) {
  return all[static_cast<std::size_t>(product[factor])];
}

std::string device_text(const DeviceProduct& product) {
  using enum DeviceProductFactors::Number;
  return std::string(value_of_factor(trained_entries(), product, kSchedule).name) + ", pp " +
         std::to_string(product[kRanks] + 1) + ", dp " + std::to_string(product[kData] + 1) +
         std::array{"", ", tp 2", ", tp 2 sp"}[product[kTensor]] +
         std::array{"", ", cp 2 ring", ", cp 2 ulysses"}[product[kContext]] + ", " +
         value_of_factor(kMeshes, product, kMesh).name + ", " + value_of_factor(kDeviceShardings, product, kZero).name +
         ", " + value_of_factor(kDeviceRecomputations, product, kRebuild).name +
         std::array{"", ", optimizer offloaded", ", activations offloaded"}[product[kOffload]] + ", " +
         value_of_factor(kOptimizers, product, kOptimizer) +
         std::array{", fp32", ", bf16", ", fp16"}[product[kStored]] + (product[kClip] != 0 ? ", clipped, " : ", ") +
         value_of_factor(kModels, product, kModel) + (product[kBuckets] != 0 ? ", 2 buckets" : "") +
         (product[kSlices] != 0 ? ", 2 slices" : "") + (product[kExpert] != 0 ? ", ep 2" : "");
}

/// Eight layers, for two chunks on each of four ranks; heads that two tensor and two context ranks can share.
std::vector<Layer> device_model(int number) {
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

OptimizerSettings device_optimizer(int number) {
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
RunSpec spec_of_device(const DeviceProduct& product) {
  using enum DeviceProductFactors::Number;
  const CatalogueEntry& schedule = value_of_factor(trained_entries(), product, kSchedule);
  const StateSharding& sharding = value_of_factor(kDeviceShardings, product, kZero);
  const Recomputation& recomputation = value_of_factor(kDeviceRecomputations, product, kRebuild);
  const Meshes& meshes = value_of_factor(kMeshes, product, kMesh);
  const int ranks = product[kRanks] + 1, data = product[kData] + 1, context = product[kContext] > 0 ? 2 : 1;
  const int chunks = schedule.takes_chunks && schedule.chunks == 1 ? 2 : schedule.chunks;
  const Schedule order = make_schedule(
      schedule.name,
      {.ranks = ranks, .microbatches = kDeviceMicrobatches, .chunks = chunks, .slices = product[kSlices] + 1});
  const bool has_copies = data * context > 1 || meshes.even.data > 0;
  LoweringOptions options{.checkpoint = recomputation.checkpoint,
                          .data = {.enabled = has_copies, .zero = sharding.zero}};
  if (product[kBuckets] != 0) options.data.buckets.assign(order.stages.size(), 2);
  if (product[kOffload] == 2) options.offload = 1;
  RunSpec spec =
      with_forms(spec_of_lowered(device_model(product[kModel]), lower(order, options), data), sharding, recomputation);
  spec = with_groups(std::move(spec), product[kTensor], product[kContext], product[kExpert]);
  if (meshes.even.data > 0)
    for (int rank = 0; rank < ranks; ++rank) {
      StageMesh mesh = rank % 2 == 0 ? meshes.even : meshes.odd;
      mesh.data *= data;
      spec.meshes.push_back(mesh);
    }
  spec.resharding = meshes.resharding;
  spec.offload_optimizer = product[kOffload] == 1;
  spec.optimizer = device_optimizer(product[kOptimizer]);
  if (product[kStored] > 0) spec.half = product[kStored] == 1 ? HalfFormat::kBf16 : HalfFormat::kFp16;
  spec.clip_norm = product[kClip] != 0 ? 0.5 : 0;
  spec.sequence = reads_samples(device_model(product[kModel])) ? 1 : 8;
  spec.steps = kDeviceSteps;
  return spec;
}

/// True if the device takes the product. Values that would change nothing do not make another product.
bool device_takes(const DeviceProduct& product) {
  using enum DeviceProductFactors::Number;
  const bool has_meshes = product[kMesh] > 0;
  if (has_meshes && (product[kTensor] == 1 || product[kRanks] == 0)) return false;  // 2: rows are divided
  if (product[kExpert] != 0 && product[kModel] != 2) return false;
  try {
    const RunSpec spec = spec_of_device(product);
    require_device_runnable(spec);
    plan_training(spec);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

DeviceProduct random_device_product(std::mt19937_64& random) {
  DeviceProduct product{};
  const DeviceProduct most = device_counts();
  for (std::size_t factor = 0; factor < DeviceProductFactors::kFactors; ++factor)
    product[factor] = static_cast<int>(random() % static_cast<std::uint64_t>(most[factor]));
  return product;
}

std::vector<FactorPair> all_pairs() {
  const DeviceProduct most = device_counts();
  std::vector<FactorPair> pairs;
  for (std::size_t a = 0; a < DeviceProductFactors::kFactors; ++a)
    for (std::size_t b = a + 1; b < DeviceProductFactors::kFactors; ++b)
      for (int x = 0; x < most[a]; ++x)
        for (int y = 0; y < most[b]; ++y) pairs.push_back({static_cast<int>(a), static_cast<int>(b), x, y});
  return pairs;
}

/// FactorPair by pair, in a random order: of random products that have it and that the device takes, the one with most
/// pairs that are missing; at most so many.
std::vector<DeviceProduct> sampled_cover(std::size_t most_products) {
  constexpr int kTrials = 400, kCandidates = 8;
  std::mt19937_64 random(1);
  std::vector<FactorPair> pairs = all_pairs();
  std::ranges::shuffle(pairs, random);
  std::set<FactorPair> missing(pairs.begin(), pairs.end());
  std::vector<DeviceProduct> cover;
  for (const FactorPair& pair : pairs) {
    if (!missing.contains(pair)) continue;
    std::optional<DeviceProduct> best;
    std::ptrdiff_t best_gain = 0;
    for (int trial = 0, found = 0; trial < kTrials && found < kCandidates; ++trial) {
      DeviceProduct product = random_device_product(random);
      product[static_cast<std::size_t>(pair[0])] = pair[2];
      product[static_cast<std::size_t>(pair[1])] = pair[3];
      if (!device_takes(product)) continue;
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

std::vector<DeviceProduct> random_device_products(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<DeviceProduct> products;
  while (products.size() < count)
    if (const DeviceProduct product = random_device_product(random); device_takes(product)) products.push_back(product);
  return products;
}

/// The device's result behind kDeviceStop steps and a checkpoint.
RunResult stopped_and_resumed(RunSpec spec) {
  std::string bytes;
  spec.steps = kDeviceStop;
  HostMachine machine(spec.half);
  run_device(spec, machine,
             {.checkpoint_every = 5, .checkpoint = [&](const TrainingState& state) { bytes = to_bytes(state); }});
  spec.steps = kDeviceSteps;
  spec.resume = std::make_shared<const TrainingState>(training_state_from_bytes(bytes, "the checkpoint"));
  return on_host(spec);
}

/// Between ranks of one device alone.
bool evicts(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& action) { return action.op == Op::kEvict; });
  });
}

/// Checks bytes within a word: in 16 bits an odd number of elements of a stage, or of its experts, fills a word in one
/// of the backends.
void check_bytes(const std::vector<ParameterBytes>& device, const std::vector<ParameterBytes>& cpu) {
  REQUIRE(device.size() == cpu.size());
  for (std::size_t rank = 0; rank < cpu.size(); ++rank) {
    CHECK(std::abs(device[rank].weights - cpu[rank].weights) <= 8);
    CHECK(device[rank].gradients == cpu[rank].gradients);
    CHECK(device[rank].optimizer == cpu[rank].optimizer);
  }
}

void check_device(const DeviceProduct& product) {
  const RunSpec spec = spec_of_device(product);
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
  if (!evicts(spec.schedule)) check_against_cpu(spec);
}

}  // namespace

TEST_CASE("products of all that a device takes train as the CPU's, in every order, and exchange NCCL's planned list" *
          doctest::skip(kIsSanitized)) {
  const char* const wanted = std::getenv("PLUMB_DEVICE_PRODUCTS");
  const char* const seed = std::getenv("PLUMB_LAYOUTS_SEED");
  std::vector<DeviceProduct> products;
  if (wanted == nullptr)
    products = sampled_cover(kProductsInPassing);
  else if (std::string_view(wanted) == "pairs")
    products = sampled_cover(SIZE_MAX);
  else
    products = random_device_products(std::strtoull(wanted, nullptr, 10),
                                      seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10));
  for (const DeviceProduct& product : products) {
    CAPTURE(device_text(product));
    try {
      check_device(product);
    } catch (const std::exception& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
  MESSAGE(products.size(), " products");
}

}  // namespace plumb::test
