#include "kernels/cpu/copy_columns.h"

#include <doctest/doctest.h>

#include <vector>

namespace plumb::test {

TEST_CASE("columns come out of wider rows, and go back into them beside what is there") {
  const std::vector<float> wide = {1, 2, 3, 4, 5, 6, 7, 8};  // two rows of four
  std::vector<float> narrow(4);
  copy_columns(narrow.data(), 2, wide.data() + 1, 4, {.rows = 2, .columns = 2});
  CHECK(narrow == std::vector<float>{2, 3, 6, 7});
  std::vector<float> back(8, -1.0F);
  copy_columns(back.data() + 2, 4, narrow.data(), 2, {.rows = 2, .columns = 2});
  CHECK(back == std::vector<float>{-1, -1, 2, 3, -1, -1, 6, 7});
}

}  // namespace plumb::test
