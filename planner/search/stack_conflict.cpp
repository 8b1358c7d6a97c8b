#include "planner/search/stack_conflict.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/spec/cluster_sites.h"
#include "planner/spec/framework_split.h"

namespace plumb { inline namespace planner {
namespace {

template <class Values, class Value>
bool has_value(const Values& values, const Value& value) {
  return std::ranges::find(values, value) != values.end();
}

/// Collects the rules that one layout breaks.
class BrokenRules {
 public:
  BrokenRules(const Pricing& pricing, const StackSpec& stack, const Layout& layout)
      : pricing_(pricing), stack_(stack), can_(stack.can), layout_(layout) {}

  std::vector<Rejection> all() {
    degrees();
    context();
    sharding();
    offload();
    passes();
    pipeline();
    return std::move(broken_);
  }

 private:
  void degrees() {
    if (layout_.tensor > 1 && !can_.tensor) add({.tensor = layout_.tensor}, "divides no tensors: give tp=1");
    if (layout_.pipeline > 1 && !can_.pipeline) add({.pipeline = layout_.pipeline}, "has no pipelines: give pp=1");
    if (layout_.context > 1 && !can_.context) add({.context = layout_.context}, "divides no sequences: give cp=1");
    if (layout_.expert > 1 && !can_.experts) add({.expert = layout_.expert}, "spreads no experts: give ep=1");
    if (layout_.sequence_parallel && !can_.sequence_parallel)
      add({.sequence_parallel = true}, "has no sequence parallelism: give sp=0");
    if (can_.experts_need_sequence_parallel && pricing_.model().experts > 0 && layout_.tensor > 1 &&
        !layout_.sequence_parallel) {
      add({.tensor = layout_.tensor, .sequence_parallel = false},
          "trains experts under tensor parallelism with sequence parallelism only: give sp=1");
    }
  }

  void context() {
    if (layout_.context == 1) return;
    const ContextKind kind = layout_.context_kind == ContextKind::kOfStack ? stack_.context : layout_.context_kind;
    if (kind != stack_.context && !has_value(can_.context_kinds, kind)) {
      add({.context_kind = kind}, fmt::format("divides no sequence that way: leave cp_kind={} out, for {}",
                                              context_kind_name(kind), context_kind_name(stack_.context)));
    }
    const ModelSpec& model = pricing_.model();
    const std::int64_t heads = stack_.repeated_heads ? model.heads : model.kv_heads;
    const std::int64_t degree = std::int64_t{layout_.context} * layout_.tensor;
    if (kind != ContextKind::kUlysses || heads % degree == 0) return;
    add({.tensor = layout_.tensor, .context = layout_.context, .context_kind = kind},
        fmt::format(
            "divides heads by all-to-all (ulysses), and tp={} times cp={} does not divide {}: give degrees that "
            "do, or another cp_kind",
            layout_.tensor, layout_.context, heads));
  }

  /// A replica alone shares no state.
  void sharding() {
    if (layout_.data * layout_.context == 1) return;
    const auto stages_text = [](const std::vector<int>& stages) {
      return fmt::format("{}", fmt::join(stages, " or "));
    };
    if (!has_value(can_.zero, layout_.zero)) {
      add({.zero = layout_.zero}, fmt::format("has no ZeRO {}: give zero={}", layout_.zero, stages_text(can_.zero)));
    } else if (layout_.pipeline > 1 && !has_value(can_.zero_in_pipelines, layout_.zero)) {
      add({.pipeline = layout_.pipeline, .zero = layout_.zero},
          fmt::format("has no ZeRO {} in pipelines: give zero={} or pp=1", layout_.zero,
                      stages_text(can_.zero_in_pipelines)));
    }
    if (layout_.shard > 0 && !can_.shard_groups)
      add({.shard = layout_.shard}, "divides the state of ZeRO over all replicas: leave shard out");
    if (layout_.order == RankOrder::kReplicasApart && !can_.replicas_apart)
      add({.order = layout_.order}, "places the replicas of a stage side by side: leave order out");
  }

  void offload() {
    if (layout_.offload == Offload{}) return;
    if (!has_value(can_.offload, layout_.offload)) {
      add({.offload = layout_.offload},
          fmt::format("keeps what offload={} moves to the hosts on the devices: leave it out",
                      offload_name(layout_.offload)));
    } else if (can_.offload_needs_zero && layout_.offload.optimizer && layout_.zero == 0) {
      add({.zero = 0, .offload = layout_.offload},
          "updates the optimizer's state in the hosts by shares of ZeRO alone: give zero=1");
    }
  }

  void passes() {
    if (layout_.recompute_layers > 0 && !can_.recompute_layers)
      add({.recompute_layers = layout_.recompute_layers}, "rebuilds all layers of a stage: leave recompute_layers out");
    if (has_value(can_.recompute, layout_.recompute)) return;
    std::vector<std::string_view> names;
    for (const Recompute recompute : can_.recompute) names.push_back(recompute_name(recompute));
    add({.recompute = layout_.recompute},
        fmt::format("has no recomputation of that kind: give recompute={}", fmt::join(names, " or ")));
  }

  void pipeline() {
    if (layout_.pipeline == 1) return;
    if (!can_.schedules.empty() && !has_value(can_.schedules, layout_.schedule)) {
      add({.schedule = layout_.schedule},
          fmt::format("runs no schedule {}: give schedule={}", layout_.schedule, fmt::join(can_.schedules, " or ")));
    }
    const int stages = layout_.pipeline * layout_.chunks;
    if (can_.equal_stages && pricing_.model().layers % stages != 0) {
      add({.pipeline = layout_.pipeline, .chunks = layout_.chunks},
          fmt::format("needs as many layers on every stage, and {} layers do not divide into {} stages: give pp and v "
                      "whose product divides them",
                      pricing_.model().layers, stages));
    }
    if (!can_.named_splits && !layout_.split.empty() &&
        framework_split(stack_.stage_split, static_cast<int>(pricing_.model().layers), stages) != layout_.split)
      add({.split = layout_.split}, "cuts layers by a rule of its own: leave the split out");
    const std::int64_t microbatches = microbatches_of(pricing_.training(), layout_);
    if (can_.whole_rounds && layout_.chunks > 1 && microbatches % layout_.pipeline != 0) {
      add({.pipeline = layout_.pipeline, .chunks = layout_.chunks, .microbatch = layout_.microbatch},
          fmt::format("interleaves micro-batches in rounds of as many as pp={}, which do not divide {}: give another "
                      "mbs, dp or pp, or v=1",
                      layout_.pipeline, microbatches));
    }
  }

  void add(LayoutRequest keys, std::string_view rule) {
    broken_.push_back({.layout = std::move(keys), .reason = fmt::format("stack {} {}", stack_.name, rule)});
  }

  const Pricing& pricing_;
  const StackSpec& stack_;
  const StackLimits& can_;
  const Layout& layout_;
  std::vector<Rejection> broken_;
};

/// Returns the habit of a stack by which tensor groups stay inside a node, where the layout's do not.
std::optional<Rejection> crosses_nodes(const Pricing& pricing, const LayoutSpace& space, const Layout& layout) {
  const StackSpec* stack = pricing.stack_of(layout);
  const int node = smallest_node(pricing.cluster());
  if (stack == nullptr || stack->can.tensor_across_nodes || space.wide || !space.tensor.named.empty() ||
      layout.tensor <= node)
    return std::nullopt;
  return Rejection{.layout = {.tensor = layout.tensor},
                   .reason = fmt::format("tensor groups of stack {} stay inside a node of {} devices unless they are "
                                         "asked for: give tp={} to see it",
                                         stack->name, node, layout.tensor)};
}

}  // namespace

std::vector<Rejection> stack_conflicts(const Pricing& pricing, const Layout& layout) {
  const StackSpec* stack = pricing.stack_of(layout);
  return stack == nullptr ? std::vector<Rejection>{} : BrokenRules(pricing, *stack, layout).all();
}

std::optional<Rejection> closed_by_stack(const Pricing& pricing, const LayoutSpace& space, const Layout& layout) {
  for (Rejection& broken : stack_conflicts(pricing, layout)) {
    if (!names_all(space, broken.layout)) return std::move(broken);
  }
  return crosses_nodes(pricing, space, layout);
}

std::optional<Rejection> closed_by_keys(const Pricing& pricing, const LayoutSpace& space, const Layout& layout,
                                        const LayoutRequest& known) {
  // ZeRO may decide which stack is assumed.
  if (!pricing.training().stack && !known.zero && layout.tensor == 1 && layout.pipeline == 1) return std::nullopt;
  for (Rejection& broken : stack_conflicts(pricing, layout)) {
    if (answers_all(known, broken.layout) && !names_all(space, broken.layout)) return std::move(broken);
  }
  return crosses_nodes(pricing, space, layout);
}

}}  // namespace plumb::planner
