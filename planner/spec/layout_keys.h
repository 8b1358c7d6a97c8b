#pragma once
// The keys of a layout, each with its place in a Layout and in LayoutKeys, for code that treats all keys alike.
//
//   visit_layout_keys<std::optional>([&](std::string_view key, auto answer, auto question) {
//     request.*question = layout.*answer;
//   });

#include <string>
#include <string_view>

#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

/// Calls visit(key, member of Layout, member of LayoutKeys<Answer> for each Answer) for every key but `split`, which a
/// layout may leave to be balanced.
template <template <typename> class... Answer, class Visit>
void visit_layout_keys(const Visit& visit) {
  visit("dp", &Layout::data, &LayoutKeys<Answer>::data...);
  visit("tp", &Layout::tensor, &LayoutKeys<Answer>::tensor...);
  visit("pp", &Layout::pipeline, &LayoutKeys<Answer>::pipeline...);
  visit("cp", &Layout::context, &LayoutKeys<Answer>::context...);
  visit("cp_kind", &Layout::context_kind, &LayoutKeys<Answer>::context_kind...);
  visit("ep", &Layout::expert, &LayoutKeys<Answer>::expert...);
  visit("etp", &Layout::expert_tensor, &LayoutKeys<Answer>::expert_tensor...);
  visit("v", &Layout::chunks, &LayoutKeys<Answer>::chunks...);
  visit("zero", &Layout::zero, &LayoutKeys<Answer>::zero...);
  visit("shard", &Layout::shard, &LayoutKeys<Answer>::shard...);
  visit("sp", &Layout::sequence_parallel, &LayoutKeys<Answer>::sequence_parallel...);
  visit("mbs", &Layout::microbatch, &LayoutKeys<Answer>::microbatch...);
  visit("recompute", &Layout::recompute, &LayoutKeys<Answer>::recompute...);
  visit("recompute_layers", &Layout::recompute_layers, &LayoutKeys<Answer>::recompute_layers...);
  visit("offload", &Layout::offload, &LayoutKeys<Answer>::offload...);
  visit("schedule", &Layout::schedule, &LayoutKeys<Answer>::schedule...);
  visit("group", &Layout::group, &LayoutKeys<Answer>::group...);
  visit("bucket_mib", &Layout::bucket_mib, &LayoutKeys<Answer>::bucket_mib...);
  visit("order", &Layout::order, &LayoutKeys<Answer>::order...);
  visit("meshes", &Layout::meshes, &LayoutKeys<Answer>::meshes...);
}

/// Return a key's value as it is written behind KEY=.
std::string value_text(std::int64_t number);
std::string value_text(int number);
std::string value_text(bool flag);
std::string value_text(const std::string& name);
std::string value_text(Recompute recompute);
std::string value_text(ContextKind kind);
std::string value_text(const Offload& offload);
std::string value_text(RankOrder order);
std::string value_text(const std::vector<RankMesh>& meshes);
std::string value_text(const std::vector<int>& split);

}}  // namespace plumb::planner
