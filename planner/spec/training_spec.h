#pragma once
// What is trained: the batch, the length of a sequence and the number formats. Not how it is laid out (spec/layout.h).
//
//   {"global_batch": 128, "seq": 8192, "precision": "bf16", "gradient_precision": "fp32", "optimizer": "adamw"}

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace plumb {

enum class Precision : std::uint8_t { kFp32, kBf16, kFp16 };
enum class Optimizer : std::uint8_t { kAdamW };

struct TrainingSpec {
  std::int64_t global_batch = 0;                    ///< sequences of one optimizer step, over all replicas
  std::int64_t sequence = 0;                        ///< tokens of a sequence
  Precision precision = Precision::kBf16;           ///< of weights and activations in compute
  Precision gradient_precision = Precision::kFp32;  ///< of the gradient buffer that accumulates and is reduced
  Optimizer optimizer = Optimizer::kAdamW;

  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

/// "fp32", "bf16", "fp16".
std::string_view precision_name(Precision precision);
std::int64_t bytes_per_element(Precision precision);

/// The precision of that name. Throws SpecError naming `place` and the names that exist.
Precision precision_from_name(std::string_view name, std::string_view place);

/// Bytes of optimizer state for a parameter: AdamW keeps two fp32 moments (Kingma & Ba 2015), and an fp32 master copy
/// of the weights where the computing precision is narrower (Micikevicius et al. 2018): 8 or 12.
std::int64_t optimizer_bytes_per_parameter(const TrainingSpec& training);

/// Bytes that one AdamW update of a parameter moves: reads and zeroes the gradient, reads and writes both moments and
/// the fp32 weight, and writes the computing copy where that is another.
std::int64_t optimizer_traffic_per_parameter(const TrainingSpec& training);

std::int64_t tokens_per_step(const TrainingSpec& training);

/// JSON form. `precision` defaults to bf16; `gradient_precision` to fp32 (Megatron-LM's default for bf16 training);
/// `optimizer` to adamw. Reading throws SpecError with the place of what is wrong.
TrainingSpec training_from_json(const nlohmann::json& json, const std::string& place);
TrainingSpec parse_training(std::string_view text, const std::string& file);
nlohmann::ordered_json to_json(const TrainingSpec& training);

}  // namespace plumb
