#include "traces/draw/svg_style.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("text on a colour is white or nearly black, whichever has the larger contrast") {
  CHECK(ink_on("#000000") == "#ffffff");
  CHECK(ink_on("#ffffff") == "#111111");
  CHECK(ink_on("#4e79a7") == "#ffffff");  // its luminance is 0.181: contrasts of 4.5 to white and 4.2 to nearly black
  CHECK(ink_on("#8cc37e") == "#111111");  // and 0.461: 2.1 and 9.2
}

TEST_CASE("messages, collectives and what computes differ in colour") {
  CHECK(color_of(Op::kForward) == "#4e79a7");
  CHECK(color_of(Op::kSendActivation) == color_of(Op::kSendGradient));
  CHECK(color_of(Op::kUnshard) == color_of(Op::kReduceGrad));
  CHECK(color_of(Op::kUnshard) != color_of(Op::kSendActivation));
}

}  // namespace plumb::test
