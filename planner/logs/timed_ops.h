#pragma once
// The operations of a schedule by the names under which trainers time them.

#include <string_view>
#include <vector>

#include "schedules/action.h"

namespace plumb { inline namespace planner {

/// Returns the operations that a timer of Megatron-LM or DeepSpeed adds up, or that a scope of a pipeline trace spans;
/// empty where it times something else.
///
/// Sources: NVIDIA/Megatron-LM megatron/core/pipeline_parallel/schedules.py, microsoft/DeepSpeed
/// deepspeed/runtime/engine.py, flagos-ai/Megatron-LM-FL megatron/megalens (the scopes).
std::vector<Op> timed_ops(std::string_view name);

}}  // namespace plumb::planner
