#include "schedules/forms/action_remedy.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("words that are nearly actions are said with what to write") {
  const auto says = [](std::string_view word, std::string_view part) {
    const std::string remedy = action_remedy(word, "usual");
    CAPTURE(remedy);
    CHECK(remedy.find(part) != std::string::npos);
  };
  says("0f3", "0F3");
  says("1send_f0", "1SEND_F0");
  says("F0", "as in 0F0");
  says("b12", "as in 0B12");
  says("2BW1", "2B1");
  says("2FULL_BACKWARD1", "2B1");
  says("ForwardPass(buffer_id=0)", "<stage>F<micro-batch>");
  says("[LoadMicroBatch(buffer_id=0),", "leave LoadMicroBatch out");
  says("rank", "one row a rank");
  for (const char* word : {"", "koala", "0Q0", "F", "Fx", "BW", "99999999999999999999BW1"}) says(word, "usual");
}

}  // namespace plumb::test
