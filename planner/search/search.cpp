#include "planner/search/search.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "planner/search/candidates.h"
#include "planner/search/other_values.h"

namespace plumb { inline namespace planner {
namespace {

/// One search, from the layouts that are open to the ranking.
class Search {
 public:
  Search(Pricing& pricing, const LayoutRequest& request, const SearchOptions& options,
         const std::optional<Schedule>& order)
      : pricing_(pricing), options_(options), order_(order), candidates_(pricing, request, order) {}

  SearchResult run() {
    CandidateQueue waiting(candidates_);
    for (std::size_t index = 0; index < candidates_.size(); ++index) waiting.push(index);
    while (!waiting.empty() && std::ssize(rows_) < options_.keep) {
      const std::size_t index = waiting.take_first();
      if (const auto row = row_of(index))
        join(*row, index);
      else if (candidates_[index].known == Known::kShared)
        add_row(index);
      else {
        candidates_.learn_more(index);
        waiting.push(index);
      }
    }
    while (!waiting.empty() && !rows_.empty()) {
      const std::size_t index = waiting.take_first();
      if (!is_close(index, rows_.back())) break;
      if (const auto row = row_of(index)) join(*row, index);
    }
    count();
    if (rows_.empty()) result_.infeasible = infeasible_sentence();
    if (options_.by_key && !rows_.empty()) result_.other_values = other_values(candidates_, rows_.front());
    result_.conflicts = candidates_.conflicts();
    if (options_.explain) list_losers();
    for (const std::size_t row : rows_) result_.ranked.push_back(candidates_.take_evaluation(row));
    return std::move(result_);
  }

 private:
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
    return candidates_[index].known != Known::kOut &&
           to_seconds(candidates_[index].time) <= (1 + kNearlyTheSame) * to_seconds(candidates_[row].time);
  }

  void count() {
    SearchCounts& counts = result_.counts;
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
      const Rejection& first = candidates_.conflicts().front();
      return fmt::format("no layout can exist; {}: {}", to_text(first.layout), first.reason);
    }
    const auto closest = closest_of(candidates_, [](const Layout&) { return true; });
    if (closest) {
      return fmt::format("no layout fits; the closest is {}: {}", to_text(candidates_.layout(*closest)),
                         candidates_.why_out(*closest));
    }
    if (result_.counts.too_large > 0) return "no layout fits: the hosts cannot hold what is offloaded; use more nodes";
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
  std::vector<std::size_t> rows_;                ///< indices of candidates
  std::vector<LayoutRequest> rows_of_families_;  ///< [row]
  SearchResult result_;
};

}  // namespace

LayoutRequest family_of(const Layout& layout) {
  return {.data = layout.data,
          .tensor = layout.tensor,
          .pipeline = layout.pipeline,
          .context = layout.context,
          .expert = layout.expert,
          .expert_tensor = layout.expert_tensor,
          .microbatch = layout.microbatch};
}

SearchResult search_layouts(Pricing& pricing, const LayoutRequest& request, const SearchOptions& options,
                            const std::optional<Schedule>& order) {
  SearchResult result = Search(pricing, request, options, order).run();
  if (request.offload || !pricing.cluster().host || result.counts.too_large == 0) return result;
  for (const Offload offload : {Offload{.optimizer = true}, Offload{.optimizer = true, .activations = true}}) {
    if (!result.ranked.empty()) break;
    LayoutRequest offloading = request;
    offloading.offload = offload;
    SearchResult other = Search(pricing, offloading, options, order).run();
    if (!other.ranked.empty()) result = std::move(other);
  }
  return result;
}

}}  // namespace plumb::planner
