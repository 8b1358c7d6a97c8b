#pragma once
// The SVG pictures share one colour for each operation, and the escaping of text.

#include <array>
#include <string>
#include <string_view>

#include "schedules/action.h"

namespace plumb { inline namespace traces {

struct OpColor {
  Op op;
  std::string_view color;
  std::string_view label;
};

/// The colours of the operations that occupy a rank, in the order of a legend.
inline constexpr std::array<OpColor, 6> kOpColors = {
    OpColor{Op::kForward, "#4e79a7", "F forward"},   {Op::kBackward, "#59a14f", "B backward"},
    {Op::kInputGrad, "#8cc37e", "I input gradient"}, {Op::kWeightGrad, "#b6992d", "W weight gradient"},
    {Op::kRecompute, "#79706e", "R recompute"},      {Op::kOptimizerStep, "#e15759", "optimizer step"}};

/// Returns the colour of a compute operation; grey for messages, collectives and moves.
std::string_view color_of(Op op);

/// Returns the text as it may stand in SVG or HTML.
std::string escaped(std::string_view text);

}}  // namespace plumb::traces
