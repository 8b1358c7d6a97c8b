#pragma once
// A layout in the spelling in which people name it.

#include <string>

#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

/// Returns "TP4 SP PP2x20 CP2 DP32 ZeRO-2 mbs=2 recompute=full": the degrees above 1, x before the stages of a rank, and
/// then the keys that are not as usual, each as planner's to_text writes it. The usual values are no ZeRO, no sequence
/// parallelism, one sample a micro-batch, no recomputation, 1f1b for one stage a rank and interleaved for several. The
/// split is not named. A layout of one device is "DP1".
std::string short_text(const Layout& layout);

}}  // namespace plumb::planner
