#include "planner/search/layout_tree.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/layout_partition.h"
#include "planner/search/stack_conflict.h"
#include "planner/spec/framework_split.h"
#include "schedules/error.h"
#include "schedules/limits.h"

namespace plumb { inline namespace planner {

namespace {

/// Returns the first split that the space names for so many stages; one for others where it names none for them, and
/// none where it names none.
std::vector<int> named_split(const LayoutSpace& space, int stages) {
  const std::vector<std::vector<int>>& named = space.split.named;
  const auto fitting = std::ranges::find_if(named, [&](const auto& split) { return std::ssize(split) == stages; });
  if (fitting != named.end()) return *fitting;
  return named.empty() ? std::vector<int>{} : named.front();
}

/// Adds a layout, or why it is none.
void add_or_reject(Enumeration& found, const Layout& layout, std::optional<Rejection> why_not) {
  if (why_not)
    found.conflicts.push_back(std::move(*why_not));
  else
    found.layouts.push_back(layout);
}

void append_found(Enumeration& found, Enumeration more) {
  std::ranges::move(more.layouts, std::back_inserter(found.layouts));
  std::ranges::move(more.conflicts, std::back_inserter(found.conflicts));
}

}  // namespace

void Conflicts::add(std::vector<Rejection> found) {
  for (Rejection& one : found)
    if (said_.insert(to_text(one.layout)).second) all_.push_back(std::move(one));
}

LayoutTree::LayoutTree(Pricing& pricing, LayoutSpace space, const Skeletons& skeletons)
    : pricing_(pricing), space_(std::move(space)), skeletons_(skeletons), choices_(pricing_, space_) {
  grow_families();
}

void LayoutTree::grow_families() {
  for (const int tensor : choices_.tensor()) {
    for (const int pipeline : choices_.pipeline()) {
      for (const int context : choices_.context({.tensor = tensor, .pipeline = pipeline})) {
        Layout degrees{.tensor = tensor, .pipeline = pipeline, .context = context};
        for (const int data : choices_.data(degrees)) {
          degrees.data = data;
          for (const int expert : choices_.expert(degrees)) {
            degrees.expert = expert;
            for (const int expert_tensor : choices_.expert_tensor(degrees)) {
              degrees.expert_tensor = expert_tensor;
              grow_family(degrees);
            }
          }
        }
      }
    }
  }
}

/// A conflict of the degrees alone is said once; the other keys follow.
void LayoutTree::grow_family(Layout degrees) {
  const TrainingSpec& training = pricing_.training();
  const ClusterSpec& cluster = pricing_.cluster();
  TrainingSpec whole_batch = training;  // that any dp divides
  whole_batch.global_batch = degrees.data;
  if (auto reason = layout_conflict(pricing_.model(), whole_batch, cluster, degrees)) {
    families_.conflicts.push_back({{.data = degrees.data,
                                    .tensor = degrees.tensor,
                                    .pipeline = degrees.pipeline,
                                    .context = degrees.context,
                                    .expert = degrees.expert,
                                    .expert_tensor = degrees.expert_tensor},
                                   std::move(*reason)});
    return;
  }
  if (training.global_batch % degrees.data != 0) {
    degrees.microbatch = space_.microbatch.named.empty() ? 1 : space_.microbatch.named.front();
    families_.conflicts.push_back({{.data = degrees.data, .microbatch = degrees.microbatch},
                                   *layout_conflict(pricing_.model(), training, cluster, degrees)});
    return;
  }
  if (auto closed = closed_by_keys(pricing_, space_, degrees, family_of(degrees))) {
    families_.conflicts.push_back(std::move(*closed));
    return;
  }
  for (const std::int64_t microbatch : choices_.microbatch(degrees)) {
    degrees.microbatch = microbatch;
    families_.layouts.push_back(degrees);
  }
}

Enumeration LayoutTree::schedules(const Layout& family) const {
  Enumeration ordered;
  Layout layout = family;
  for (ScheduleChoice& choice : choices_.schedule(family)) {
    layout.schedule = std::move(choice.name);
    layout.chunks = choice.chunks;
    layout.split = named_split(space_, layout.pipeline * layout.chunks);
    auto reason = layout_conflict(pricing_.model(), pricing_.training(), pricing_.cluster(), layout);
    if (!reason && skeletons_.find(layout) == nullptr) reason = skeletons_.why_none(layout);
    if (!reason) {
      ordered.layouts.push_back(layout);
      continue;
    }
    LayoutRequest keys{.data = layout.data,
                       .tensor = layout.tensor,
                       .pipeline = layout.pipeline,
                       .chunks = layout.chunks,
                       .microbatch = layout.microbatch,
                       .schedule = layout.schedule};
    if (!layout.split.empty()) keys.split = layout.split;
    ordered.conflicts.push_back({std::move(keys), std::move(*reason)});
  }
  return ordered;
}

Enumeration LayoutTree::cores(const Layout& family) const {
  Enumeration ordered = schedules(family);
  Enumeration cores{.conflicts = std::move(ordered.conflicts)};
  for (const Layout& schedule : ordered.layouts) append_found(cores, passes(schedule));
  return cores;
}

/// Returns the cores of one schedule of a family.
Enumeration LayoutTree::passes(const Layout& schedule) const {
  Enumeration cores;
  Layout core = schedule;
  for (const int zero : choices_.zero(schedule)) {
    core.zero = zero;
    LayoutRequest known = family_of(core);
    known.zero = zero;
    if (auto closed = closed_by_keys(pricing_, space_, core, known)) {
      cores.conflicts.push_back(std::move(*closed));
      continue;
    }
    for (const bool sequence_parallel : choices_.sequence_parallel(schedule)) {
      core.sequence_parallel = sequence_parallel;
      for (const Recompute recompute : choices_.recompute()) {
        core.recompute = recompute;
        for (const int rebuilt : choices_.recompute_layers(core)) {
          core.recompute_layers = rebuilt;
          for (const ContextKind kind : choices_.context_kind(schedule)) {
            core.context_kind = kind;
            add_or_reject(cores, core, why_not(core));
          }
        }
      }
    }
  }
  return cores;
}

/// Adds the layouts of the core, split, sharers and order of a layout.
void LayoutTree::add_issues(Enumeration& layouts, Layout layout) const {
  const Layout core = layout;
  for (const int group : choices_.group(core)) {
    layout.group = group;
    for (const std::int64_t bucket_mib : choices_.bucket_mib(core)) {
      layout.bucket_mib = bucket_mib;
      for (const Offload& offload : choices_.offload(layout)) {
        layout.offload = offload;
        add_or_reject(layouts, layout, why_not(layout));
      }
    }
  }
}

Enumeration LayoutTree::layouts(const Layout& core) const {
  Enumeration layouts;
  Layout layout = core;
  for (std::vector<int>& split : splits(core)) {
    layout.split = std::move(split);
    for (const int shard : choices_.shard(core)) {
      layout.shard = shard;
      for (const RankOrder order : choices_.order(core)) {
        layout.order = order;
        add_issues(layouts, layout);
      }
    }
  }
  return layouts;
}

/// The stack's own split, and the balanced one where the user may name it and it is another.
std::vector<std::vector<int>> LayoutTree::splits(const Layout& core) const {
  if (!space_.split.named.empty()) return space_.split.named;
  std::vector<std::vector<int>> splits = {{}};
  const StackSpec* stack = pricing_.stack_of(core);
  if (core.pipeline == 1 || stack == nullptr || stack->can.equal_stages || !stack->can.named_splits) return splits;
  const int parts = core.pipeline * core.chunks;
  const auto own = framework_split(stack->stage_split, static_cast<int>(pricing_.model().layers), parts);
  if (!own) return splits;  // it is balanced already
  std::vector<int> balanced = balanced_split(pricing_, core, skeletons_.find(core)->schedule.stages).split;
  if (balanced != *own) splits.push_back(std::move(balanced));
  return splits;
}

int LayoutTree::fewest_rebuilt_layers(const Layout& core) const {
  const auto layers = static_cast<int>(pricing_.model().layers);
  int fewest = layers;
  for (std::vector<int>& split : splits(core)) {
    const StackSpec* stack = pricing_.stack_of(core);
    if (split.empty() && stack != nullptr)
      split = framework_split(stack->stage_split, layers, core.pipeline * core.chunks).value_or(std::vector<int>{});
    if (split.empty()) split = balanced_split(pricing_, core, skeletons_.find(core)->schedule.stages).split;
    int rebuilt = 0;
    for (const int of_stage : split) rebuilt += std::min(of_stage, core.recompute_layers);
    fewest = std::min(fewest, rebuilt);
  }
  return fewest;
}

/// Returns why the layout cannot exist or is not open; nothing if it is.
std::optional<Rejection> LayoutTree::why_not(const Layout& layout) const {
  auto reason = layout_conflict(pricing_.model(), pricing_.training(), pricing_.cluster(), layout);
  if (!reason) return closed_by_stack(pricing_, space_, layout);
  LayoutRequest keys{.tensor = layout.tensor, .zero = layout.zero, .sequence_parallel = layout.sequence_parallel};
  if (pricing_.graph() != nullptr) keys.recompute = layout.recompute;
  if (layout.recompute_layers > 0) keys.recompute_layers = layout.recompute_layers;
  if (layout.shard > 0) keys.shard = layout.shard;
  if (layout.bucket_mib > 0) keys.bucket_mib = layout.bucket_mib;
  if (layout.order != RankOrder::kStagesApart) keys.order = layout.order;
  if (!layout.split.empty()) keys.split = layout.split;
  return Rejection{std::move(keys), std::move(*reason)};
}

void visit_layouts(Pricing& pricing, const LayoutSpace& space, const std::function<bool(const Layout&)>& visit) {
  const Skeletons skeletons;
  const LayoutTree tree(pricing, space, skeletons);
  for (const Layout& family : tree.families().layouts) {
    for (const Layout& core : tree.cores(family).layouts) {
      for (const Layout& layout : tree.layouts(core).layouts)
        if (!visit(layout)) return;
    }
  }
}

Enumeration enumerate_layouts(Pricing& pricing, const LayoutSpace& space) {
  const Skeletons skeletons;
  const LayoutTree tree(pricing, space, skeletons);
  Enumeration found;
  Conflicts conflicts;
  conflicts.add(tree.families().conflicts);
  for (const Layout& family : tree.families().layouts) {
    Enumeration cores = tree.cores(family);
    conflicts.add(std::move(cores.conflicts));
    for (const Layout& core : cores.layouts) {
      Enumeration below = tree.layouts(core);
      conflicts.add(std::move(below.conflicts));
      std::ranges::move(below.layouts, std::back_inserter(found.layouts));
      if (found.layouts.size() > kMostLayouts)
        throw SpecError(fmt::format(
            "more than {} layouts are open, too many to look at: fix some keys of --layout, as in tp=8,pp=4 or mbs=1",
            kMostLayouts));
    }
  }
  found.conflicts = conflicts.all();
  return found;
}

}}  // namespace plumb::planner
