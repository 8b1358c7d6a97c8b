#include "schedules/action.h"

#include <string>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("every operation's token reads back as the same action") {
  for (int op = 0; op < kOpCount; ++op) {
    Action action{.op = static_cast<Op>(op), .part = 2, .stage = 13};
    if (has_microbatch(action.op)) action.microbatch = 29;
    if (is_weight_message(action.op)) action.peer = 31;
    CHECK(parse_action(to_text(action)) == action);
  }
}

TEST_CASE("a token is stage, operation, micro-batch, and a part only where it is not 0") {
  CHECK(to_text({.op = Op::kForward, .stage = 3, .microbatch = 7}) == "3F7");
  CHECK(to_text({.op = Op::kSendActivation, .stage = 2, .microbatch = 0}) == "2SEND_F0");
  CHECK(to_text({.op = Op::kReduceGrad, .part = 2, .stage = 1}) == "1REDUCE_GRAD/2");
  CHECK(to_text({.op = Op::kSendWeights, .stage = 3, .peer = 7}) == "3SEND_WEIGHTS7");
  CHECK(to_text({.op = Op::kRecvWeightGrad, .stage = 7, .peer = 3}) == "7RECV_WGRAD3");
}

TEST_CASE("what is not exactly one action is no action") {
  for (const std::string token : {"", "F0", "0F", "0F0xyz", "0F 0", "0f0", "0Q1", "0F-1", "-1F0", "0UNSHARD3",
                                  "0SEND_WEIGHTS", "0F0/", "0F0/x", "0F99999999999", "0F1,0F2", "0F0 "}) {
    CAPTURE(token);
    CHECK_FALSE(parse_action(token).has_value());
  }
}

TEST_CASE("operations fall into compute, messages and collectives without overlap") {
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    CHECK(int(is_compute(op)) + int(is_message(op)) + int(is_collective(op)) <= 1);
    CHECK(is_message(op) == (is_send(op) || is_recv(op)));
  }
  CHECK(is_compute(Op::kOptimizerStep));
  CHECK_FALSE(is_compute(Op::kReshard));
}

}  // namespace plumb::test
