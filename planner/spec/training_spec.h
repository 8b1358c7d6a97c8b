#pragma once
// The training: the batch, the length of a sequence and the number formats. Its layout is in spec/layout.h.
//
//   {"global_batch": 128, "seq": 8192, "precision": "bf16", "gradient_precision": "fp32", "optimizer": "adamw"}

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// tf32: fp32 tensors, products on tensor cores. fp8, nvfp4: products of quantized weights and activations, which are
/// otherwise bf16. NVFP4 has 4-bit elements with an 8-bit scale for each 16 of them (NVIDIA 2025).
enum class Precision : std::uint8_t { kFp32, kTf32, kBf16, kFp16, kFp8, kNvfp4 };
enum class Optimizer : std::uint8_t { kAdamW, kAdamW8Bit, kAdafactor, kLion, kSgd };

struct TrainingSpec {
  std::int64_t global_batch = 0;           ///< sequences of one optimizer step, over all replicas
  std::int64_t sequence = 0;               ///< tokens of a sequence
  Precision precision = Precision::kBf16;  ///< precision of weights and activations in compute
  /// Precision of the gradient buffer that accumulates and is reduced.
  Precision gradient_precision = Precision::kFp32;
  Optimizer optimizer = Optimizer::kAdamW;
  /// The framework that trains. None: Plumb's own executor, or with `stack_assumed` that which is assumed of a layout.
  std::optional<StackSpec> stack;
  std::string stack_assumed;  ///< why the stack is assumed (spec/assumed_stack.h); empty: it was named

  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

bool is_of_own_executor(const TrainingSpec& training);

/// Returns "fp32", "tf32", "bf16", "fp16", "fp8" or "nvfp4".
std::string_view precision_name(Precision precision);

inline constexpr std::int64_t kFp32Bytes = 4;

/// Returns the bytes of a weight or an activation: those of fp32 for it and tf32, otherwise 2.
std::int64_t bytes_per_element(Precision precision);

/// Returns true if products of weights run on quantized copies: fp8 and nvfp4.
bool is_quantized(Precision precision);

/// Returns the bytes of an element that is kept or sent quantized, scales of blocks included; bytes_per_element() where
/// nothing is quantized.
double quantized_bytes(Precision precision);

/// Returns "adamw", "adamw-8bit", "adafactor", "lion" or "sgd" (with momentum).
std::string_view optimizer_name(Optimizer optimizer);

/// Returns the optimizer of that name. Throws SpecError naming `place` and the names that exist.
Optimizer optimizer_from_name(std::string_view name, std::string_view place);

/// Returns the precision of that name. Throws SpecError naming `place` and the names that exist.
Precision precision_from_name(std::string_view name, std::string_view place);

/// Returns the bytes of optimizer state for a parameter: the moments, and an fp32 master copy of the weights where the
/// computing precision is narrower (Micikevicius et al. 2018). AdamW has two moments in fp32 (Kingma & Ba 2015), its
/// 8-bit form two of one byte (Dettmers et al. 2022), Lion (Chen et al. 2023) and SGD with momentum one in fp32. The
/// scales of the 8-bit form and Adafactor's sums by row and column (Shazeer & Stern 2018) are counted in
/// price/memory/stage_memory.h.
std::int64_t optimizer_bytes_per_parameter(const TrainingSpec& training);

/// Returns the bytes that one update of a parameter moves: it reads and zeroes the gradient, reads and writes the
/// moments and the fp32 weight, and writes the computing copy where that is another.
std::int64_t optimizer_traffic_per_parameter(const TrainingSpec& training);

std::int64_t tokens_per_step(const TrainingSpec& training);

/// The JSON form: `precision` defaults to bf16; `gradient_precision` to fp32 (Megatron-LM's default for bf16 training);
/// `optimizer` to adamw; `stack` is an object (spec/stack_spec.h), and `stack_assumed` the reason why it was assumed, if
/// it was. Reading throws SpecError with the place of what is
/// wrong.
TrainingSpec training_from_json(const nlohmann::json& json, const std::string& place);
TrainingSpec parse_training(std::string_view text, const std::string& file);
nlohmann::ordered_json to_json(const TrainingSpec& training);

}}  // namespace plumb::planner
