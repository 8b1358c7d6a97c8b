#include "schedules/spelling.h"

#include <array>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("letters and digits remain of a name, in lower case") {
  CHECK(letters_and_digits("Llama 3.1 8B") == "llama318b");
  CHECK(letters_and_digits("llama-3.1_8b") == "llama318b");
  CHECK(letters_and_digits("h\xc3\xa4lt") == "hlt");
  CHECK(letters_and_digits(" -_.").empty());
}

TEST_CASE("a spelling means what the first entry of its text does") {
  constexpr std::array kSpellings = {Spelling{"dapple", "1f1b"}, Spelling{"afab", "gpipe"}, Spelling{"afab", "naive"}};
  CHECK(meaning(kSpellings, "afab") == "gpipe");
  CHECK(meaning(kSpellings, "dapple") == "1f1b");
  CHECK(meaning(kSpellings, "dappl").empty());
  CHECK(meaning({}, "afab").empty());
}

TEST_CASE("letters become lower case, and all else stays") {
  CHECK(lower_case("Sm90_GEMM-x\xC3\x84") == "sm90_gemm-x\xC3\x84");
}

}  // namespace plumb::test
