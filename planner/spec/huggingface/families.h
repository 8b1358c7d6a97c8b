#pragma once
// The families of models whose configurations are read, by what their layers are made of. Each reader is named by its
// model_type; defaults are those of the family's configuration class in the transformers library.

#include <span>
#include <string_view>

#include "planner/spec/huggingface/config.h"

namespace plumb {

struct HuggingFaceFamily {
  std::string_view model_type;
  ModelSpec (*read)(HuggingFaceConfig&);
};

std::span<const HuggingFaceFamily> rms_families();         ///< RMS norms, gated MLPs, RoPE
std::span<const HuggingFaceFamily> expert_families();      ///< mixtures of experts
std::span<const HuggingFaceFamily> layer_norm_families();  ///< layer norms, with whatever MLP and positions

}  // namespace plumb
