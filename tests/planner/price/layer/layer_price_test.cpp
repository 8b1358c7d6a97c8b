#include "planner/price/layer/layer_price.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/price/pricing.h"
#include "tests/planner/fixtures.h"
#include "tests/shared_folder.h"

namespace plumb::test {
namespace {

constexpr std::size_t kTensor = static_cast<std::size_t>(Group::kTensor);

/// A transformer layer of small_gpt over two tensor ranks of a node, with micro-batches of 4 sequences of 512 tokens.
struct TensorPair {
  StackSpec stack{.name = "async", .async_tensor_gradients = true};
  bool sequence_parallel = false;
  double node_bytes_per_second = 10e9;

  LayerPrice price() const {
    ClusterSpec cluster = round_cluster(2);
    cluster.node_link->bytes_per_second = node_bytes_per_second;
    const TrainingSpec training{.global_batch = 4, .sequence = 512, .stack = stack};
    Pricing pricing(small_gpt(), cluster, training);
    const Layout layout{.tensor = 2, .sequence_parallel = sequence_parallel, .microbatch = 4};
    const InnerGroups groups = pricing.placements(layout).inner.front();
    return pricing.layer_prices(layout, groups)[static_cast<std::size_t>(pricing.kind_of_layer()[1])];
  }
};

constexpr double kMicro = 1e-6;

/// Returns the microseconds of the tensor group's collectives of that kind.
double exchange_us(const PassPrice& price, CollectiveKind kind) {
  return price.collective_seconds[kTensor][static_cast<std::size_t>(kind)].count() / kMicro;
}

// Microseconds of 2 T n k FLOPs at 100 TFLOP/s, T = 2048 tokens: QKV has 1536 x 1024 weights on a rank, the up
// projection 2048 x 1024.
constexpr double kQkv = 2.0 * 2048 * 1536 * 1024 / 100e12 / kMicro;
constexpr double kUp = 2.0 * 2048 * 2048 * 1024 / 100e12 / kMicro;

}  // namespace

TEST_CASE("sums of input gradients run beside the products of their weight gradients, as far as these last") {
  TensorPair pair;
  LayerPrice price = pair.price();
  const double each = exchange_us(price.input_grad, CollectiveKind::kAllReduce) / 2;
  CHECK(each > kUp);
  CHECK(exchange_us(whole_backward(price), CollectiveKind::kAllReduce) == doctest::Approx(2 * each - kQkv - kUp));

  pair.node_bytes_per_second = 1e12;  // shorter than either product: nothing is left
  price = pair.price();
  CHECK(exchange_us(price.input_grad, CollectiveKind::kAllReduce) / 2 < kQkv);
  CHECK(exchange_us(whole_backward(price), CollectiveKind::kAllReduce) == doctest::Approx(0));
  CHECK(total(whole_backward(price)) / (price.input_grad.compute + price.weight_grad.compute) == doctest::Approx(1));
}

TEST_CASE("under sequence parallelism gathered gradients of outputs still block a whole backward") {
  TensorPair pair{.sequence_parallel = true, .node_bytes_per_second = 1e12};
  const LayerPrice price = pair.price();
  const PassPrice whole = whole_backward(price);
  CHECK(exchange_us(whole, CollectiveKind::kReduceScatter) == doctest::Approx(0));
  CHECK(exchange_us(whole, CollectiveKind::kAllGather) ==
        doctest::Approx(exchange_us(price.input_grad, CollectiveKind::kAllGather)));
  CHECK(exchange_us(price.weight_grad, CollectiveKind::kAllGather) > 0);
}

TEST_CASE("without asynchronous sums a whole backward is its two gradients") {
  const LayerPrice price = TensorPair{.stack = {.name = "blocking"}}.price();
  CHECK(total(whole_backward(price)) / (total(price.input_grad) + total(price.weight_grad)) == doctest::Approx(1));
}

TEST_CASE("a token sent once to each rank, and over the network once to each node, is less than a copy an expert") {
  ModelSpec model = small_gpt();
  model.experts = 16;
  model.experts_per_token = 4;
  model.expert_ffn = 512;
  const auto exchange = [&model](ExpertDispatch dispatch, int devices, double share) {
    ClusterSpec cluster = round_cluster(devices);
    cluster.devices_per_node = 4;
    StackSpec stack{.name = "any"};
    stack.dispatch = dispatch;
    stack.dispatch_share = share;
    const TrainingSpec training{.global_batch = devices, .sequence = 512, .stack = stack};
    Pricing pricing(model, cluster, training);
    const Layout layout{.data = devices, .expert = devices};
    const InnerGroups groups = pricing.placements(layout).inner.front();
    const LayerPrice price = pricing.layer_prices(layout, groups)[static_cast<std::size_t>(pricing.kind_of_layer()[1])];
    return price.forward
        .collective_seconds[static_cast<std::size_t>(Group::kExpert)]
                           [static_cast<std::size_t>(CollectiveKind::kAllToAll)]
        .count();
  };
  using enum ExpertDispatch;
  // 4 (1 - 12 11 10 9 / 16 15 14 13) = 2.9 of 4 ranks hold one of a token's 4 of 16 experts; latency is the same.
  const double one_node = exchange(kPerRank, 4, 1) / exchange(kPerExpert, 4, 1);
  CHECK(one_node > 0.728);
  CHECK(one_node < 0.8);
  // Nearly every token goes to both of two nodes: 2 (1 - 8 7 6 5 / 16 15 14 13) = 1.92 copies instead of 4.
  const double two_nodes = exchange(kPerRank, 8, 1) / exchange(kPerExpert, 8, 1);
  CHECK(two_nodes > 0.48);
  CHECK(two_nodes < 0.65);
  CHECK(exchange(kPerRank, 8, 0.5) == doctest::Approx(2 * exchange(kPerRank, 8, 1)));
}

TEST_CASE("where the host waits at the ends, their time stands beside layers that the host bounds") {
  const auto forward = [](bool waits) {
    const StackSpec stack{
        .name = "launched", .kernel_launch = Seconds{1e-3}, .layer_launches_forward = 5, .waits_at_ends = waits};
    const TrainingSpec training{.global_batch = 4, .sequence = 512, .stack = stack};
    Pricing pricing(small_gpt(), round_cluster(1), training);
    const Layout layout{.microbatch = 4};
    const InnerGroups groups = pricing.placements(layout).inner.front();
    const std::vector<LayerPrice>& prices = pricing.layer_prices(layout, groups);
    PassPrice layer = prices[static_cast<std::size_t>(pricing.kind_of_layer()[1])].forward;
    const PassPrice& head = prices[static_cast<std::size_t>(pricing.kind_of_layer().back())].forward;
    CHECK(layer.host > layer.compute);
    const Seconds alone = total(layer);
    layer += head;
    return std::pair(total(layer) - alone, head);
  };
  const auto [hidden, free_head] = forward(false);
  const auto [shown, awaited_head] = forward(true);
  CHECK(hidden.count() == doctest::Approx(free_head.host.count()));
  CHECK(shown.count() == doctest::Approx(std::max(awaited_head.compute, free_head.host).count()));
}

TEST_CASE("captured kernels cost the host nothing: outside of experts, or all of them") {
  const auto host = [](GraphScope graphs, std::int64_t experts) {
    ModelSpec model = small_gpt();
    model.experts = experts;
    model.experts_per_token = std::min<std::int64_t>(experts, 2);
    model.expert_ffn = experts > 0 ? 512 : 0;
    StackSpec stack{.name = "any", .kernel_launch = Seconds{1}, .layer_launches_forward = 10};
    stack.expert_launches = 7;
    stack.graphs = graphs;
    const TrainingSpec training{.global_batch = 1, .sequence = 512, .stack = stack};
    Pricing pricing(model, round_cluster(1), training);
    const InnerGroups groups = pricing.placements({}).inner.front();
    return pricing.layer_prices({}, groups)[static_cast<std::size_t>(pricing.kind_of_layer()[1])].forward.host.count();
  };
  using enum GraphScope;
  CHECK(host(kIteration, 8) == 0);
  CHECK(host(kOutsideExperts, 0) == 0);
  // Both permutations, both products and the activation are launched.
  CHECK(host(kOutsideExperts, 8) == 5 + 7);
  CHECK(host(kNone, 8) > 5 + 7 + 10);
  CHECK(host(kNone, 0) > 10);
}

TEST_CASE("a step's other passes move their bytes of every parameter that the rank steps") {
  const auto optimizer = [](double step_traffic, int zero) {
    const TrainingSpec training{
        .global_batch = 4, .sequence = 512, .stack = StackSpec{.name = "any", .step_traffic = step_traffic}};
    Pricing pricing(small_gpt(), round_cluster(4), training);
    return pricing.layer_states({.data = 4, .zero = zero})[1];
  };
  const Pricing::LayerState plain = optimizer(0, 0);
  const auto parameters = static_cast<double>(plain.parameters);
  const Seconds whole{32 * parameters / 1e12};  // at 1 TB/s
  CHECK((optimizer(32, 0).optimizer - plain.optimizer) / whole == doctest::Approx(1));
  CHECK((optimizer(32, 1).optimizer - optimizer(0, 1).optimizer) / whole == doctest::Approx(0.25));
}

namespace {

/// Returns the prices of one rank without a stack, by measured times or by the machine's figures.
std::vector<LayerPrice> own_prices(const ClusterSpec& cluster, Recompute recompute, Optimizer optimizer) {
  const TrainingSpec training{.global_batch = 4, .sequence = 512, .optimizer = optimizer};
  Pricing pricing(small_gpt(), cluster, training);
  const Layout layout{.microbatch = 4, .recompute = recompute};
  return pricing.layer_prices(layout, pricing.placements(layout).inner.front());
}

Seconds sum_of(const KernelPrices& prices, const std::vector<KernelCall>& calls) {
  Seconds sum{0};
  for (const KernelCall& call : calls) sum += kernel_time(prices, call);
  return sum;
}

KernelSample measured_as(std::string kernel, std::vector<std::int64_t> shape, double seconds) {
  return {.kernel = std::move(kernel), .shape = std::move(shape), .median = Seconds{seconds}};
}

}  // namespace

TEST_CASE(
    "a cluster with samples of fused products is priced by the kernels of a device, any other by one for each thing") {
  const ClusterSpec plain = round_cluster(1);
  ClusterSpec fused = plain;
  fused.samples.push_back(
      measured_as("gemm", {2048, 4096, 1024, 1, static_cast<std::int64_t>(GemmForm::kForwardBias)}, 2e-3));
  const TrainingSpec training{.global_batch = 4, .sequence = 512};
  const LayerWork work{.microbatch = 4, .sequence = 512};
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    const bool rebuilds_cheap = recompute == Recompute::kSelective;
    for (const bool is_fused : {false, true}) {
      const ClusterSpec& cluster = is_fused ? fused : plain;
      const KernelPrices kernels = kernel_prices(cluster, training, 1);
      CHECK(kernels.fused == is_fused);
      const std::vector<LayerPrice> prices = own_prices(cluster, recompute, Optimizer::kAdamW);
      const std::vector<Layer> layers = model_layers(small_gpt());
      const std::vector<Layer> kinds = {layers.front(), layers[1], layers.back()};
      REQUIRE(prices.size() == kinds.size());
      for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        const LayerProgram plain = layer_program(kinds[kind], work, is_fused ? Machine::kDevice : Machine::kHost);
        const LayerProgram run = is_fused ? fused_program(kinds[kind], work, rebuilds_cheap) : plain;
        CHECK(prices[kind].forward.compute == sum_of(kernels, kernels_of(run, Pass::kForward)));
        CHECK(prices[kind].input_grad.compute == sum_of(kernels, kernels_of(run, Pass::kInputGrad)));
        CHECK(prices[kind].weight_grad.compute == sum_of(kernels, kernels_of(run, Pass::kWeightGrad)));
        CHECK(prices[kind].rebuild_selective.compute ==
              sum_of(kernels, recomputed_kernels(plain, Recompute::kSelective)));
        // Plumb's own executor computes a whole stage again; elsewhere the ends of the model are kept.
        const bool again = is_fused || kind == 1;
        CHECK(prices[kind].rebuild_full.compute == (again ? prices[kind].forward.compute : Seconds{0}));
      }
    }
  }
}

TEST_CASE("an optimizer's own samples price its step, AdamW's where there are none") {
  ClusterSpec cluster = round_cluster(1);
  cluster.samples = {measured_as("adamw", {1 << 20}, 5e-3), measured_as("lion", {1 << 20}, 2e-3),
                     measured_as("adafactor", {1, 1024, 1024}, 3e-3)};
  const ParameterTensor matrix{.name = "weight", .shape = {1024, 1024}};
  const auto time = [&](Optimizer optimizer) {
    const KernelPrices prices = kernel_prices(cluster, {.global_batch = 1, .sequence = 1, .optimizer = optimizer}, 1);
    return kernel_time(prices, update_call(prices, matrix, 1 << 20)).count();
  };
  CHECK(time(Optimizer::kAdamW) == doctest::Approx(5e-3));
  CHECK(time(Optimizer::kLion) == doctest::Approx(2e-3));
  CHECK(time(Optimizer::kAdafactor) == doctest::Approx(3e-3));
  CHECK(time(Optimizer::kSgd) == doctest::Approx(5e-3));
}

TEST_CASE("a pass of small kernels lasts as long as the host takes to launch them") {
  ClusterSpec cluster = round_cluster(1);
  KernelSample product = measured_as("gemm", {16, 16, 16, 1, 0}, 1e-6), update = measured_as("adamw", {256}, 1e-6);
  product.host = Seconds{1e-3};
  update.host = Seconds{2e-3};
  cluster.samples = {product, update};
  const KernelPrices kernels = kernel_prices(cluster, {.global_batch = 1, .sequence = 16}, 1);
  const Layer linear = LinearLayer{.in = 16, .out = 16, .bias = false};
  const LayerPrice price =
      layer_price(kernels, CollectivePrices(), {}, linear, {.microbatch = 16, .sequence = 1}, nullptr);
  CHECK(total(price.forward).count() == doctest::Approx(1e-3));
  CHECK(total(whole_backward(price)).count() == doctest::Approx(2e-3));
  CHECK(optimizer_time(kernels, linear, {.microbatch = 16, .sequence = 1}, 1, 1).count() == doctest::Approx(2e-3));
}

/// The time of one exchange of 4096 tokens (hidden 7168, eight of 256 experts, bf16) over nodes of eight H100, and
/// the bytes that a rank's tokens have once for each node, its own among them. Picks come from `groups` of eight groups.
struct NodeExchange {
  Seconds time{0};
  double bytes = 0;
};

NodeExchange node_exchange(int nodes, int groups = 8) {
  ModelSpec model = preset_model("deepseek-v3");
  model.groups_per_token = groups;
  const int devices = 8 * nodes;
  StackSpec stack{.name = "any"};
  stack.dispatch = ExpertDispatch::kPerRank;
  const TrainingSpec training{.global_batch = devices, .sequence = 4096, .stack = stack};
  Pricing pricing(model, preset_cluster("h100:" + std::to_string(devices)), training);
  const Layout layout{.data = devices, .expert = devices};
  const std::size_t layer = pricing.kind_of_layer().size() - 2;  // the last but the head has routed experts
  const LayerPrice price =
      pricing.layer_prices(layout, pricing.placements(layout).inner.front())[pricing.kind_of_layer()[layer]];
  const Seconds both = price.forward.collective_seconds[static_cast<std::size_t>(Group::kExpert)]
                                                       [static_cast<std::size_t>(CollectiveKind::kAllToAll)];
  double missed = 1;  // no expert of a node is among the eight
  for (int pick = 0; pick < 8; ++pick) missed *= (256.0 - 256.0 / nodes - pick) / (256 - pick);
  constexpr double kTokenBytes = 2.0 * 7168;
  return {.time = both / 2, .bytes = 4096 * kTokenBytes * nodes * (1 - missed)};
}

TEST_CASE("tokens that pick from few groups of experts go to the nodes of these groups") {
  // Over eight nodes a group is a node. Of four drawn ones all but few hold one of eight picks among 128 experts.
  double missed = 1;
  for (int pick = 0; pick < 8; ++pick) missed *= (96.0 - pick) / (128 - pick);
  const NodeExchange free = node_exchange(8), limited = node_exchange(8, 4);
  const double latency = 0.02;  // of the time, which does not depend on the bytes
  CHECK(limited.time / free.time ==
        doctest::Approx(4096 * 2.0 * 7168 * 4 * (1 - missed) / free.bytes).epsilon(latency));
  // Over two nodes a node has four groups. One is missed if all four come from the other, or no pick from the own.
  const auto drawn = [](double own) { return own == 0 || own == 4 ? 1.0 / 70 : own == 2 ? 36.0 / 70 : 16.0 / 70; };
  double held = 0;
  for (int own = 1; own <= 4; ++own) {
    double none = 1;
    for (int pick = 0; pick < 8; ++pick) none *= std::max(0.0, 128.0 - 32 * own - pick) / (128 - pick);
    held += drawn(own) * (1 - none);
  }
  const NodeExchange pair = node_exchange(2), limited_pair = node_exchange(2, 4);
  CHECK(limited_pair.time / pair.time == doctest::Approx(4096 * 2.0 * 7168 * 2 * held / pair.bytes).epsilon(latency));
}

TEST_SUITE("oracle") {
  TEST_CASE("tokens go through the NICs at the rate that DeepEP measured") {
    const auto text = shared_text("published/micro_deepep_alltoall.json");
    if (!text) return;
    const auto published = nlohmann::json::parse(*text);
    int compared = 0;
    for (const auto& entry : published.at("rows")) {
      const auto& row = entry.at("row");
      const std::string topology = row.value("2:Topo", "");
      if (row.value("0:Arch", "") != "SM90" || !topology.starts_with("EP 8 x ")) continue;
      const NodeExchange exchange = node_exchange(std::stoi(topology.substr(7)));
      // Over two nodes a combination is 10 % slower than the dispatch of the same bytes. The price has no direction.
      for (const auto& [column, tolerance] :
           {std::pair{"3:Dispatch Bottleneck Bandwidth", .02}, {"4:Combine Bottleneck Bandwidth", .1}}) {
        const double measured = std::stod(row.at(column).get<std::string>()) * 1e9;
        CAPTURE(topology);
        CHECK(exchange.bytes / exchange.time.count() == doctest::Approx(measured).epsilon(tolerance));
        ++compared;
      }
    }
    CHECK(compared == 4);
  }
}

}  // namespace plumb::test
