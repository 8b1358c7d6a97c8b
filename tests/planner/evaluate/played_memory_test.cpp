#include "planner/evaluate/played_memory.h"

#include <string>

#include <doctest/doctest.h>

#include "planner/price/pricing.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

std::vector<PlayedMemory> played(const std::string& layout, CachingAllocator::Segments segments) {
  TrainingSpec training{.global_batch = 16, .sequence = 512, .stack = StackSpec{.name = "any"}};
  Pricing pricing(small_gpt(), preset_cluster("a100:4"), training);
  const Evaluation evaluation = evaluate(pricing, layout_of(parse_layout(layout)));
  return played_memory(training, evaluation, segments);
}

}  // namespace

TEST_CASE("each rank reserves what stands or more, and less with expandable segments") {
  for (const char* layout : {"pp=4,mbs=2", "pp=4,mbs=2,recompute=full", "pp=2,dp=2,mbs=2,recompute=selective,zero=1",
                             "pp=2,tp=2,v=2,schedule=interleaved,mbs=2", "pp=4,schedule=zb-h1,mbs=2"}) {
    CAPTURE(layout);
    const auto fixed = played(layout, CachingAllocator::Segments::kFixed),
               expandable = played(layout, CachingAllocator::Segments::kExpandable);
    REQUIRE(fixed.size() == expandable.size());
    for (std::size_t rank = 0; rank < fixed.size(); ++rank) {
      CHECK(fixed[rank].allocated_bytes > 0);
      CHECK(fixed[rank].reserved_share() >= 1);
      CHECK(expandable[rank].reserved_share() >= 1);
    }
  }
}

TEST_CASE("recomputation and later ranks of a pipeline hold less, as the simulation says") {
  const auto none = played("pp=4,mbs=2", CachingAllocator::Segments::kFixed),
             full = played("pp=4,mbs=2,recompute=full", CachingAllocator::Segments::kFixed);
  CHECK(full[1].allocated_bytes < none[1].allocated_bytes);
  CHECK(none[2].allocated_bytes < none[1].allocated_bytes);
}

TEST_CASE("what stands is what the simulation of the same program holds") {
  TrainingSpec training{.global_batch = 16, .sequence = 512, .stack = StackSpec{.name = "any"}};
  Pricing pricing(small_gpt(), preset_cluster("a100:4"), training);
  const Evaluation evaluation = evaluate(pricing, layout_of(parse_layout("pp=4,mbs=2")));
  const auto ranks = played_memory(training, evaluation, CachingAllocator::Segments::kFixed);
  for (const std::size_t rank : {1UL, 2UL}) {
    const double simulated = static_cast<double>(evaluation.simulation.peak_memory_bytes[rank]);
    CHECK(static_cast<double>(ranks[rank].allocated_bytes) / simulated == doctest::Approx(1).epsilon(.1));
  }
}

}  // namespace plumb::test
