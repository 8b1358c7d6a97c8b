#include "executor/transport/word_sum.h"

#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("one value that changes, or two that are exchanged, change the sum") {
  for (const std::size_t size : {1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 64, 100}) {
    std::vector<float> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<float>(3 * i + 1);
    const std::uint64_t sum = word_sum(values);
    CHECK(word_sum(values) == sum);
    for (std::size_t i = 0; i < size; ++i) {
      std::vector<float> changed = values;
      changed[i] = -changed[i];
      CHECK(word_sum(changed) != sum);
      changed = values;
      std::swap(changed[i], changed[(i + 1) % size]);
      if (size > 1) CHECK(word_sum(changed) != sum);
    }
  }
  CHECK(word_sum({}) == 0);
}

}  // namespace plumb::test
