#pragma once
// The free text and the several spellings of published rows, field by field.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "planner/spec/layout.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {

/// The whole number at that dotted path; nothing if there is none.
std::optional<std::int64_t> integer_at(const nlohmann::json& row, std::string_view path);

/// The text at that dotted path; empty if there is none.
std::string text_at(const nlohmann::json& row, std::string_view path);

/// "mixed fp16" -> fp16; "float8 linear", "MXFP8" -> fp8; "amp_bf16" -> bf16; nothing for what none is named in (NVFP4
/// also).
std::optional<Precision> precision_in(std::string_view text);

/// "none (not stated)", "selective(attention core)", "full"; per-operation policies count as selective.
std::optional<Recompute> recompute_in(std::string_view text);

/// A name of the catalogue: "1F1B" (with chunks: interleaved), "interleaved 1F1B", "1F1B-I", "ZB-1p", "ZB-2p", "GPipe",
/// or any name that the catalogue has. Nothing printed is 1F1B. Empty if the text names none.
std::string schedule_in(std::string_view text, int chunks);

/// The ZeRO stage of `zero`, `zero_equiv`, `sharding`, `fsdp` and `dist_optimizer`; 0 where none says anything.
int zero_stage_in(const nlohmann::json& row);

/// The cluster preset of the device that a free text names: "a100", "h100", "h200", "b200"; empty: none of them.
std::string device_preset_in(std::string_view hardware);

/// Gigabytes of a device's memory in a free text: "A100-80GB", "RTX 4090 48 GB"; of several the first. Nothing where it
/// names none: 400 GB/s are a rate, 80 Gb another.
std::optional<double> memory_gb_in(std::string_view hardware);

/// What a free text says of a node's NICs: "8x200Gb HDR" (so many of that rate), "400 Gb/s per GPU", "800 Gb/s per
/// node".
struct PrintedNetwork {
  int nics = 0;                      ///< of a node; 0: not said
  double node_bytes_per_second = 0;  ///< of all of a node's NICs, each direction
};

/// `devices`: of a node. Nothing where the text names no rate.
std::optional<PrintedNetwork> network_in(std::string_view hardware, int devices);

/// The row's model in the JSON form of spec/model_spec.h: the sizes of the row itself; where it has none, those that
/// `dims` gives for its `dims_key`, or the model preset of its name. A model with a gated MLP has RMS norms and no
/// biases, another has layer norms, biases, learned positions and one table for input and output, unless the row says
/// otherwise.
nlohmann::json model_fields(const nlohmann::json& row, const nlohmann::json& dims,
                            const std::map<std::string, nlohmann::json>& models);

}}  // namespace plumb::planner
