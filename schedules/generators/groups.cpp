#include "schedules/generators/groups.h"

#include <algorithm>

#include "schedules/generators/phases.h"

namespace plumb { inline namespace schedules {

std::vector<int> group_sizes(int microbatches, int smallest) {
  const int rounds = std::max(1, microbatches / smallest);
  std::vector<int> sizes(static_cast<std::size_t>(rounds), microbatches / rounds);
  std::fill_n(sizes.begin(), microbatches % rounds, microbatches / rounds + 1);
  return sizes;
}

std::vector<Action> turns_of_chunks(Op op, const std::vector<int>& stages, const std::vector<int>& groups) {
  std::vector<Action> actions;
  int first = 0;
  for (const int size : groups) {
    for (const int stage : stages) {
      for (int i = first; i < first + size; ++i) actions.push_back(compute_action(op, stage, i));
    }
    first += size;
  }
  return actions;
}

std::vector<int> looped_stages(int rank, int ranks, int chunks) {
  std::vector<int> stages;
  for (int chunk = 0; chunk < chunks; ++chunk) stages.push_back(chunk * ranks + rank);
  return stages;
}

}}  // namespace plumb::schedules
