#pragma once
// The framework that is assumed to train where nobody names one: of those that are described under tools/specs/stacks,
// the one with which such a model is trained in such a layout on such a device.
//
//   if (const auto assumed = assumed_stack(model, cluster, layout)) say(assumed->name, assumed->because);

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// Stacks by their names.
using StackLibrary = std::map<std::string, StackSpec, std::less<>>;

struct AssumedStack {
  std::string_view name;     ///< of the stack
  std::string_view because;  ///< a sentence without its full stop
};

/// Returns the assumed framework:
///   "megatron-lm-2021"  on devices without bf16, of Volta's generation or older;
///   "torchtitan"        where parameters are sharded (ZeRO 3) and stages are not divided;
///   "megatron-core"     on devices without fp8, of Ampere's generation;
///   "nemo-moe"          for mixtures of experts on later devices;
///   "nemo"              for other models on later devices.
/// The oldest of several sites' devices decide. The function returns nothing where Plumb's own executor is meant: layer
/// graphs, clusters whose kernels were measured (`plumb calibrate`), and devices without products in 16 bit.
std::optional<AssumedStack> assumed_stack(const ModelSpec& model, const ClusterSpec& cluster, const Layout& layout);

}}  // namespace plumb::planner
