#include "schedules/generators/spellings.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"

namespace plumb::test {

TEST_CASE("a schedule's own name is found in any case and with any separators") {
  for (const CatalogueEntry& entry : catalogue()) CHECK(schedule_spelled(entry.name) == entry.name);
  for (const char* name : {"ZBV", "ZB_V", "zb v", "Zb-V"}) CHECK(schedule_spelled(name) == "zb-v");
  CHECK(schedule_spelled("DualPipe-V") == "dualpipev");
  CHECK(schedule_spelled("").empty());
  CHECK(schedule_spelled("---").empty());
}

TEST_CASE("schedules are found by what papers and frameworks call them") {
  for (const char* name : {"1F1B-Int", "1F1B-I", "Interleaved1F1B", "ScheduleInterleaved1F1B", "looped DFS", "VPP"}) {
    CHECK(schedule_spelled(name) == "interleaved");
  }
  for (const char* name : {"DAPPLE", "PipeDream-Flush", "non-interleaved 1F1B"})
    CHECK(schedule_spelled(name) == "1f1b");
  CHECK(schedule_spelled("F-then-B") == "gpipe");
  CHECK(schedule_spelled("TeraPipe") == "terapipe");
  CHECK(schedule_spelled("MEPipe") == "svpp");
  CHECK(schedule_spelled("Synergistic Tensor and Pipeline Parallelism") == "stp");
  CHECK(schedule_spelled("Helix-Pipe") == "helixpipe");
  CHECK(schedule_spelled("TrainSchedule") == "1f1b");  // DeepSpeed's
  CHECK(schedule_spelled("Breadth First") == "bfs");
  CHECK(schedule_spelled("InterleavedZeroBubble") == "izb");
  CHECK(schedule_spelled("ScheduleZBVZeroBubble") == "zb-v");
  CHECK(make_schedule("Interleaved1F1B", {.ranks = 2, .microbatches = 2, .chunks = 2}) ==
        make_schedule("interleaved", {.ranks = 2, .microbatches = 2, .chunks = 2}));
}

TEST_CASE("what the catalogue does not have is refused with what is known of it") {
  CHECK_THROWS_WITH_AS(catalogue_entry("ZB-2P"),
                       "there is no schedule \"ZB-2P\"; it is zb-auto with --memory 2 (`plumb schedule list` names "
                       "them all)",
                       ScheduleError);
  CHECK(schedule_not_held("WeiPipe-Naive").find("weipipe interleaves") != std::string_view::npos);
  CHECK(schedule_spelled("WeiPipe-Interleave") == "weipipe");
  CHECK(schedule_not_held("W-Pipe").find("pipedream-2bw") != std::string_view::npos);
  CHECK(schedule_not_held("vocab-1f1b").find("vocab-2") != std::string_view::npos);
  CHECK(schedule_not_held("Vocabulary Parallelism").find("vocab-2") != std::string_view::npos);
  CHECK(schedule_spelled("SlimPipe") == "slimpipe");
  CHECK_FALSE(schedule_not_held("WeiPipe-Zero-Bubble").empty());
  CHECK(schedule_not_held("1f1b").empty());
}

}  // namespace plumb::test
