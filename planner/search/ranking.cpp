#include "planner/search/ranking.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "planner/search/candidate_queue.h"
#include "planner/search/seen_layouts.h"

namespace plumb { inline namespace planner {
namespace {

class Ranking {
 public:
  Ranking(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
          const std::optional<Schedule>& order, const RankingLimits& limits)
      : options_(options),
        candidates_(pricing, space, order,
                    {.complete = limits.complete,
                     .most = limits.most,
                     .objective = options.objective,
                     .threads = options.threads}),
        waiting_(candidates_, limits.most),
        has_answer_(limits.has_answer) {}

  SearchResult run() {
    if (options_.memory_front)
      rank_front();
    else
      rank();
    const bool needs_none = rows_.empty() && has_answer_;
    if (result_.stopped_at && !needs_none && (rows_.empty() || !options_.memory_front)) rank_what_is_known();
    const std::int64_t until_stop = result_.counts.evaluations_until_stop;
    result_.counts = counts_of(candidates_);
    result_.counts.evaluations_until_stop = until_stop;
    if (rows_.empty() && !result_.limited && !result_.stopped_at && options_.advise)
      result_.infeasible = why_none_is_feasible(candidates_);
    if (rows_.empty()) result_.missing_bytes = candidates_.missing_bytes();
    result_.conflicts = candidates_.conflicts();
    if (options_.explain) result_.losers = losers_of(candidates_, rows_indices());
    if (options_.list_learned) result_.learned = learned_of(candidates_);
    for (const Row& row : rows_) {
      result_.values.push_back(candidates_[row.best].value);
      result_.ranked.push_back(candidates_.take_evaluation(row.best));
      result_.variants.push_back(options_.memory_front ? std::vector<Layout>{} : variants_of(row));
    }
    return std::move(result_);
  }

 private:
  /// The best candidate of a family.
  struct Row {
    std::size_t best = 0;
  };

  /// Returns the others of the row's family that take nearly the same with links of their own.
  std::vector<Layout> variants_of(const Row& row) const {
    std::vector<Node> close;
    for (std::size_t index = 0; index < candidates_.size(); ++index) {
      const Candidate& one = candidates_[index];
      const bool is_known = one.known != Known::kOut && one.own_links_value > 0;
      if (index != row.best && is_known && one.place.front() == candidates_[row.best].place.front() &&
          is_close(one.own_links_value, row))
        close.push_back({.value = one.own_links_value, .place = one.place, .index = index});
    }
    std::ranges::sort(close);
    std::vector<Layout> variants;
    for (const Node& node : close) variants.push_back(candidates_.layout(node.index));
    return variants;
  }

  /// Takes steps with the least values, until there are as many rows as are kept, and all their variants are known.
  void rank() {
    while (const std::optional<double> least = waiting_.least()) {
      if (is_full() && !is_close(*least, rows_.back())) return;
      result_.limited = !is_full() && *least >= options_.below;
      if (result_.limited || (!is_full() && stops(*least))) return;
      take_steps(next_batch());
    }
  }

  /// Adds a row for each layout that no other beats in both value and memory. As the rows come by value, each of them
  /// has to hold less than those before it.
  void rank_front() {
    while (const std::optional<double> least = waiting_.least()) {
      if (stops(*least)) return;
      take_steps(next_of_front());
    }
  }

  void take_steps(const std::vector<Node>& batch) {
    const std::vector<Node> next = candidates_.take_steps(batch);
    waiting_.push(next);
    for (const Node& node : next) note_best(node);
  }

  void note_best(const Node& node) {
    if (node.level != Level::kCandidate || candidates_[node.index].known != Known::kShared) return;
    if (!best_ || node < *best_) best_ = node;
  }

  bool is_full() const { return std::ssize(rows_) >= options_.keep; }

  /// Returns how many nodes to look at together. The more steps were taken, the more: few are looked at in vain.
  std::int64_t batch_size() const {
    constexpr std::int64_t kShareInVain = 16, kMost = 512;
    return std::clamp<std::int64_t>(steps_ / kShareInVain, 1, kMost);
  }

  /// Returns the nodes that the evaluations that are left allow, and counts their steps.
  std::vector<Node> taken(std::vector<Node> batch) {
    limit_evaluations(batch);
    steps_ += std::ssize(batch);
    return batch;
  }

  /// Takes the rows that the queue begins with, and returns the first nodes behind them with which steps have to be
  /// taken.
  std::vector<Node> next_batch() {
    const std::int64_t size = batch_size();
    std::vector<Node> batch, later;
    std::set<std::uint32_t> families;  // that are no rows, in the order of their least value
    while (std::ssize(batch) + std::ssize(later) < size) {
      const auto node = waiting_.take_first();
      if (!node) break;
      const bool is_candidate = node->level == Level::kCandidate;
      const Known known = is_candidate ? candidates_[node->index].known : Known::kStages;
      if (Row* row = row_of(node->place)) {
        if (known < Known::kPrivate && is_close(node->value, *row)) batch.push_back(*node);
      } else if (is_full()) {
        continue;
      } else if (node->value >= options_.below) {
        later.push_back(*node);
        break;
      } else if (known == Known::kShared) {
        if (batch.empty() && later.empty()) {
          add_row(*node);
        } else {
          families.insert(node->place[0]);  // the others of its family are dearer
          later.push_back(*node);
        }
      } else {
        // A row of each of so many families is wanted in any case: that of the family's least value.
        const bool first = families.insert(node->place[0]).second;
        const bool wanted = first && std::ssize(families) <= options_.keep - std::ssize(rows_);
        (known < Known::kPrivate || wanted ? batch : later).push_back(*node);
      }
    }
    waiting_.push(later);
    return taken(std::move(batch));
  }

  /// Takes the rows of a front that the queue begins with, and returns the first nodes behind them with which steps
  /// have to be taken.
  std::vector<Node> next_of_front() {
    const std::int64_t size = batch_size();
    std::vector<Node> batch, later;
    while (std::ssize(batch) + std::ssize(later) < size) {
      const auto node = waiting_.take_first();
      if (!node) break;
      const Candidate* candidate = node->level == Level::kCandidate ? &candidates_[node->index] : nullptr;
      const bool beaten = candidate != nullptr && !rows_.empty() && candidate->peak_bytes >= last_row().peak_bytes;
      if (beaten) continue;
      const bool is_first = batch.empty() && later.empty();
      if (candidate == nullptr || candidate->known < Known::kPrivate ||
          (candidate->known == Known::kPrivate && is_first)) {
        batch.push_back(*node);
      } else if (candidate->known == Known::kShared && is_first) {
        if (!rows_.empty() && last_row().value == candidate->value) rows_.pop_back();
        add_row(*node);
        candidates_.limit_peak(candidate->peak_bytes);
      } else {
        later.push_back(*node);
      }
    }
    waiting_.push(later);
    return taken(std::move(batch));
  }

  const Candidate& last_row() const { return candidates_[rows_.back().best]; }

  /// Puts candidates back for which no evaluations are left.
  void limit_evaluations(std::vector<Node>& batch) {
    if (options_.most_evaluations == 0 || is_full()) return;
    std::int64_t left = options_.most_evaluations - candidates_.evaluations();
    std::erase_if(batch, [&](const Node& node) {
      if (node.level != Level::kCandidate || left-- > 0) return false;
      waiting_.push(node);
      return true;
    });
  }

  /// True if the search has to end although layouts wait; notes what is known of them.
  bool stops(double least) {
    SearchProgress progress{.least = least};
    if (best_) progress.best = &candidates_.evaluation(best_->index), progress.best_value = best_->value;
    const bool is_spent = options_.most_evaluations > 0 && candidates_.evaluations() >= options_.most_evaluations;
    if (!is_spent && !options_.stop(progress)) return false;
    result_.stopped_at = least;
    result_.counts.evaluations_until_stop = candidates_.evaluations();
    return true;
  }

  /// Ranks the layouts whose steps are known, on shared links. Where there are none, it goes on to the first that fits.
  void rank_what_is_known() {
    std::vector<Node> known;
    for (std::size_t index = 0; index < candidates_.size(); ++index) {
      if (candidates_[index].known == Known::kPrivate || candidates_[index].known == Known::kShared)
        known.push_back(candidates_.node_of(Level::kCandidate, index));
    }
    std::ranges::sort(known);
    std::vector<Node> shared;
    for (const Node& node : known) {
      if (std::ssize(shared) == options_.keep || row_of(node.place) != nullptr) continue;
      if (candidates_[node.index].known == Known::kPrivate) candidates_.take_steps({&node, 1});
      if (candidates_[node.index].known == Known::kShared && candidates_[node.index].value < options_.below)
        shared.push_back(candidates_.node_of(Level::kCandidate, node.index));
    }
    std::ranges::sort(shared);
    for (const Node& node : shared)
      if (!is_full() && row_of(node.place) == nullptr) add_row(node);
    while (rows_.empty()) {
      const auto node = waiting_.take_first();
      if (!node || node->value >= options_.below) return;
      const Known known = node->level == Level::kCandidate ? candidates_[node->index].known : Known::kStages;
      if (known == Known::kShared)
        add_row(*node);
      else if (known != Known::kOut)
        waiting_.push(candidates_.take_steps({&*node, 1}));
    }
  }

  /// Returns the row of the node's family; null if it has none yet.
  Row* row_of(const TreePlace& place) {
    const auto row = std::ranges::find_if(
        rows_, [&](const Row& one) { return candidates_[one.best].place.front() == place.front(); });
    return row == rows_.end() ? nullptr : &*row;
  }

  std::vector<std::size_t> rows_indices() const {
    std::vector<std::size_t> indices;
    for (const Row& row : rows_) indices.push_back(row.best);
    return indices;
  }

  void add_row(const Node& node) { rows_.push_back({.best = node.index}); }

  bool is_close(double value, const Row& row) const {
    return value <= (1 + kNearlyTheSame) * candidates_[row.best].value;
  }

  const SearchOptions& options_;
  Candidates candidates_;
  CandidateQueue waiting_;
  bool has_answer_;  ///< another search has found rows: one that is stopped without any need not go on
  std::vector<Row> rows_;
  std::optional<Node> best_;  ///< of those on shared links
  std::int64_t steps_ = 0;    ///< that were taken with nodes
  SearchResult result_;
};

}  // namespace

SearchResult ranked_layouts(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                            const std::optional<Schedule>& order, const RankingLimits& limits) {
  return Ranking(pricing, space, options, order, limits).run();
}

}}  // namespace plumb::planner
