#pragma once
// What is trained: the batch, the length of a sequence and the number formats. Not how it is laid out (spec/layout.h).
//
//   {"global_batch": 128, "seq": 8192, "precision": "bf16", "gradient_precision": "fp32", "optimizer": "adamw"}

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// tf32: fp32 tensors, products on tensor cores. fp8: products in fp8, weights and activations otherwise bf16.
enum class Precision : std::uint8_t { kFp32, kTf32, kBf16, kFp16, kFp8 };
enum class Optimizer : std::uint8_t { kAdamW, kAdamW8Bit, kAdafactor, kLion, kSgd };

struct TrainingSpec {
  std::int64_t global_batch = 0;                    ///< sequences of one optimizer step, over all replicas
  std::int64_t sequence = 0;                        ///< tokens of a sequence
  Precision precision = Precision::kBf16;           ///< of weights and activations in compute
  Precision gradient_precision = Precision::kFp32;  ///< of the gradient buffer that accumulates and is reduced
  Optimizer optimizer = Optimizer::kAdamW;
  std::optional<StackSpec> stack;  ///< the framework that trains; none: Plumb's own executor

  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

/// "fp32", "tf32", "bf16", "fp16", "fp8".
std::string_view precision_name(Precision precision);

/// Of weights and activations: 4 for fp32 and tf32, otherwise 2.
std::int64_t bytes_per_element(Precision precision);

/// "adamw", "adamw-8bit", "adafactor", "lion", "sgd" (with momentum).
std::string_view optimizer_name(Optimizer optimizer);

/// The optimizer of that name. Throws SpecError naming `place` and the names that exist.
Optimizer optimizer_from_name(std::string_view name, std::string_view place);

/// The precision of that name. Throws SpecError naming `place` and the names that exist.
Precision precision_from_name(std::string_view name, std::string_view place);

/// Bytes of optimizer state for a parameter: the moments, and an fp32 master copy of the weights where the computing
/// precision is narrower (Micikevicius et al. 2018). Moments: AdamW two in fp32 (Kingma & Ba 2015), its 8-bit form one
/// byte each (Dettmers et al. 2022; their scales are counted by price/memory/stage_memory.h), Lion (Chen et al. 2023)
/// and SGD's momentum one in fp32, Adafactor (Shazeer & Stern 2018) sums by row and column, which
/// price/memory/stage_memory.h counts.
std::int64_t optimizer_bytes_per_parameter(const TrainingSpec& training);

/// Bytes that one update of a parameter moves: reads and zeroes the gradient, reads and writes the moments and the fp32
/// weight, and writes the computing copy where that is another.
std::int64_t optimizer_traffic_per_parameter(const TrainingSpec& training);

std::int64_t tokens_per_step(const TrainingSpec& training);

/// JSON form. `precision` defaults to bf16; `gradient_precision` to fp32 (Megatron-LM's default for bf16 training);
/// `optimizer` to adamw; `stack` is an object (spec/stack_spec.h). Reading throws SpecError with the place of what is
/// wrong.
TrainingSpec training_from_json(const nlohmann::json& json, const std::string& place);
TrainingSpec parse_training(std::string_view text, const std::string& file);
nlohmann::ordered_json to_json(const TrainingSpec& training);

}}  // namespace plumb::planner
