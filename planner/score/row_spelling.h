#pragma once
// Rows as people write them, in the published schema's names.
//
//   in_schema({"num_gpus": "64", "tensor_parallel_size": 8, "measured": {"iteration_time_ms": 900}})
//     -> {"gpus": 64, "tp": 8, "measured": {"step_time_ms": 900}}
//
// What is printed under the schema's own name stays as it is; another spelling counts only where that is missing.

#include <nlohmann/json_fwd.hpp>

namespace plumb { inline namespace planner {

/// `printed`, an object, with
/// * fields of the row, its `model` and its `measured` under the schema's names, whatever their case, hyphens and
///   underscores: tensor_model_parallel_size, micro_batch_size, num_hidden_layers, tokens/sec/GPU, iteration_time_s
///   ...;
/// * numbers that are written as text ("1,024") as numbers;
/// * a model that is only a name as an object with that name;
/// * `recompute` and activation checkpointing as true or false: full or none;
/// * gpus from nodes and gpus_per_node, and the other way round;
/// * gbs from tokens a step (gbs_tokens, tokens_per_step) and the sequence, or from mbs, ga and the replicas;
/// * measured tokens_per_s from `days` and `tokens` trained on, tflops_per_gpu from petaflops of all devices, mfu_pct
///   from a ratio (`mfu`).
nlohmann::json in_schema(const nlohmann::json& printed);

}}  // namespace plumb::planner
