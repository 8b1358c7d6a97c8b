#pragma once
// The tensors of a forward that are not kept for its backward. R actions compute them again, or the backward itself at
// its beginning (Chen et al. 2016; Korthikanti et al. 2022 for the selective kind).

#include <cstdint>

namespace plumb { inline namespace kernels {

enum class Recompute : std::uint8_t {
  kNone,       ///< all saved tensors are kept
  kSelective,  ///< all but the outputs of norms and activation functions are kept; with a stack, its own choice
  kFull,       ///< only inputs of layers are kept: of each, or of one in so many
  kStage,      ///< only the input of the stage is kept: kFull of a schedule with R actions, as the executor runs it
};

}}  // namespace plumb::kernels
