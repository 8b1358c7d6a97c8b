#include "planner/search/search.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
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
         bool complete, double most = std::numeric_limits<double>::infinity(), bool has_answer = false)
      : pricing_(pricing),
        options_(options),
        order_(order),
        candidates_(pricing, space, order,
                    {.complete = complete, .most = most, .objective = options.objective, .threads = options.threads}),
        waiting_(candidates_, most),
        has_answer_(has_answer) {}

  SearchResult run() {
    if (options_.memory_front)
      rank_front();
    else
      rank();
    const bool needs_none = rows_.empty() && has_answer_;
    if (result_.stopped_at && !needs_none && (rows_.empty() || !options_.memory_front)) rank_what_is_known();
    count();
    if (rows_.empty() && !result_.limited && !result_.stopped_at && options_.advise)
      result_.infeasible = infeasible_sentence();
    if (rows_.empty()) result_.missing_bytes = candidates_.missing_bytes();
    result_.conflicts = candidates_.conflicts();
    if (options_.explain) list_losers();
    if (options_.list_learned) list_learned();
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

  void add_row(const Node& node) { rows_.push_back({.best = node.index}); }

  bool is_close(double value, const Row& row) const {
    return value <= (1 + kNearlyTheSame) * candidates_[row.best].value;
  }

  void count() {
    const SeenLayouts& seen = candidates_.seen();
    std::int64_t simulated = 0, found_too_large = 0;
    for (std::size_t index = 0; index < candidates_.size(); ++index) {
      simulated += candidates_[index].known == Known::kShared ? 1 : 0;
      found_too_large += candidates_[index].known == Known::kOut ? 1 : 0;
    }
    SearchCounts& counts = result_.counts;
    counts.families = std::ssize(candidates_.families());
    counts.opened =
        std::ranges::count_if(candidates_.families(), [](const Branch& family) { return family.below.has_value(); });
    counts.evaluations = candidates_.evaluations();
    counts.cores_too_large = seen.cores_too_large;
    counts.priced = seen.all;
    counts.conflicts = std::ssize(candidates_.conflicts());
    counts.too_large = seen.too_large + found_too_large;
    counts.simulated = simulated;
    counts.outrun = counts.priced - counts.too_large - counts.simulated;
  }

  /// Lists what each layout takes that is no row, or why it does not fit.
  void list_losers() {
    for (std::size_t index = 0; index < candidates_.size(); ++index) {
      if (std::ranges::find(rows_, index, &Row::best) != rows_.end()) continue;
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

  void list_learned() {
    for (std::size_t index = 0; index < candidates_.size(); ++index) {
      const Candidate& candidate = candidates_[index];
      const bool fits = candidate.known != Known::kOut;
      if (candidate.peak_bytes == 0) continue;
      result_.learned.push_back({.layout = candidate.layout,
                                 .time = candidate.time,
                                 .peak_bytes = candidate.peak_bytes,
                                 .on_shared_links = candidate.known == Known::kShared,
                                 .fits = fits});
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
    if (const auto closest = candidates_.nearest_miss())
      return fmt::format("no layout fits; the closest is {}: {}", to_text(candidates_.layout(*closest)),
                         candidates_.why_out(*closest));
    if (candidates_.size() > 0)
      return fmt::format("no layout fits; the first is {}: {}", to_text(candidates_.layout(0)), candidates_.why_out(0));
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
  bool has_answer_;  ///< another search has found rows: one that is stopped without any need not go on
  std::vector<Row> rows_;
  std::optional<Node> best_;  ///< of those on shared links
  std::int64_t steps_ = 0;    ///< that were taken with nodes
  SearchResult result_;
};

/// Returns the value of the last row that counts with those that are close to it; infinity where fewer rows than are kept
/// were found.
double highest_value(const SearchResult& found, const SearchOptions& options) {
  if (std::ssize(found.values) < options.keep) return std::numeric_limits<double>::infinity();
  return (1 + kNearlyTheSame) * found.values.back();
}

/// Returns the better answer of two searches that were stopped, of which the second one's space holds the first one's.
SearchResult better_of(SearchResult usual, SearchResult wide) {
  const bool usual_is_better =
      !usual.values.empty() && (wide.values.empty() || usual.values.front() < wide.values.front());
  if (!usual_is_better) return wide;
  usual.stopped_at = wide.stopped_at;
  usual.counts = wide.counts;
  return usual;
}

/// Searches a wide space. No layout that is worse than all rows of the usual space's is a row, so that these are searched
/// first and the others are not kept.
SearchResult search_wide(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                         const std::optional<Schedule>& order) {
  LayoutSpace usual = space;
  usual.wide = false;
  SearchOptions left = options;
  left.advise = false;
  SearchResult first = Search(pricing, usual, left, order, false).run();
  left.advise = options.advise;
  if (options.most_evaluations > 0)
    left.most_evaluations = std::max<std::int64_t>(options.most_evaluations - first.counts.evaluations, 1);
  SearchResult wide =
      Search(pricing, space, left, order, false, highest_value(first, options), !first.ranked.empty()).run();
  wide.counts.evaluations += first.counts.evaluations;
  wide.counts.evaluations_until_stop += first.counts.evaluations;
  return wide.stopped_at ? better_of(std::move(first), std::move(wide)) : std::move(wide);
}

/// Returns the rows of a space, or why there are none. Cores that cannot fit are not opened, unless none fits.
SearchResult search_rows(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                         const std::optional<Schedule>& order) {
  const bool bounded = space.wide && !options.memory_front && !options.explain;
  SearchResult result = bounded ? search_wide(pricing, space, options, order)
                                : Search(pricing, space, options, order, options.explain).run();
  const bool is_answer = !result.ranked.empty() || result.limited || result.stopped_at || !options.advise;
  if (is_answer || result.counts.cores_too_large == 0) return result;
  LayoutSpace usual = space;  // of layouts that do not fit the usual ones say enough
  usual.wide = false;
  return Search(pricing, usual, options, order, true).run();
}

SearchResult search_space(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                          const std::optional<Schedule>& order) {
  SearchResult result = search_rows(pricing, space, options, order);
  if (!options.by_key || result.ranked.empty()) return result;
  SearchOptions of_value = {.objective = options.objective, .threads = options.threads, .keep = 1, .advise = false};
  result.other_values = other_values(pricing, space, result.ranked.front().layout, [&](const LayoutSpace& pinned) {
    SearchResult best = search_rows(pricing, pinned, of_value, order);
    if (!best.ranked.empty() || best.missing_bytes > 0) return best;
    return Search(pricing, pinned, of_value, order, true).run();
  });
  return result;
}

}  // namespace

SearchCounts& SearchCounts::operator+=(const SearchCounts& other) {
  for (const auto member :
       {&SearchCounts::families, &SearchCounts::opened, &SearchCounts::cores_too_large, &SearchCounts::conflicts,
        &SearchCounts::evaluations, &SearchCounts::evaluations_until_stop, &SearchCounts::priced,
        &SearchCounts::too_large, &SearchCounts::simulated, &SearchCounts::outrun})
    this->*member += other.*member;
  return *this;
}

SearchResult search_layouts(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                            const std::optional<Schedule>& order) {
  SearchResult result = search_space(pricing, space, options, order);
  const bool may_fit = !result.ranked.empty() || result.limited;
  const bool too_large = result.counts.too_large + result.counts.cores_too_large > 0;
  if (may_fit || space.wide || !space.offload.is_open() || !pricing.cluster().host || !too_large) return result;
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
