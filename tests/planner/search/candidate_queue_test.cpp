#include "planner/search/candidate_queue.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

const TrainingSpec kFewSamples{.global_batch = 8, .sequence = 128};

/// Returns the texts of the layouts that the queue gives, once all branches are opened. Checks their order.
std::multiset<std::string> all_of(Candidates& candidates, CandidateQueue& queue) {
  std::multiset<std::string> texts;
  Node before{.value = -1};
  while (const auto least = queue.least()) {
    const Node node = *queue.take_first();
    CHECK(*least == node.value);
    CHECK(before < node);
    before = node;
    if (node.level == Level::kCandidate)
      texts.insert(to_text(candidates.layout(node.index)));
    else
      queue.push(candidates.take_steps({&node, 1}));
  }
  CHECK(!queue.take_first());
  return texts;
}

}  // namespace

TEST_CASE("the queue gives the least value first, of equals the first in the tree, and every layout of the tree once") {
  Pricing pricing(small_gpt(), round_cluster(4), kFewSamples);
  const std::optional<Schedule> own;
  Candidates candidates(pricing, {}, own);
  CandidateQueue queue(candidates);
  std::multiset<std::string> listed;
  for (const Layout& layout : enumerate_layouts(pricing, {}).layouts) listed.insert(to_text(layout));
  CHECK(all_of(candidates, queue) == listed);
  CHECK(candidates.size() == listed.size());
}

TEST_CASE("a search for the best opens no family that cannot hold it") {
  Pricing pricing(small_gpt(), round_cluster(8), {.global_batch = 64, .sequence = 256});
  const std::optional<Schedule> own;
  Candidates candidates(pricing, {}, own);
  CandidateQueue queue(candidates);
  while (const auto node = queue.take_first()) {
    if (node->level == Level::kCandidate && candidates[node->index].known == Known::kShared) break;
    queue.push(candidates.take_steps({&*node, 1}));
  }
  std::size_t opened = 0;
  for (const Branch& family : candidates.families()) opened += family.below ? 1 : 0;
  CHECK(opened > 0);
  CHECK(opened < candidates.families().size());
}

}  // namespace plumb::test
