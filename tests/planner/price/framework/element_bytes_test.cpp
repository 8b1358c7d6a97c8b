#include "planner/price/framework/element_bytes.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("a gradient of 16 bit is read, and the buffer read and written") {
  const ElementBytes wide = element_bytes({.element_bytes = 2, .gradient_bytes = 4}, {.name = "any"});
  CHECK(wide.accumulated == 2 + 4 + 4);
  const ElementBytes narrow = element_bytes({.element_bytes = 2, .gradient_bytes = 2}, {.name = "any"});
  CHECK(narrow.accumulated == 2 + 2 + 2);
}

TEST_CASE("a gradient that stays beside the buffer is copied into its precision before it is added") {
  const StackSpec stack{.name = "any", .copied_gradient_bytes = 2};
  // The copy reads 2 and writes 4; the sum reads both in fp32 and writes one.
  CHECK(element_bytes({.element_bytes = 2, .gradient_bytes = 4}, stack).accumulated == (2 + 4) + (4 + 4 + 4));
  CHECK(element_bytes({.element_bytes = 2, .gradient_bytes = 2}, stack).accumulated == 2 + 2 + 2);
}

TEST_CASE("elements are quantized where the device computes in fewer bytes") {
  const StackSpec stack{.name = "any", .fp8 = {.cast_bytes = 3, .gathers = true}};
  const ElementBytes whole = element_bytes({.element_bytes = 2, .gradient_bytes = 4}, stack);
  CHECK(whole.gathered == 2);
  CHECK(whole.cast == 0);
  const ElementBytes quantized = element_bytes({.quantized_bytes = 1, .element_bytes = 2, .gradient_bytes = 4}, stack);
  CHECK(quantized.gathered == 1);
  CHECK(quantized.cast == 3);
}

}  // namespace plumb::test
