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

/// The colours of what a chart tells apart, in their order; a chart with more begins again.
inline constexpr std::array<std::string_view, 20> kChartColors = {
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b6992d", "#76b7b2", "#9c755f", "#b07aa1", "#79706e", "#a0cbe8",
    "#ffbe7d", "#8cd17d", "#ff9d9a", "#d4a6c8", "#499894", "#f1ce63", "#d37295", "#d7b5a6", "#bab0ac", "#86bcb6"};

/// Returns the colour of a compute operation; lilac for collectives; grey for messages and moves.
std::string_view color_of(Op op);

/// Returns the colour of text on a colour "#rrggbb": white or nearly black, whichever has the larger contrast, which is
/// (L + 0.05) / (l + 0.05) of the relative luminances (WCAG 2.2, "contrast ratio").
std::string_view ink_on(std::string_view color);

/// Returns the text as it may stand in SVG or HTML.
std::string escaped(std::string_view text);

}}  // namespace plumb::traces
