#include "planner/search/layout_choices.h"

#include <algorithm>
#include <numeric>

#include "planner/spec/cluster_sites.h"
#include "schedules/generators/catalogue.h"

namespace plumb { inline namespace planner {
namespace {

template <class T>
std::vector<T> divisors(T of) {  // ascending
  std::vector<T> result;
  std::vector<T> large;
  for (T d = 1; d * d <= of; ++d) {
    if (of % d != 0) continue;
    result.push_back(d);
    if (d * d != of) large.push_back(of / d);
  }
  result.insert(result.end(), large.rbegin(), large.rend());
  return result;
}

/// True for a schedule that trains by one optimizer step, with no numbers besides those of a layout.
bool trains_in_layouts(const CatalogueEntry& entry) {
  return entry.name != "forward-only" && entry.name != "naive" && !entry.takes_slices && !entry.takes_batch &&
         !entry.takes_vertical_sync && entry.unpriced.empty();
}

/// Chunks of a rank up to which every number is tried.
constexpr int kFewChunks = 8;

std::vector<int> with_one_if(bool one, std::vector<int> chunks) {
  if (one) chunks.insert(chunks.begin(), 1);
  return chunks;
}

bool has_one(const Values<int>& values) {
  return values.named.size() == 1;
}

bool is_alone(const Layout& replica) {
  return replica.data * replica.context == 1;
}

/// True where the degrees that are named take all devices: the question is of a layout that somebody has in mind.
bool names_degrees(const LayoutSpace& space, int devices) {
  std::int64_t product = 1;
  for (const Values<int>* degree : {&space.data, &space.tensor, &space.pipeline, &space.context})
    if (has_one(*degree)) product *= degree->named.front();
  return product == devices;
}

}  // namespace

std::vector<int> LayoutChoices::tensor() const {
  return space_.tensor.of(pricing_.graph() != nullptr ? std::vector{1} : divisors(pricing_.cluster().devices));
}

std::vector<int> LayoutChoices::pipeline() const {
  return space_.pipeline.of(divisors(pricing_.cluster().devices));
}

/// Frameworks divide sequences. Where the three other degrees are named, that of whole sequences is meant.
std::vector<int> LayoutChoices::context(const Layout& degrees) const {
  const TrainingSpec& training = pricing_.training();
  const bool named = has_one(space_.data) && has_one(space_.tensor) && has_one(space_.pipeline);
  const bool whole =
      pricing_.graph() != nullptr || is_of_own_executor(training) || (training.stack && !training.stack->can.context);
  const std::int64_t others = std::int64_t{degrees.tensor} * degrees.pipeline;
  const int devices = pricing_.cluster().devices;
  if (named || whole || devices % others != 0) return space_.context.of({1});
  std::vector<int> open = divisors(static_cast<int>(devices / others));
  std::erase_if(open, [&](int context) { return context > 1 && training.sequence % (2 * context) != 0; });
  return space_.context.of(std::move(open));
}

/// The degree that makes the product the devices.
std::vector<int> LayoutChoices::data(const Layout& degrees) const {
  const std::int64_t others = std::int64_t{degrees.tensor} * degrees.pipeline * degrees.context;
  const int devices = pricing_.cluster().devices;
  std::vector<int> open;
  if (devices % others == 0) open.push_back(static_cast<int>(devices / others));
  if (space_.data.named.empty()) return space_.data.of(std::move(open));
  // Values that make another product are a conflict where nothing else is open.
  const bool all_named = has_one(space_.data) && has_one(space_.tensor) && has_one(space_.pipeline);
  if (all_named) return space_.data.named;
  std::erase_if(open, [&](int degree) { return !space_.data.holds(degree); });
  return open;
}

std::vector<int> LayoutChoices::expert(const Layout& degrees) const {
  const std::int64_t experts = pricing_.model().experts;
  if (experts == 0) return space_.expert.of({1});
  const bool shared = is_of_own_executor(pricing_.training()) && space_.expert_tensor.named.empty();
  const std::int64_t ranks = std::int64_t{degrees.data} * degrees.context * (shared ? 1 : degrees.tensor);
  std::vector<int> open = divisors(static_cast<int>(experts));
  std::erase_if(open, [&](int expert) { return ranks % expert != 0; });
  return space_.expert.of(std::move(open));
}

/// Plumb's own executor divides every expert like an MLP, unless another degree is named.
std::vector<int> LayoutChoices::expert_tensor(const Layout& degrees) const {
  const ModelSpec& model = pricing_.model();
  if (model.experts == 0) return space_.expert_tensor.of({1});
  if (is_of_own_executor(pricing_.training())) return space_.expert_tensor.of({degrees.tensor});
  const std::int64_t ranks = std::int64_t{degrees.data} * degrees.context * degrees.tensor;
  std::vector<int> open = divisors(degrees.tensor);
  std::erase_if(open, [&](int degree) {
    return model.expert_ffn % degree != 0 || ranks % (std::int64_t{degrees.expert} * degree) != 0;
  });
  return space_.expert_tensor.of(std::move(open));
}

std::vector<std::int64_t> LayoutChoices::microbatch(const Layout& degrees) const {
  std::vector<std::int64_t> open = divisors(pricing_.training().global_batch / degrees.data);
  // Half as many ranks on half as many sequences compute the same.
  if (!space_.wide && space_.context.is_open() && space_.microbatch.is_open())
    std::erase_if(open, [&](std::int64_t microbatch) { return std::gcd(microbatch, degrees.context) > 1; });
  return space_.microbatch.of(std::move(open));
}

/// The schedules that the framework runs; in a usual space none that is made anew for costs, and the common ones where
/// nothing is known of a framework.
std::vector<std::string> LayoutChoices::open_schedules() const {
  const std::optional<StackSpec>& stack = pricing_.training().stack;
  std::vector<std::string> names;
  if (stack) names = stack->can.schedules;
  if (names.empty() && !space_.wide) return {"1f1b", "gpipe", "interleaved"};
  if (names.empty()) {
    for (const CatalogueEntry& entry : catalogue())
      if (trains_in_layouts(entry)) names.emplace_back(entry.name);
  }
  if (!space_.wide) std::erase_if(names, [](const std::string& name) { return catalogue_entry(name).made_for_costs; });
  return names;
}

std::vector<int> LayoutChoices::open_chunks(const std::string& schedule, int pipeline) const {
  const CatalogueEntry& entry = catalogue_entry(schedule);
  if (!entry.takes_chunks) return {entry.chunks};
  // The nodes of a graph are no layers alike: more chunks than a few are only more messages.
  if (pricing_.graph() != nullptr) return with_one_if(!space_.schedule.named.empty(), {2, 4});
  const auto most = static_cast<int>(pricing_.model().layers / pipeline);
  const std::optional<StackSpec>& stack = pricing_.training().stack;
  std::vector<int> open;
  for (int chunks = 2; chunks <= most; ++chunks) {
    const bool few = chunks <= kFewChunks && !(stack && stack->can.equal_stages);  // a remainder is spread
    if (few || most % chunks == 0) open.push_back(chunks);
  }
  return with_one_if(!space_.schedule.named.empty(), std::move(open));  // otherwise it has a name of its own
}

std::vector<ScheduleChoice> LayoutChoices::schedule(const Layout& family) const {
  std::vector<ScheduleChoice> choices;
  if (space_.schedule.named.empty() && family.pipeline == 1) {
    for (const int chunks : space_.chunks.of({1}))  // several are a conflict, and said so
      choices.push_back({chunks > 1 ? "interleaved" : "1f1b", chunks});
    return choices;
  }
  for (const std::string& name : space_.schedule.of(open_schedules())) {
    const CatalogueEntry& entry = catalogue_entry(name);
    for (const int chunks : space_.chunks.of(open_chunks(name, family.pipeline))) {
      const bool possible = entry.takes_chunks ? chunks > 1 : chunks == entry.chunks;
      if (possible || !space_.schedule.named.empty()) choices.push_back({name, chunks});
    }
  }
  return choices;
}

std::vector<int> LayoutChoices::zero(const Layout& family) const {
  const bool alone = is_alone(family);  // it divides nothing
  if (alone && needs_zero_to_offload(family)) return space_.zero.of({0, 1});
  if (alone && space_.zero.holds(0)) return {0};
  return space_.zero.of(alone ? std::vector{0} : std::vector{0, 1, 2, 3});
}

std::vector<bool> LayoutChoices::sequence_parallel(const Layout& family) const {
  return space_.sequence_parallel.of(family.tensor > 1 ? std::vector{false, true} : std::vector{false});
}

std::vector<Recompute> LayoutChoices::recompute() const {
  std::vector<Recompute> open = {Recompute::kNone, Recompute::kSelective, Recompute::kFull};
  if (const auto& graph = pricing_.model().graph) {
    open = {Recompute::kNone};
    if (has_blocks(*graph)) open.push_back(Recompute::kFull);
  }
  return space_.recompute.of(std::move(open));
}

/// Only full recomputation rebuilds whole layers, and all of them where it is named. The largest stage has one layer more
/// than the others at most.
std::vector<int> LayoutChoices::recompute_layers(const Layout& core) const {
  const Values<int>& values = space_.recompute_layers;
  if (core.recompute != Recompute::kFull) return values.holds(0) ? std::vector{0} : std::vector<int>{};
  std::vector<int> open = {0};
  const StackSpec* stack = pricing_.stack_of(core);
  const bool is_asked = space_.wide || space_.recompute.is_open() || !values.is_open();
  const bool some = is_asked && stack != nullptr && stack->can.recompute_layers;
  const auto most = static_cast<int>(pricing_.model().layers / (core.pipeline * core.chunks)) + 1;
  for (int rebuilt = 1; some && rebuilt <= most; ++rebuilt) open.push_back(rebuilt);
  return values.of(std::move(open));
}

std::vector<ContextKind> LayoutChoices::context_kind(const Layout& family) const {
  std::vector<ContextKind> open = {ContextKind::kOfStack};
  const StackSpec* stack = pricing_.stack_of(family);
  if (family.context == 1 || stack == nullptr) return space_.context_kind.of(std::move(open));
  for (const ContextKind kind : stack->can.context_kinds)
    if (kind != stack->context) open.push_back(kind);
  return space_.context_kind.of(std::move(open));
}

/// Groups of neighbouring replicas hold whole groups of experts (search/layout_conflict.h).
std::vector<int> LayoutChoices::shard(const Layout& core) const {
  std::vector<int> open = {0};
  const StackSpec* stack = pricing_.stack_of(core);
  if (core.zero == 0 || stack == nullptr || !stack->can.shard_groups) return space_.shard.of(std::move(open));
  const int replicas = core.data * core.context;
  std::vector<int> groups = divisors(replicas);
  const int of_experts = core.expert * core.expert_tensor;
  std::erase_if(groups, [&](int shard) {
    const std::int64_t ranks = std::int64_t{shard} * core.tensor;
    return shard == 1 || shard == replicas || ranks % of_experts != 0;
  });
  open.insert(open.end(), groups.begin(), groups.end());
  return space_.shard.of(std::move(open));
}

/// Orders are open where they give groups and hops other links. Where the degrees are named, the framework's own order
/// is meant.
std::vector<RankOrder> LayoutChoices::order(const Layout& core) const {
  std::vector<RankOrder> open = {RankOrder::kStagesApart};
  const ClusterSpec& cluster = pricing_.cluster();
  const StackSpec* stack = pricing_.stack_of(core);
  const int together = core.tensor * core.context, of_experts = core.expert * core.expert_tensor;
  const bool exists = stack != nullptr && stack->can.replicas_apart && core.pipeline > 1 && core.data > 1 &&
                      together % of_experts == 0 && site_count(cluster) == 1;
  const bool is_asked = !names_degrees(space_, cluster.devices);
  const bool one_switch = cluster.devices <= cluster.devices_per_node && cluster.wiring.hub == NodeHub::kNvSwitch;
  const bool whole_nodes = together % cluster.devices_per_node == 0 && cluster.wiring.nodes_per_leaf == 0;
  if (exists && is_asked && !one_switch && !whole_nodes) open.push_back(RankOrder::kReplicasApart);
  return space_.order.of(std::move(open));
}

std::vector<int> LayoutChoices::group(const Layout& core) const {
  std::vector<int> open = {0};
  if (!space_.wide || !catalogue_entry(core.schedule).takes_group) return space_.group.of(std::move(open));
  const std::int64_t microbatches = microbatches_of(pricing_.training(), core);
  for (const std::int64_t group : divisors(microbatches))
    if (group > core.pipeline) open.push_back(static_cast<int>(group));
  return space_.group.of(std::move(open));
}

/// A framework's own buckets are a share of the reduction that it hides (StackSpec::data_hidden).
std::vector<std::int64_t> LayoutChoices::bucket_mib(const Layout& core) const {
  constexpr std::int64_t kUsual = 25;  // PyTorch's DistributedDataParallel
  std::vector<std::int64_t> open = {0};
  if (space_.wide && pricing_.stack_of(core) == nullptr && core.zero <= 1 && core.data > 1) open.push_back(kUsual);
  return space_.bucket_mib.of(std::move(open));
}

bool LayoutChoices::needs_zero_to_offload(Layout layout) const {
  layout.zero = 1;
  const StackSpec* stack = pricing_.stack_of(layout);
  return pricing_.cluster().host && stack != nullptr && stack->can.offload_needs_zero;
}

/// The optimizer's state may wait in the hosts where the framework's may; activations besides in a wide space. ZeRO that
/// divides nothing is there for the host's optimizer alone.
std::vector<Offload> LayoutChoices::offload(const Layout& core) const {
  std::vector<Offload> open = {Offload{}};
  const ClusterSpec& cluster = pricing_.cluster();
  const StackSpec* stack = pricing_.stack_of(core);
  if (is_alone(core) && core.zero > 0 && space_.zero.is_open()) open.clear();
  const bool may_update = stack == nullptr || !stack->can.offload_needs_zero || core.zero > 0;
  for (const Offload& offload : stack == nullptr ? all_offloads() : stack->can.offload) {
    const bool is_asked = offload.optimizer && (space_.wide || !offload.activations);
    if (cluster.host && site_count(cluster) == 1 && may_update && is_asked) open.push_back(offload);
  }
  return space_.offload.of(std::move(open));
}

}}  // namespace plumb::planner
