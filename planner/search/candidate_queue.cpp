#include "planner/search/candidate_queue.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "planner/spec/layout_keys.h"

namespace plumb { inline namespace planner {
namespace {

/// True if the layout has every value that `only` answers. A split is no such key.
bool has_values(const Layout& layout, const LayoutRequest& only) {
  bool all = true;
  visit_layout_keys<std::optional>([&](std::string_view, auto answer, auto question) {
    all = all && (!(only.*question) || *(only.*question) == layout.*answer);
  });
  return all;
}

/// True if two requests give no key two values.
bool agree(const LayoutRequest& one, const LayoutRequest& other) {
  bool all = true;
  visit_layout_keys<std::optional>([&](std::string_view, auto, auto question) {
    all = all && (!(one.*question) || !(other.*question) || one.*question == other.*question);
  });
  return all;
}

}  // namespace

CandidateQueue::CandidateQueue(Candidates& candidates, LayoutRequest only)
    : candidates_(candidates), only_(std::move(only)) {
  for (std::size_t index = 0; index < candidates.families().size(); ++index) {
    const Branch& family = candidates.families()[index];
    if (agree(family_of(family.layout), only_)) put(family.value, family.place, Level::kFamily, index);
  }
}

void CandidateQueue::put(double value, const TreePlace& place, Level level, std::size_t index) {
  waiting_.emplace_back(value, place, level, index);
  std::ranges::push_heap(waiting_, std::greater{});
}

void CandidateQueue::push(std::size_t index) {
  const Candidate& candidate = candidates_[index];
  if (candidate.known != Known::kOut) put(candidate.value, candidate.place, Level::kCandidate, index);
}

std::optional<std::size_t> CandidateQueue::take_first() {
  while (!waiting_.empty()) {
    std::ranges::pop_heap(waiting_, std::greater{});
    const auto [value, place, level, index] = waiting_.back();
    waiting_.pop_back();
    if (level == Level::kCandidate) return index;
    const IndexRange below = level == Level::kFamily ? candidates_.open_family(index) : candidates_.open_core(index);
    for (std::size_t each = below.first; each < below.end; ++each) {
      if (level == Level::kFamily)
        put(candidates_.core(each).value, candidates_.core(each).place, Level::kCore, each);
      else if (has_values(candidates_.layout(each), only_))
        push(each);
    }
  }
  return std::nullopt;
}

std::optional<double> CandidateQueue::least() const {
  if (waiting_.empty()) return std::nullopt;
  return std::get<double>(waiting_.front());
}

}}  // namespace plumb::planner
