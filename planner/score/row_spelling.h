#pragma once
// Rows as people write them are translated to the published schema's names.
//
//   in_schema({"num_gpus": "64", "tensor_parallel_size": 8, "measured": {"iteration_time_ms": 900}})
//     -> {"gpus": 64, "tp": 8, "measured": {"step_time_ms": 900}}
//
// A field under the schema's own name stays as it is; another spelling counts only where that name is missing.

#include <nlohmann/json_fwd.hpp>

namespace plumb { inline namespace planner {

/// Returns `printed`, an object, with these changes:
/// - Fields of the row, its `model` and its `measured` get the schema's names, whatever their case, hyphens and
///   underscores:
/// tensor_model_parallel_size, micro_batch_size, num_hidden_layers, tokens/sec/GPU, iteration_time_s ...
/// - Numbers that are written as text ("1,024") become numbers.
/// - `named` joins the words that name what trained: framework, system, title, and the repository or paper of the source.
/// - A model that is only a name becomes an object with that name. One that is named after a GPT, OPT or BLOOM has their
///   plain MLP, where the row says nothing else.
/// - `recompute` and activation checkpointing as true or false become full or none.
/// - gpus follow from nodes and gpus_per_node, and the other way round.
/// - gbs follows from tokens a step (gbs_tokens, tokens_per_step) and the sequence, or from mbs, ga and the replicas.
/// - Measured tokens_per_s follow from `days` and `tokens` trained on, tflops_per_gpu from petaflops of all devices,
///   mfu_pct
/// from a ratio (`mfu`).
nlohmann::json in_schema(const nlohmann::json& printed);

}}  // namespace plumb::planner
