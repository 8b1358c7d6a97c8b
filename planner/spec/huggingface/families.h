#pragma once
// The families of models whose configurations are read, by the layers that they are made of. Each reader is named by
// its model_type; defaults are those of the family's configuration class in the transformers library.

#include <span>
#include <string_view>

#include "planner/spec/huggingface/config.h"

namespace plumb { inline namespace planner {

struct HuggingFaceFamily {
  std::string_view model_type;
  ModelSpec (*read)(HuggingFaceConfig&);
};

std::span<const HuggingFaceFamily> rms_families();          ///< RMS norms, gated MLPs, RoPE
std::span<const HuggingFaceFamily> expert_families();       ///< mixtures of experts
std::span<const HuggingFaceFamily> layer_norm_families();   ///< layer norms, any MLP and positions
std::span<const HuggingFaceFamily> state_space_families();  ///< Mamba-2
std::span<const HuggingFaceFamily> hybrid_families();       ///< attention and state mixers in one model
std::span<const HuggingFaceFamily> encoder_families();      ///< BERT and its relatives, as graphs of layers

/// Returns the family as which files of that type are read, where it has another name; empty otherwise.
std::string_view family_read_as(std::string_view model_type);
/// Returns a clause that says how a family that is not read differs; empty if none is known.
std::string_view why_not_read(std::string_view model_type);

}}  // namespace plumb::planner
