#pragma once
// The ways in which context parallelism divides a sequence: rings of keys and values (Liu et al. 2023), all-gathered
// keys and values (Llama team 2024), or heads by all-to-all (Jacobs et al. 2023, Ulysses).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace planner {

/// A layout may leave the way to its stack. A stack names one.
enum class ContextKind : std::uint8_t { kRing, kAllGather, kUlysses, kOfStack };

/// Returns "ring", "all-gather", "ulysses" or "of-stack".
std::string_view context_kind_name(ContextKind kind);

/// Returns the names of the first three.
const std::vector<std::string>& context_kind_names();

/// Throws SpecError if the text is none of these names.
ContextKind context_kind_from_name(std::string_view name);

}}  // namespace plumb::planner
