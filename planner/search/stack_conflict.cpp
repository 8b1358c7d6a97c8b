#include "planner/search/stack_conflict.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

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
    sharding();
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
  }

  void passes() {
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

}  // namespace

std::vector<Rejection> stack_conflicts(const Pricing& pricing, const Layout& layout) {
  const StackSpec* stack = pricing.stack_of(layout);
  return stack == nullptr ? std::vector<Rejection>{} : BrokenRules(pricing, *stack, layout).all();
}

std::optional<Rejection> closed_by_stack(const Pricing& pricing, const LayoutRequest& request, const Layout& layout) {
  for (Rejection& broken : stack_conflicts(pricing, layout)) {
    if (!answers_all(request, broken.layout)) return std::move(broken);
  }
  const StackSpec* stack = pricing.stack_of(layout);
  const int node = pricing.cluster().devices_per_node;
  if (stack == nullptr || stack->can.tensor_across_nodes || request.tensor || layout.tensor <= node)
    return std::nullopt;
  return Rejection{.layout = {.tensor = layout.tensor},
                   .reason = fmt::format("tensor groups of stack {} stay inside a node of {} devices unless they are "
                                         "asked for: give tp={} to see it",
                                         stack->name, node, layout.tensor)};
}

}}  // namespace plumb::planner
