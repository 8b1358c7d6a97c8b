#include "planner/search/layout_tree.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/priced_layout.h"
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

}  // namespace

LayoutTree::LayoutTree(Pricing& pricing, LayoutSpace space, Skeletons& skeletons)
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
  const int devices = pricing_.cluster().devices;
  TrainingSpec whole_batch = training;  // that any dp divides
  whole_batch.global_batch = degrees.data;
  if (auto reason = layout_conflict(pricing_.model(), whole_batch, devices, degrees)) {
    return conflict({.data = degrees.data,
                     .tensor = degrees.tensor,
                     .pipeline = degrees.pipeline,
                     .context = degrees.context,
                     .expert = degrees.expert,
                     .expert_tensor = degrees.expert_tensor},
                    std::move(*reason));
  }
  if (training.global_batch % degrees.data != 0) {
    degrees.microbatch = space_.microbatch.named.empty() ? 1 : space_.microbatch.named.front();
    return conflict({.data = degrees.data, .microbatch = degrees.microbatch},
                    *layout_conflict(pricing_.model(), training, devices, degrees));
  }
  if (auto closed = closed_by_keys(pricing_, space_, degrees, family_of(degrees)))
    return conflict(std::move(closed->layout), std::move(closed->reason));
  for (const std::int64_t microbatch : choices_.microbatch(degrees)) {
    degrees.microbatch = microbatch;
    families_.push_back(degrees);
  }
}

std::vector<Layout> LayoutTree::schedules(const Layout& family) {
  std::vector<Layout> ordered;
  Layout layout = family;
  for (ScheduleChoice& choice : choices_.schedule(family)) {
    layout.schedule = std::move(choice.name);
    layout.chunks = choice.chunks;
    layout.split = named_split(space_, layout.pipeline * layout.chunks);
    auto reason = layout_conflict(pricing_.model(), pricing_.training(), pricing_.cluster().devices, layout);
    if (!reason && skeletons_.find(layout) == nullptr) reason = skeletons_.why_none(layout);
    if (!reason) {
      ordered.push_back(layout);
      continue;
    }
    LayoutRequest keys{.data = layout.data,
                       .tensor = layout.tensor,
                       .pipeline = layout.pipeline,
                       .chunks = layout.chunks,
                       .microbatch = layout.microbatch,
                       .schedule = layout.schedule};
    if (!layout.split.empty()) keys.split = layout.split;
    conflict(std::move(keys), std::move(*reason));
  }
  return ordered;
}

std::vector<Layout> LayoutTree::cores(const Layout& family) {
  std::vector<Layout> cores;
  for (const Layout& ordered : schedules(family)) add_passes(ordered, cores);
  return cores;
}

/// Adds the cores of one schedule of a family.
void LayoutTree::add_passes(const Layout& schedule, std::vector<Layout>& cores) {
  Layout core = schedule;
  for (const int zero : choices_.zero(schedule)) {
    core.zero = zero;
    LayoutRequest known = family_of(core);
    known.zero = zero;
    if (auto closed = closed_by_keys(pricing_, space_, core, known)) {
      conflict(std::move(closed->layout), std::move(closed->reason));
      continue;
    }
    for (const bool sequence_parallel : choices_.sequence_parallel(schedule)) {
      core.sequence_parallel = sequence_parallel;
      for (const Recompute recompute : choices_.recompute()) {
        core.recompute = recompute;
        for (const ContextKind kind : choices_.context_kind(schedule)) {
          core.context_kind = kind;
          if (can_be(core)) cores.push_back(core);
        }
      }
    }
  }
}

std::vector<Layout> LayoutTree::layouts(const Layout& core) {
  std::vector<Layout> layouts;
  Layout layout = core;
  for (std::vector<int>& split : splits(core)) {
    layout.split = std::move(split);
    for (const int shard : choices_.shard(core)) {
      layout.shard = shard;
      for (const int group : choices_.group(core)) {
        layout.group = group;
        for (const std::int64_t bucket_mib : choices_.bucket_mib(core)) {
          layout.bucket_mib = bucket_mib;
          for (const Offload& offload : choices_.offload()) {
            layout.offload = offload;
            if (can_be(layout)) layouts.push_back(layout);
          }
        }
      }
    }
  }
  return layouts;
}

/// The stack's own split, and the balanced one where the user may name it and it is another.
std::vector<std::vector<int>> LayoutTree::splits(const Layout& core) {
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

/// Returns true if the layout can exist and is open; otherwise it is a conflict.
bool LayoutTree::can_be(const Layout& layout) {
  if (auto reason = layout_conflict(pricing_.model(), pricing_.training(), pricing_.cluster().devices, layout)) {
    LayoutRequest keys{.tensor = layout.tensor, .zero = layout.zero, .sequence_parallel = layout.sequence_parallel};
    if (pricing_.graph() != nullptr) keys.recompute = layout.recompute;
    if (layout.shard > 0) keys.shard = layout.shard;
    if (!layout.split.empty()) keys.split = layout.split;
    conflict(std::move(keys), std::move(*reason));
    return false;
  }
  if (auto closed = closed_by_stack(pricing_, space_, layout)) {
    conflict(std::move(closed->layout), std::move(closed->reason));
    return false;
  }
  return true;
}

void LayoutTree::conflict(LayoutRequest keys, std::string reason) {
  if (said_.insert(to_text(keys)).second) conflicts_.push_back({std::move(keys), std::move(reason)});
}

Enumeration enumerate_layouts(Pricing& pricing, const LayoutSpace& space) {
  Skeletons skeletons;
  LayoutTree tree(pricing, space, skeletons);
  Enumeration found;
  for (const Layout& family : tree.families()) {
    for (const Layout& core : tree.cores(family)) {
      for (Layout& layout : tree.layouts(core)) found.layouts.push_back(std::move(layout));
      if (found.layouts.size() > kMostLayouts)
        throw SpecError(fmt::format(
            "more than {} layouts are open, too many to look at: fix some keys of --layout, as in tp=8,pp=4 or mbs=1",
            kMostLayouts));
    }
  }
  found.conflicts = tree.conflicts();
  return found;
}

}}  // namespace plumb::planner
