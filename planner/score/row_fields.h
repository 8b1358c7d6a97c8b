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

/// Returns the whole number at that dotted path; nothing if there is none.
std::optional<std::int64_t> integer_at(const nlohmann::json& row, std::string_view path);

/// Returns the text at that dotted path; empty if there is none.
std::string text_at(const nlohmann::json& row, std::string_view path);

/// Returns the precision that a text names: "mixed fp16" -> fp16; "float8 linear", "MXFP8" -> fp8; "amp_bf16" -> bf16.
/// Nothing for texts that name none (also NVFP4).
std::optional<Precision> precision_in(std::string_view text);

/// Reads "none (not stated)", "selective(attention core)", "full"; per-operation policies count as selective.
std::optional<Recompute> recompute_in(std::string_view text);

/// Returns the catalogue's name of a schedule: "1F1B" (with chunks: interleaved), "interleaved 1F1B", "1F1B-I",
/// "ZB-1p", "ZB-2p", "GPipe", or any name that the catalogue has. An empty text is 1F1B. Returns an empty text if it
/// names none.
std::string schedule_in(std::string_view text, int chunks);

/// Returns the ZeRO stage of `zero`, `zero_equiv`, `sharding`, `fsdp` and `dist_optimizer`; nothing where none says
/// anything.
std::optional<int> zero_stage_in(const nlohmann::json& row);

/// Returns the cluster preset of the device that a free text names: "a100", "h100", "h200", "b200"; empty if it is none
/// of them.
std::string device_preset_in(std::string_view hardware);

/// Returns the gigabytes of a device's memory in a free text: "A100-80GB", "RTX 4090 48 GB"; the first of several.
/// Returns nothing where it names none: 400 GB/s and 80 Gb are rates.
std::optional<double> memory_gb_in(std::string_view hardware);

/// The NICs of a node in a free text: "8x200Gb HDR" (so many of that rate), "400 Gb/s per GPU", "800 Gb/s per node".
struct PrintedNetwork {
  int nics = 0;                      ///< NICs of a node; 0: not said
  double node_bytes_per_second = 0;  ///< rate of all of a node's NICs, each direction
};

/// Returns the NICs that the text names for a node of so many `devices`; nothing where it names no rate.
std::optional<PrintedNetwork> network_in(std::string_view hardware, int devices);

/// Returns the row's model in the JSON form of spec/model_spec.h. The sizes are the row's own; where it has none, those
/// that `dims` gives for its `dims_key`, or those of the model preset of its name. Unless the row says otherwise, a
/// model with a gated MLP has RMS norms and no biases, and another model has layer norms, biases, learned positions and
/// one table for input and output.
nlohmann::json model_fields(const nlohmann::json& row, const nlohmann::json& dims,
                            const std::map<std::string, nlohmann::json>& models);

}}  // namespace plumb::planner
