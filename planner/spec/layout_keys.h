#pragma once
// The keys of a layout, each with its place in a Layout and in a LayoutRequest, for code that treats all keys alike.
//
//   visit_layout_keys([&](std::string_view key, auto answer, auto question) { request.*question = layout.*answer; });

#include <string_view>

#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

/// Calls visit(key, member of Layout, member of LayoutRequest) for every key but `split`, which a layout may leave to be
/// balanced.
template <class Visit>
void visit_layout_keys(const Visit& visit) {
  visit("dp", &Layout::data, &LayoutRequest::data);
  visit("tp", &Layout::tensor, &LayoutRequest::tensor);
  visit("pp", &Layout::pipeline, &LayoutRequest::pipeline);
  visit("cp", &Layout::context, &LayoutRequest::context);
  visit("ep", &Layout::expert, &LayoutRequest::expert);
  visit("etp", &Layout::expert_tensor, &LayoutRequest::expert_tensor);
  visit("v", &Layout::chunks, &LayoutRequest::chunks);
  visit("zero", &Layout::zero, &LayoutRequest::zero);
  visit("shard", &Layout::shard, &LayoutRequest::shard);
  visit("sp", &Layout::sequence_parallel, &LayoutRequest::sequence_parallel);
  visit("mbs", &Layout::microbatch, &LayoutRequest::microbatch);
  visit("recompute", &Layout::recompute, &LayoutRequest::recompute);
  visit("offload", &Layout::offload, &LayoutRequest::offload);
  visit("schedule", &Layout::schedule, &LayoutRequest::schedule);
  visit("group", &Layout::group, &LayoutRequest::group);
  visit("bucket_mib", &Layout::bucket_mib, &LayoutRequest::bucket_mib);
}

}}  // namespace plumb::planner
