#include "planner/evaluate/data_parallel_price.h"

#include <algorithm>
#include <optional>

#include "planner/price/collective/nccl_occupied_units.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::int64_t kBytesPerMib = 1 << 20;

/// Returns the bytes of one element of a gradient.
std::int64_t gradient_bytes(const Pricing& pricing, const Layout& layout) {
  const StackSpec* stack = pricing.stack_of(layout);
  const bool own_width = stack != nullptr && stack->gradient_bytes > 0;
  return own_width ? stack->gradient_bytes : bytes_per_element(pricing.training().gradient_precision);
}

SegmentsByPart::value_type collective(CollectiveKind kind, Seconds seconds, std::int64_t bytes) {
  SegmentsByPart::value_type segments(1);
  segments.front() = {.kind = Segment::Kind::kCollective,
                      .seconds = seconds,
                      .group = Group::kData,
                      .collective = kind,
                      .bytes = bytes};
  return segments;
}

Seconds replicated_time(Pricing& pricing, const Replicated& stage, CollectiveKind kind, std::int64_t bytes) {
  Seconds time{0};
  if (stage.parameters > 0) {
    time += pricing.collective_time(stage.groups.sharers, kind, stage.parameters * bytes);
  }
  if (stage.expert_parameters > 0) {
    time += pricing.collective_time(stage.expert_groups.sharers, kind, stage.expert_parameters * bytes);
  }
  return time;
}

/// Returns the time of the sum of every share over its copies.
Seconds copies_time(Pricing& pricing, const Replicated& stage, std::int64_t bytes) {
  Seconds time{0};
  const auto add = [&](const Pricing::ReplicaGroups& groups, std::int64_t parameters) {
    if (groups.copies.ranks == 1 || parameters == 0) return;
    const std::int64_t share = (parameters + groups.sharers.ranks - 1) / groups.sharers.ranks;
    time += pricing.collective_time(groups.copies, CollectiveKind::kAllReduce, share * bytes);
  };
  add(stage.groups, stage.parameters);
  add(stage.expert_groups, stage.expert_parameters);
  return time;
}

Seconds reduction_time(Pricing& pricing, const Replicated& stage, CollectiveKind kind, std::int64_t bytes) {
  return replicated_time(pricing, stage, kind, bytes) + copies_time(pricing, stage, bytes);
}

/// Share of the stage that its largest layer is, which nothing hides where collectives go layer by layer.
double largest_share(const Replicated& stage) {
  return static_cast<double>(stage.largest_layer) /
         static_cast<double>(std::max<std::int64_t>(1, stage.parameters + stage.expert_parameters));
}

/// Returns the time in which kernels move so many bytes for each of the stage's parameters.
Seconds copy_time(const Pricing& pricing, const Replicated& stage, double bytes) {
  const DeviceSpec& device = pricing.cluster().device;
  return Seconds{static_cast<double>(stage.parameters + stage.expert_parameters) * bytes /
                 (device.memory_bytes_per_second * device.memory_efficiency)};
}

/// Share of the device that collectives of the stage's replicas hold.
double held_share(const Pricing& pricing, const GroupPlacement& group) {
  const std::optional<NcclMachine>& nccl = pricing.collectives().nccl;
  const int units = pricing.cluster().device.compute_units;
  if (!nccl || units <= 1) return 0;
  return std::min(1.0, static_cast<double>(occupied_units(*nccl, group)) / units);
}

}  // namespace

DataParallelPrice data_parallel_price(Pricing& pricing, const Layout& layout, const Replicated& stage, Seconds forward,
                                      Seconds backward, const std::vector<GradientBucket>& buckets) {
  DataParallelPrice price;
  if (stage.groups.sharers.ranks * stage.groups.copies.ranks == 1) return price;
  const TrainingSpec& training = pricing.training();
  const StackSpec* stack = pricing.stack_of(layout);
  const std::int64_t gradient = gradient_bytes(pricing, layout);
  const bool narrow = stack != nullptr && stack->fp8.weight_gathers && training.precision == Precision::kFp8;
  const std::int64_t weight = narrow ? 1 : bytes_per_element(training.precision);
  const CollectiveKind reduction = layout.zero == 0 ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter;
  Seconds reduce = reduction_time(pricing, stage, reduction, gradient);
  Seconds gather = layout.zero == 0 ? Seconds{0} : replicated_time(pricing, stage, CollectiveKind::kAllGather, weight);
  if (stack != nullptr && layout.zero == 3) {
    const Seconds gather_copy = copy_time(pricing, stage, stack->gather_copy_bytes);
    const Seconds reduce_copy = copy_time(pricing, stage, stack->reduce_copy_bytes);
    forward += gather_copy;
    backward += gather_copy + reduce_copy;
    const double held = held_share(pricing, stage.groups.sharers);
    price.forward_slowed = gather_copy + held * std::min(gather, forward);
    price.backward_slowed = gather_copy + reduce_copy + held * std::min(gather + reduce, backward);
    // Beside the backward both go over the same links; the gather has its own action, which is as long as a forward's.
    const double first = largest_share(stage);
    const Seconds beside_backward = std::max(first * (gather + reduce), gather + reduce - backward);
    gather = std::max(first * gather, gather - forward);
    reduce = std::max(first * reduce, beside_backward - gather);
  } else if (stack != nullptr) {
    reduce = std::max(Seconds{0}, reduce - stack->data_hidden * backward);
    gather = std::max(Seconds{0}, gather - stack->gather_hidden * forward);
  }
  for (const GradientBucket& bucket : buckets) {
    Replicated held = stage;
    held.parameters = bucket.parameters;
    held.expert_parameters = bucket.expert_parameters;
    price.reduce_grad.push_back(collective(reduction, reduction_time(pricing, held, reduction, gradient),
                                           (bucket.parameters + bucket.expert_parameters) * gradient));
    price.bucket_offsets.push_back(bucket.offset);
  }
  const std::int64_t parameters = stage.parameters + stage.expert_parameters;
  if (buckets.empty()) price.reduce_grad.push_back(collective(reduction, reduce, parameters * gradient));
  if (layout.zero > 0) price.unshard.push_back(collective(CollectiveKind::kAllGather, gather, parameters * weight));
  return price;
}

std::int64_t bucket_parameters(const Pricing& pricing, const Layout& layout) {
  return layout.bucket_mib * kBytesPerMib / gradient_bytes(pricing, layout);
}

}}  // namespace plumb::planner
