#include "planner/search/enumerate.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "planner/search/stack_conflict.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/limits.h"

namespace plumb { inline namespace planner {
namespace {

template <class T>
std::vector<T> fixed_or(const std::optional<T>& fixed, std::vector<T> open) {
  return fixed ? std::vector<T>{*fixed} : open;
}

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

/// Tokens of a sequence that a rank has at least where nobody asks for context parallelism. The fastest runs of Llama 2
/// and 3 that NVIDIA NeMo prints for sequences of 4K to 1M tokens have as many (docs, performance_long_sequence).
constexpr std::int64_t kShortestSlice = 1 << 14;

struct ScheduleChoice {
  std::string name;
  int chunks = 1;
};

/// The names that are open where nobody names a schedule: those that the framework runs, but none that is made anew for
/// costs; the common ones where nothing is known of a framework.
std::vector<std::string> open_schedules(const StackSpec* stack) {
  if (stack == nullptr || stack->can.schedules.empty()) return {"1f1b", "gpipe", "interleaved"};
  std::vector<std::string> names = stack->can.schedules;
  std::erase_if(names, [](const std::string& name) { return catalogue_entry(name).made_for_costs; });
  return names;
}

/// The numbers of chunks of a schedule in that many pipeline ranks.
std::vector<int> chunk_choices(const CatalogueEntry& entry, const ModelSpec& model, int pipeline,
                               const LayoutRequest& request) {
  if (request.chunks) return {*request.chunks};
  if (!entry.takes_chunks) return {entry.chunks};
  // The nodes of a graph are no layers alike: more chunks than a few are only more messages.
  std::vector<int> open = model.graph ? std::vector{1, 2, 4} : divisors(static_cast<int>(model.layers / pipeline));
  if (!request.schedule) std::erase(open, 1);  // what is not interleaved has a name of its own
  return open;
}

std::vector<ScheduleChoice> schedule_choices(const ModelSpec& model, const StackSpec* stack, int pipeline,
                                             const LayoutRequest& request) {
  std::vector<ScheduleChoice> choices;
  if (request.schedule && *request.schedule != "interleaved") {
    const CatalogueEntry& entry = catalogue_entry(*request.schedule);
    const int own = entry.takes_chunks ? 1 : entry.chunks;
    return {{*request.schedule, request.chunks.value_or(own)}};
  }
  if (!request.schedule && pipeline == 1) {
    if (request.chunks.value_or(1) > 1) return {{"interleaved", *request.chunks}};  // a conflict, and said so
    return {{"1f1b", 1}};
  }
  for (const std::string& name : fixed_or(request.schedule, open_schedules(stack))) {
    const CatalogueEntry& entry = catalogue_entry(name);
    for (const int chunks : chunk_choices(entry, model, pipeline, request)) {
      const bool possible = request.schedule || (entry.takes_chunks ? chunks > 1 : chunks == entry.chunks);
      if (possible) choices.push_back({name, chunks});
    }
  }
  return choices;
}

class Enumerator {
 public:
  Enumerator(const Pricing& pricing, const LayoutRequest& request)
      : pricing_(pricing),
        model_(pricing.model()),
        training_(pricing.training()),
        devices_(pricing.cluster().devices),
        request_(request) {}

  Enumeration run() {
    for (const int tensor : fixed_or(request_.tensor, model_.graph ? std::vector{1} : divisors(devices_))) {
      for (const int pipeline : fixed_or(request_.pipeline, divisors(devices_))) {
        for (const int context : context_choices(tensor, pipeline)) expert_degrees(tensor, pipeline, context);
      }
    }
    if (result_.layouts.empty() && result_.conflicts.empty()) {
      conflict(request_, "no product of the fixed degrees divides the devices: free one of dp, tp and pp");
    }
    return std::move(result_);
  }

 private:
  /// Frameworks divide sequences. The one of three fixed degrees is that of whole sequences.
  std::vector<int> context_choices(int tensor, int pipeline) const {
    if (request_.context) return {*request_.context};
    const bool fixed = request_.data && request_.tensor && request_.pipeline;
    const bool whole =
        model_.graph || is_of_own_executor(training_) || (training_.stack && !training_.stack->can.context);
    const std::int64_t others = std::int64_t{tensor} * pipeline;
    if (fixed || whole || devices_ % others != 0) return {1};
    std::vector<int> choices = divisors(static_cast<int>(devices_ / others));
    std::erase_if(choices, [&](int context) {
      return context > 1 && (training_.sequence % context != 0 || training_.sequence / context < kShortestSlice);
    });
    return choices;
  }

  void expert_degrees(int tensor, int pipeline, int context) {
    const std::int64_t others = std::int64_t{tensor} * pipeline * context;
    if (!request_.data && devices_ % others != 0) return;
    const int data = request_.data.value_or(static_cast<int>(devices_ / others));
    Layout layout{.data = data, .tensor = tensor, .pipeline = pipeline, .context = context};
    for (const int expert : expert_choices(layout)) {
      layout.expert = expert;
      // Plumb's own executor divides every expert like an MLP.
      const bool like_mlp = !training_.stack && model_.experts > 0;
      layout.expert_tensor = request_.expert_tensor.value_or(like_mlp ? tensor : 1);
      degrees(layout);
    }
  }

  /// All degrees that divide the experts and the ranks of a stage; 1 where there are none.
  std::vector<int> expert_choices(const Layout& layout) const {
    if (request_.expert) return {*request_.expert};
    if (model_.experts == 0) return {1};
    std::vector<int> choices;
    for (const int expert : divisors(static_cast<int>(model_.experts))) {
      const int shared = is_of_own_executor(training_) ? 1 : layout.tensor;  // the own executor has etp=tp
      if (layout.data * layout.context * shared % expert == 0) choices.push_back(expert);
    }
    return choices;
  }

  /// A conflict of the degrees alone is said once; the other keys follow.
  void degrees(Layout layout) {
    const bool data_follows = !request_.data;
    if (!data_follows && std::int64_t{layout.data} * layout.tensor * layout.pipeline * layout.context != devices_ &&
        (!request_.tensor || !request_.pipeline)) {
      return;  // another choice of the open degrees makes the product
    }
    if (auto reason = layout_conflict(model_, whole_batch(layout), devices_, layout)) {
      conflict({.data = layout.data,
                .tensor = layout.tensor,
                .pipeline = layout.pipeline,
                .context = layout.context,
                .expert = layout.expert,
                .expert_tensor = layout.expert_tensor},
               std::move(*reason));
      return;
    }
    if (training_.global_batch % layout.data != 0) {
      layout.microbatch = request_.microbatch.value_or(1);
      conflict({.data = layout.data, .microbatch = layout.microbatch},
               *layout_conflict(model_, training_, devices_, layout));
      return;
    }
    for (const ScheduleChoice& choice :
         schedule_choices(model_, training_.stack ? &*training_.stack : nullptr, layout.pipeline, request_)) {
      layout.schedule = choice.name;
      layout.chunks = choice.chunks;
      layout.group = request_.group.value_or(0);
      layout.offload = request_.offload.value_or(Offload{});
      layout.bucket_mib = request_.bucket_mib.value_or(0);
      layout.split = request_.split.value_or(std::vector<int>{});
      for (const std::int64_t microbatch :
           fixed_or(request_.microbatch, divisors(training_.global_batch / layout.data))) {
        layout.microbatch = microbatch;
        shape(layout);
      }
    }
  }

  void shape(Layout layout) {
    if (auto reason = layout_conflict(model_, training_, devices_, layout)) {
      LayoutRequest keys{.data = layout.data,
                         .tensor = layout.tensor,
                         .pipeline = layout.pipeline,
                         .chunks = layout.chunks,
                         .microbatch = layout.microbatch,
                         .schedule = layout.schedule};
      if (!layout.split.empty()) keys.split = layout.split;
      conflict(std::move(keys), std::move(*reason));
      return;
    }
    const std::vector<bool> sequence_choices = layout.tensor > 1 ? std::vector{false, true} : std::vector{false};
    const std::vector<int> zero_choices = layout.data > 1 ? std::vector{0, 1, 2, 3} : std::vector{0};
    std::vector<Recompute> recompute_choices = {Recompute::kNone, Recompute::kSelective, Recompute::kFull};
    if (model_.graph) {
      recompute_choices = {Recompute::kNone};
      if (has_blocks(*model_.graph)) recompute_choices.push_back(Recompute::kFull);
    }
    for (const int zero : fixed_or(request_.zero, zero_choices)) {
      for (const bool sequence_parallel : fixed_or(request_.sequence_parallel, sequence_choices)) {
        for (const Recompute recompute : fixed_or(request_.recompute, recompute_choices)) {
          layout.zero = zero;
          layout.shard = request_.shard.value_or(0);
          layout.sequence_parallel = sequence_parallel;
          layout.recompute = recompute;
          if (auto reason = layout_conflict(model_, training_, devices_, layout)) {
            conflict({.tensor = layout.tensor,
                      .zero = zero,
                      .shard = request_.shard,
                      .sequence_parallel = sequence_parallel},
                     std::move(*reason));
          } else if (auto closed = closed_by_stack(pricing_, request_, layout)) {
            conflict(std::move(closed->layout), std::move(closed->reason));
          } else {
            result_.layouts.push_back(layout);
            if (result_.layouts.size() > kMostLayouts)
              throw SpecError(
                  fmt::format("more than {} layouts are open, too many to look at: fix some keys of --layout, as in "
                              "tp=8,pp=4 or mbs=1",
                              kMostLayouts));
          }
        }
      }
    }
  }

  void conflict(LayoutRequest keys, std::string reason) {
    if (said_.insert(to_text(keys)).second) result_.conflicts.push_back({std::move(keys), std::move(reason)});
  }

  /// The training with a batch that any dp divides: for what is no question of the batch.
  TrainingSpec whole_batch(const Layout& layout) const {
    TrainingSpec training = training_;
    training.global_batch = layout.data;
    return training;
  }

  const Pricing& pricing_;
  const ModelSpec& model_;
  const TrainingSpec& training_;
  int devices_;
  const LayoutRequest& request_;
  Enumeration result_;
  std::set<std::string> said_;
};

}  // namespace

Enumeration enumerate_layouts(const Pricing& pricing, const LayoutRequest& request) {
  return Enumerator(pricing, request).run();
}

}}  // namespace plumb::planner
