#pragma once
// An einsum of two tensors, as in "bshd,bthd->bhst": labels that both tensors have and the output has not are summed.

#include <optional>
#include <string>

#include "planner/graph/graph_node.h"

namespace plumb { inline namespace planner {

struct Einsum {
  std::string left, right, output;  ///< labels
  TensorShape shape;
};

/// Returns nothing for an equation of another number of tensors, with dots, or with a label twice in one tensor. Throws
/// SpecError "PLACE: ..." where a label has two sizes.
std::optional<Einsum> einsum_of(const std::string& equation, const TensorShape& left, const TensorShape& right,
                                const std::string& place);

}}  // namespace plumb::planner
