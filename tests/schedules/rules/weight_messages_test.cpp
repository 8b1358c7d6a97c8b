#include <string>

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "schedules/rules/validate.h"

namespace plumb::test {
namespace {

/// Two ranks, each with a copy of the model's one part; rank 0 owns it.
std::string first_violation(const std::string& rank0, const std::string& rank1, const std::string& head = "") {
  const std::vector<Violation> found =
      validate(parse_schedule(head + "microbatches: 2\nstages: 0/0/0 1/0/1\n" + rank0 + "\n" + rank1 + "\n"));
  return found.empty() ? "" : to_text(found.front());
}

const std::string kOwner = "0SEND_WEIGHTS1 0F0 0B0 0RECV_WGRAD1 0OPTIMIZER_STEP";
const std::string kCopy = "1RECV_WEIGHTS0 1F1 1B1 1SEND_WGRAD0 1RESHARD";

}  // namespace

TEST_CASE("weights that come in time and gradients that go to their owner are valid") {
  CHECK(first_violation(kOwner, kCopy).empty());
}

TEST_CASE("messages of weights are between copies on different ranks, and have two ends") {
  CHECK(first_violation("0SEND_WEIGHTS7 0F0 0B0", "1F1 1B1") ==
        "rank 0, position 0: 0SEND_WEIGHTS7 names stage 7, but there are stages 0 to 1 only (foreign)");
  CHECK(first_violation("0SEND_WEIGHTS0 0F0 0B0", "1F1 1B1")
            .starts_with(
                "rank 0, position 0: 0SEND_WEIGHTS0 is between stage 0, which is model part 0 on rank 0, and stage 0"));
  CHECK(
      first_violation(kOwner, "1F1 1B1 1SEND_WGRAD0")
          .starts_with(
              "rank 0, position 0: 0SEND_WEIGHTS1 has no 1RECV_WEIGHTS0 on rank 1; add it there, or remove this one"));
  CHECK(first_violation("0F0 0B0 0RECV_WGRAD1 0OPTIMIZER_STEP", kCopy) ==
        "rank 1, position 0: 1RECV_WEIGHTS0 has no 0SEND_WEIGHTS1 on rank 0; add it there, or remove this one "
        "(unmatched message)");
}

TEST_CASE("a rank uses only weights that it owns or has received and not dropped") {
  CHECK(first_violation(kOwner, "1RECV_WEIGHTS0 1F1 1RESHARD 1B1 1SEND_WGRAD0") ==
        "rank 1, position 3: 1B1 uses weights that rank 1 does not have; add a 1RECV_WEIGHTS from a copy of stage 1 "
        "ahead, or the OPTIMIZER_STEP that makes it their owner (sharding)");
  CHECK(
      first_violation(kOwner, "1F1 1RECV_WEIGHTS0 1B1 1SEND_WGRAD0 1RESHARD").starts_with("rank 1, position 0: 1F1 "));
  CHECK(first_violation(kOwner, kCopy + " 1RESHARD").find("drops parameters that were not gathered") !=
        std::string::npos);
}

TEST_CASE("every gradient goes to the one copy that steps") {
  CHECK(
      first_violation("0SEND_WEIGHTS1 0F0 0B0 0OPTIMIZER_STEP", "1RECV_WEIGHTS0 1F1 1B1 1RESHARD") ==
      "rank 1: stage 1 ends with 1 weight gradients that no OPTIMIZER_STEP takes; add 1OPTIMIZER_STEP, or a SEND_WGRAD "
      "to the stage that has it (optimizer)");
  CHECK(first_violation("0SEND_WEIGHTS1 0F0 0B0 0OPTIMIZER_STEP 0RECV_WGRAD1", kCopy)
            .starts_with("rank 0, position 4: 0RECV_WGRAD1 comes behind the OPTIMIZER_STEP of its stage"));
  CHECK(first_violation("0SEND_WEIGHTS1 0F0 0B0 0RECV_WGRAD1 0OPTIMIZER_STEP",
                        "1RECV_WEIGHTS0 1F1 1SEND_WGRAD0 1B1 1RESHARD")
            .starts_with("rank 1: stage 1 ends with 1 weight gradients"));
  CHECK(first_violation("0SEND_WEIGHTS1 0F0 0B0 0OPTIMIZER_STEP", "1RECV_WEIGHTS0 1F1 1B1 1OPTIMIZER_STEP 1RESHARD") ==
        "rank 1: stages 0 and 1 both step the weights of model part 0, which travel between them; keep one "
        "OPTIMIZER_STEP (optimizer)");
  CHECK(first_violation(kOwner, kCopy, "weights: stashed\n").find("cannot travel") != std::string::npos);
}

TEST_CASE("the receives of a channel stand in the order of its sends") {
  const std::vector<Violation> found = validate(
      parse_schedule("microbatches: 2\nstages: 0/0/0 0/1/0 1/0/1 1/1/1\n"
                     "0SEND_WEIGHTS2 1SEND_WEIGHTS3 0F0 1F0 1B0 0B0 0RECV_WGRAD2 1RECV_WGRAD3 0OPTIMIZER_STEP "
                     "1OPTIMIZER_STEP\n"
                     "3RECV_WEIGHTS1 2RECV_WEIGHTS0 2F1 3F1 3B1 2B1 2SEND_WGRAD0 3SEND_WGRAD1 2RESHARD 3RESHARD\n"));
  REQUIRE(found.size() == 1);
  CHECK(to_text(found.front()) ==
        "rank 1, position 0: 3RECV_WEIGHTS1 stands ahead of 2RECV_WEIGHTS0, but rank 0 sends them the other way round; "
        "exchange them (message order)");
}

}  // namespace plumb::test
