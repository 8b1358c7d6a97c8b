#include "schedules/forms/torch_csv.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"

namespace plumb::test {

TEST_CASE("cells are actions, empty cells are idle slots and only order is kept") {
  const TorchCsv csv = read_torch_csv("0F0,0F1,,0B0,0B1\r\n,1F0,1B0,1F1,1B1\r\n", "a.csv");
  CHECK(csv.schedule == parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"));
  CHECK(csv.notes.empty());
}

TEST_CASE("cells in quotes are cells, and blank lines at the end are no ranks") {
  const Schedule plain = read_torch_csv("0F0,,0B0\n1F0,1B0\n", "a.csv").schedule;
  CHECK(read_torch_csv("\"0F0\",\"\", \"0B0\"\r\n\"1F0\",\"1B0\"\r\n\r\n  \n", "a.csv").schedule == plain);
  CHECK_THROWS_AS(read_torch_csv("\"0F0,0B0\n", "a.csv"), ScheduleError);
}

TEST_CASE("without commas, semicolons or tabs stand between cells") {
  const Schedule plain = read_torch_csv("0F0,,0B0\n1F0,1B0,\n", "a.csv").schedule;
  CHECK(read_torch_csv("0F0;;0B0\r\n1F0;1B0;\r\n", "a.csv").schedule == plain);
  CHECK(read_torch_csv("0F0\t\t0B0\n1F0\t1B0\t\n", "a.csv").schedule == plain);
  // There is one pair and no separator.
  CHECK(read_torch_csv("(0F0;1B1)OVERLAP_F_B\n", "a.csv").schedule.ranks[0].size() == 2);
}

TEST_CASE("a stage that no rank lists is said to be missing") {
  const std::vector<Violation> found = validate(read_torch_csv("0F0,0B0\n2F0,2B0\n", "a.csv").schedule);
  REQUIRE(found.size() == 1);
  CHECK(to_text(found[0]).find("no rank lists an action of stage 1") != std::string::npos);
}

TEST_CASE("REDUCE_GRAD, which PyTorch writes into compute-only files, is left out with a note") {
  const TorchCsv csv = read_torch_csv("0F0,0B0,0REDUCE_GRAD\n", "a.csv");
  CHECK(csv.schedule == parse_schedule("0F0 0B0"));
  REQUIRE(csv.notes.size() == 1);
  CHECK(csv.notes[0] == "a.csv: 1 REDUCE_GRAD left out: lowering adds what a layout needs");
}

TEST_CASE("a cell that is not exactly one compute action is refused with its row and column") {
  CHECK_THROWS_WITH_AS(
      read_torch_csv("0F0,0F1xyz\n", "a.csv"),
      "a.csv: row 1, column 2: \"0F1xyz\" is not an action: write <stage><F, B, I or W><micro-batch> and nothing "
      "behind it",
      ScheduleError);
  CHECK_THROWS_WITH_AS(read_torch_csv("0F0\n1F0,0OPTIMIZER_STEP\n", "a.csv"),
                       "a.csv: row 2, column 2: \"0OPTIMIZER_STEP\" is not an action: write <stage><F, B, I or "
                       "W><micro-batch> and nothing "
                       "behind it",
                       ScheduleError);
  CHECK_THROWS_AS(read_torch_csv("0F0,0B0,garbage", "a.csv"), ScheduleError);
}

TEST_CASE("an overlapped pair is a forward and a backward in one cell, and nothing else is") {
  const std::string csv = "0F0,1F0,(0F1;1B0)OVERLAP_F_B,(1F1;0I0)OVERLAP_F_B,1B1,0B1,0W0\r\n";
  const Schedule schedule = read_torch_csv(csv, "a.csv").schedule;
  CHECK(schedule == parse_schedule("0F0 1F0 0F1&1B0 1F1&0I0 1B1 0B1 0W0"));
  CHECK(write_torch_csv(schedule) == csv);

  CHECK_THROWS_WITH_AS(read_torch_csv("0F0,(0F1,1B0)OVERLAP_F_B\n", "a.csv"),
                       "a.csv: row 1, column 2: \"(0F1\" is not a pair: write "
                       "(<stage>F<micro-batch>;<stage>B<micro-batch>)OVERLAP_F_B",
                       ScheduleError);
  for (const char* cell : {"(0F1;1B0;1F1)OVERLAP_F_B", "(0F1)OVERLAP_F_B", "(1B0;0F1)OVERLAP_F_B", "(;)OVERLAP_F_B",
                           "(0F1;1W0)OVERLAP_F_B", "(0F1;1B0)", "0F1;1B0)OVERLAP_F_B", "(0F1;1B0)OVERLAP_F_Bx",
                           "((0F1;1B0)OVERLAP_F_B;1B0)OVERLAP_F_B", "(0F1/1;1B0)OVERLAP_F_B"}) {
    CAPTURE(cell);
    CHECK_THROWS_AS(read_torch_csv(cell, "a.csv"), ScheduleError);
  }
}

TEST_CASE("what is written reads back, rows ending as PyTorch's do") {
  const Schedule schedule = make_schedule("interleaved", {.ranks = 3, .microbatches = 6, .chunks = 2});
  const std::string csv = write_torch_csv(schedule);
  CHECK(csv.substr(csv.size() - 2) == "\r\n");
  CHECK(read_torch_csv(csv, "a.csv").schedule.ranks == schedule.ranks);
  CHECK(read_torch_csv(csv, "a.csv").schedule.stages == schedule.stages);
}

TEST_CASE("a file with messages is the compute-comms form: it keeps its reductions and has no idle slots") {
  const TorchCsv csv = read_torch_csv(
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\r\n"
      "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\r\n",
      "a.csv");
  CHECK(csv.notes.empty());
  CHECK(validate(csv.schedule).empty());
  CHECK(csv.schedule.ranks == parse_schedule("0UNSHARD 0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD 0RESHARD\n"
                                             "1UNSHARD 1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1RESHARD")
                                  .ranks);
  CHECK(read_torch_csv(write_torch_csv(csv.schedule), "a.csv").schedule.ranks == csv.schedule.ranks);
  CHECK_THROWS_WITH_AS(read_torch_csv("0F0,0SEND_F0\n1RECV_F0,,1F0\n", "a.csv"),
                       "a.csv: row 2, column 2: \"\" is empty: the compute-comms form has no idle slots",
                       ScheduleError);
}

TEST_CASE("read leniently, what stands behind an action is dropped and said, as PyTorch's parser drops it") {
  const TorchCsv csv = read_torch_csv("0F0xyz,0B0 # done\n", "a.csv", TorchReading::kLenient);
  CHECK(csv.schedule == parse_schedule("0F0 0B0"));
  REQUIRE(csv.notes.size() == 2);
  CHECK(csv.notes[0] == "a.csv: row 1, column 1: \"xyz\" behind 0F0 left out");
  CHECK_THROWS_AS(read_torch_csv("nothing", "a.csv", TorchReading::kLenient), ScheduleError);
  CHECK_THROWS_AS(read_torch_csv("0F", "a.csv", TorchReading::kLenient),
                  ScheduleError);  // PyTorch's runtime fails on it
}

TEST_CASE("what PyTorch's form cannot express is refused by name") {
  CHECK_THROWS_WITH_AS(write_torch_csv(make_schedule("pipedream", {})),
                       "PyTorch's CSV cannot express the weight policy stashed of pipedream", ScheduleError);
  CHECK_THROWS_AS(write_torch_csv(parse_schedule("0F0 0R0 0B0")), ScheduleError);
  CHECK_THROWS_AS(write_torch_csv(parse_schedule("0F0/1 0B0")), ScheduleError);
  CHECK_THROWS_WITH_AS(write_torch_csv(parse_schedule("0F0 0B0&0F1 0B1")),
                       "PyTorch's CSV cannot express the pair of 0B0 on rank 0 of ", ScheduleError);
  CHECK_THROWS_AS(write_torch_csv(parse_schedule("stages: 0/0/0 0/0/1\n0F0 1F1")), ScheduleError);
}

TEST_CASE("a file with a fault in one row is refused at that place") {
  // PyTorch 2.14's 1F1B starts its last rank at micro-batch 1 (pytorch Schedule1F1B._get_pipeline_order).
  const Schedule schedule = read_torch_csv("0F0,0F1,0B0,0B1\n1F1,1B0,1F2,1B1\n", "a.csv").schedule;
  const std::vector<Violation> found = validate(schedule);
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].rank == 1);
  CHECK(to_text(found[0]) == "rank 1, position 2: 1F2 names micro-batch 2, but there are 0 to 1 only (foreign)");
}

}  // namespace plumb::test
