#include "planner/search/search.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "planner/search/candidate_queue.h"
#include "planner/search/empty_space.h"
#include "planner/search/other_values.h"
#include "planner/spec/layout_keys.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns how many of the keys that `keys` answers the space restricts.
int restricted_keys(const LayoutSpace& space, const LayoutRequest& keys) {
  int count = keys.split && !space.split.is_open() ? 1 : 0;
  visit_layout_keys<Values, std::optional>([&](std::string_view, auto, auto values, auto question) {
    if (keys.*question && !(space.*values).is_open()) ++count;
  });
  return count;
}

/// One search, from the layouts that are open to the ranking.
class Search {
 public:
  Search(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options, const std::optional<Schedule>& order,
         bool complete)
      : pricing_(pricing),
        options_(options),
        order_(order),
        candidates_(pricing, space, order, complete, options.objective),
        waiting_(candidates_) {}

  SearchResult run() {
    rank();
    if (result_.stopped_at)
      rank_what_is_known();
    else
      join_close_ones();
    count();
    if (rows_.empty()) result_.infeasible = infeasible_sentence();
    if (options_.by_key && !rows_.empty()) result_.other_values = other_values(candidates_, rows_.front());
    result_.conflicts = candidates_.conflicts();
    if (options_.explain) list_losers();
    for (const std::size_t row : rows_) result_.ranked.push_back(candidates_.take_evaluation(row));
    return std::move(result_);
  }

 private:
  /// Takes up the least known value, until there are as many rows as are kept.
  void rank() {
    while (std::ssize(rows_) < options_.keep) {
      const std::optional<double> least = waiting_.least();
      if (least && has_to_stop()) {
        result_.stopped_at = least;
        result_.counts.evaluations_until_stop = candidates_.evaluations();
        return;
      }
      const auto index = waiting_.take_first();
      if (!index) return;
      if (const auto row = row_of(*index))
        join(*row, *index);
      else if (candidates_[*index].known == Known::kShared)
        add_row(*index);
      else {
        candidates_.learn_more(*index);
        waiting_.push(*index);
      }
    }
  }

  bool has_to_stop() const {
    const std::int64_t taken = candidates_.evaluations();
    return (options_.most_evaluations > 0 && taken >= options_.most_evaluations) || options_.stop();
  }

  /// Ranks the layouts whose steps are known, on shared links. Where there are none, it goes on to the first that fits.
  void rank_what_is_known() {
    std::vector<std::pair<double, std::size_t>> known;
    for (std::size_t index = 0; index < candidates_.size(); ++index) {
      const Candidate& candidate = candidates_[index];
      if (candidate.known == Known::kPrivate || candidate.known == Known::kShared)
        known.emplace_back(candidate.value, index);
    }
    std::ranges::sort(known);
    std::vector<std::pair<double, std::size_t>> shared;
    for (const auto& [value, index] : known) {
      if (std::ssize(shared) == options_.keep || row_of(index)) continue;
      if (candidates_[index].known == Known::kPrivate) candidates_.learn_more(index);
      if (candidates_[index].known != Known::kShared) continue;
      shared.emplace_back(candidates_[index].value, index);
    }
    std::ranges::sort(shared);
    for (const auto& [value, index] : shared)
      if (std::ssize(rows_) < options_.keep && !row_of(index)) add_row(index);
    while (rows_.empty()) {
      const auto index = waiting_.take_first();
      if (!index) return;
      while (candidates_[*index].known < Known::kShared) candidates_.learn_more(*index);
      if (candidates_[*index].known == Known::kShared) add_row(*index);
    }
  }

  /// Adds the variants of the last row that come after it.
  void join_close_ones() {
    if (rows_.empty()) return;
    while (const auto index = waiting_.take_first()) {
      if (!is_close_in_value(*index, rows_.back())) break;
      if (const auto row = row_of(*index)) join(*row, *index);
    }
  }

  /// Returns the row of the candidate's family; nothing if it has none yet.
  std::optional<std::size_t> row_of(std::size_t index) const {
    const auto row = std::ranges::find(rows_of_families_, family_of(candidates_.layout(index)));
    if (row == rows_of_families_.end()) return std::nullopt;
    return static_cast<std::size_t>(row - rows_of_families_.begin());
  }

  void add_row(std::size_t index) {
    rows_.push_back(index);
    rows_of_families_.push_back(family_of(candidates_.layout(index)));
    result_.variants.emplace_back();
  }

  /// Adds the candidate to the variants of that row if it fits and takes nearly the same.
  void join(std::size_t row, std::size_t index) {
    while (candidates_[index].known < Known::kPrivate && is_close(index, rows_[row])) candidates_.learn_more(index);
    if (is_close(index, rows_[row])) result_.variants[row].push_back(candidates_.layout(index));
  }

  /// True if the candidate may take nearly the same as that row's.
  bool is_close(std::size_t index, std::size_t row) const {
    return candidates_[index].known != Known::kOut && is_close_in_value(index, row);
  }

  bool is_close_in_value(std::size_t index, std::size_t row) const {
    return candidates_[index].value <= (1 + kNearlyTheSame) * candidates_[row].value;
  }

  void count() {
    SearchCounts& counts = result_.counts;
    counts.families = std::ssize(candidates_.families());
    counts.opened =
        std::ranges::count_if(candidates_.families(), [](const Branch& family) { return family.below.has_value(); });
    counts.evaluations = candidates_.evaluations();
    counts.cores_too_large = candidates_.cores_too_large();
    counts.enumerated = static_cast<std::int64_t>(candidates_.size());
    counts.conflicts = std::ssize(candidates_.conflicts());
    for (std::size_t index = 0; index < candidates_.size(); ++index) {
      const Known known = candidates_[index].known;
      ++(known == Known::kOut ? counts.too_large : known == Known::kShared ? counts.simulated : counts.outrun);
      if (known != Known::kWork) ++counts.priced;
    }
  }

  /// Lists what each layout takes that is no row, or why it does not fit.
  void list_losers() {
    for (std::size_t index = 0; index < candidates_.size(); ++index) {
      if (std::ranges::find(rows_, index) != rows_.end()) continue;
      const Candidate& candidate = candidates_[index];
      std::string reason;
      if (candidate.known == Known::kOut) {
        reason = candidates_.why_out(index);
      } else {
        reason = fmt::format("it takes {}{:.4g} s", candidate.known == Known::kShared ? "" : "at least ",
                             to_seconds(candidate.time).count());
      }
      result_.losers.push_back({request_of(candidates_.layout(index)), std::move(reason)});
    }
  }

  std::string infeasible_sentence() {
    if (candidates_.none_exists()) {
      if (candidates_.conflicts().empty()) return why_empty(pricing_, candidates_.space());
      const Rejection& conflict = *std::ranges::max_element(candidates_.conflicts(), {}, [&](const Rejection& one) {
        return restricted_keys(candidates_.space(), one.layout);
      });
      return fmt::format("no layout can exist; {}: {}", to_text(conflict.layout), conflict.reason);
    }
    const auto closest = closest_of(candidates_, [](const Layout&) { return true; });
    if (closest) {
      return fmt::format("no layout fits; the closest is {}: {}", to_text(candidates_.layout(*closest)),
                         candidates_.why_out(*closest));
    }
    for (std::size_t index = 0; index < candidates_.size(); ++index) {
      return fmt::format("no layout fits; the first is {}: {}", to_text(candidates_.layout(index)),
                         candidates_.why_out(index));
    }
    return fmt::format(
        "schedule {} has {} micro-batches, which no layout that can exist makes of a batch of {}: give a multiple of "
        "{} as --global-batch, with dp x mbs = --global-batch / {}",
        order_->name, order_->microbatches, pricing_.training().global_batch, order_->microbatches,
        order_->microbatches);
  }

  Pricing& pricing_;
  const SearchOptions& options_;
  const std::optional<Schedule>& order_;
  Candidates candidates_;
  CandidateQueue waiting_;
  std::vector<std::size_t> rows_;                ///< indices of candidates
  std::vector<LayoutRequest> rows_of_families_;  ///< [row]
  SearchResult result_;
};

/// Searches without what cannot fit by its least memory, unless layouts that lost are asked for, or none fits.
SearchResult search_space(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                          const std::optional<Schedule>& order) {
  const bool complete = options.by_key || options.explain;
  SearchResult result = Search(pricing, space, options, order, complete).run();
  if (!result.ranked.empty() || result.counts.cores_too_large == 0) return result;
  return Search(pricing, space, options, order, true).run();
}

}  // namespace

SearchResult search_layouts(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                            const std::optional<Schedule>& order) {
  SearchResult result = search_space(pricing, space, options, order);
  if (space.wide || !space.offload.is_open() || !pricing.cluster().host || result.counts.too_large == 0) return result;
  for (const Offload offload : {Offload{.optimizer = true}, Offload{.optimizer = true, .activations = true}}) {
    if (!result.ranked.empty()) break;
    LayoutSpace offloading = space;
    offloading.offload = {.named = {offload}};
    SearchResult other = search_space(pricing, offloading, options, order);
    if (!other.ranked.empty()) result = std::move(other);
  }
  return result;
}

}}  // namespace plumb::planner
