// Searches, bounds and the catalogue on random questions, whose seeds are fixed.

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "schedules/bounds/lower_bound.h"
#include "schedules/bounds/rank_alone.h"
#include "schedules/rules/validate.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/search/exact_order.h"
#include "schedules/search/search_schedule.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/random_questions.h"

namespace plumb::test {
namespace {

constexpr std::array kPlacements = {"chain", "chain", "loop", "v", "wave", "bidirectional"};

/// Returns the size of the k-th question of up to that many ranks and micro-batches.
QuestionSize size_of(std::mt19937_64& random, int k, int ranks, int microbatches) {
  QuestionSize size{.placement = kPlacements[static_cast<std::size_t>(k) % kPlacements.size()]};
  const auto up_to = [&random](int most) { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
  size.ranks = size.placement == "bidirectional" ? 2 * up_to(ranks / 2) : up_to(ranks);
  size.microbatches = size.placement == "bidirectional" ? 1 + up_to(microbatches - 1) : up_to(microbatches);
  return size;
}

/// Returns the orders that are known of a question: those of the catalogue and the serial one, as far as
/// memory goes.
std::vector<Schedule> known_orders(const OrderQuestion& question) {
  std::vector<Schedule> orders = catalogue_orders(question);
  if (Schedule serial = serial_order(question); fits_memory(question, serial)) orders.push_back(std::move(serial));
  return orders;
}

/// Returns the largest bound of a rank alone, at most `most_time`.
std::int64_t best_alone(const OrderQuestion& question, std::int64_t most_time) {
  std::int64_t best = 0;
  for (int rank = 0; rank < question.ranks; ++rank) {
    best = std::max(best, rank_alone_bound(question, rank, most_time, 20'000).time);
  }
  return best;
}

/// Counts the questions that are proved optimal, by ranks, micro-batches and memory.
class Shares {
 public:
  void count(const OrderQuestion& question, bool is_proved) {
    const auto up_to = [](int number, int step) { return std::to_string((number + step - 1) / step * step); };
    const auto chunks = static_cast<std::int64_t>(question.frame.stages.size()) / question.ranks;
    std::string memory = "any memory";
    if (!question.memory.max_bytes.empty()) {
      const std::int64_t least = *std::ranges::min_element(question.memory.max_bytes) / (10 * chunks);
      memory = least < question.ranks ? "memory below p on a rank" : "memory of p or more";
    }
    for (const std::string& group : {std::string("all"), "p up to " + up_to(question.ranks, 2),
                                     "m up to " + up_to(question.frame.microbatches, 4), memory}) {
      ++of_group_[group].first;
      of_group_[group].second += is_proved ? 1 : 0;
    }
  }

  std::string text() const {
    std::string lines = "proved optimal\n";
    for (const auto& [group, counts] : of_group_) {
      lines += "  " + group + ": " + std::to_string(counts.second) + " of " + std::to_string(counts.first) + "\n";
    }
    return lines;
  }

 private:
  std::map<std::string, std::pair<int, int>> of_group_;  ///< questions, and those of them that are proved
};

double gap(std::int64_t time, const LowerBound& bound) {
  return static_cast<double>(time) / static_cast<double>(bound.time) - 1;
}

double median(std::vector<double> values) {
  REQUIRE_FALSE(values.empty());
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

}  // namespace

TEST_SUITE_BEGIN("property");

TEST_CASE("no bound of ten thousand random questions is above the time of an order of the catalogue") {
  std::mt19937_64 random(1);
  for (int k = 0; k < 10'000; ++k) {
    QuestionSize size = size_of(random, k, 5, 8);
    size.busy_links = k % 4 == 0;
    size.slower_back = k % 3 == 0;
    const OrderQuestion question = random_question(random, size);
    const LowerBound bound = best_bound(question);
    std::int64_t sum = 0;
    for (const BoundTerm& term : bound.terms) sum += term.time;
    CHECK(sum == bound.time);
    for (const Schedule& order : known_orders(question)) {
      CAPTURE(k);
      CAPTURE(order.name);
      CAPTURE(bound.reason);
      CHECK(order_time(order, question) >= bound.time);
    }
  }
}

TEST_CASE("no bound of a rank alone is above the time of an order of the catalogue, nor below that of its work") {
  std::mt19937_64 random(6);
  int given = 0;
  for (int k = 0; k < 1000; ++k) {
    QuestionSize size = size_of(random, k, 4, 6);
    size.slower_back = k % 2 == 0;
    const OrderQuestion question = random_question(random, size);
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    for (const Schedule& order : known_orders(question)) shortest = std::min(shortest, order_time(order, question));
    if (shortest == std::numeric_limits<std::int64_t>::max()) continue;
    for (int rank = 0; rank < question.ranks; ++rank) {
      CAPTURE(k);
      CAPTURE(rank);
      const LowerBound alone = rank_alone_bound(question, rank, 2 * shortest, 2000);
      CHECK(alone.time <= shortest);
      if (alone.time > 0) ++given;
    }
  }
  MESSAGE(given, " of a rank alone within 2000 comparisons");
  CHECK(given >= 1000);
}

TEST_CASE("no bound is above the optimum of a small chain, and most are equal to it") {
  std::mt19937_64 random(2);
  int settled = 0;
  int equal = 0;
  for (int k = 0; k < 300; ++k) {
    const auto microbatches = 1 + static_cast<int>(random() % 5);
    const OrderQuestion question =
        random_question(random, {.ranks = 1 + k % 3, .microbatches = microbatches, .slower_back = k % 2 == 0});
    const ExactOrder exact = exact_order(question, std::numeric_limits<std::int64_t>::max());
    if (!exact.is_complete || exact.schedule.ranks.empty()) continue;
    ++settled;
    const LowerBound bound = best_bound(question);
    CAPTURE(k);
    CAPTURE(bound.reason);
    CHECK(bound.time <= exact.time);
    if (std::max(bound.time, best_alone(question, 2 * exact.time)) == exact.time) ++equal;
    CHECK(best_alone(question, 2 * exact.time) <= exact.time);
  }
  MESSAGE("settled ", settled, " of 300, bound equal to the optimum in ", equal);
  CHECK(settled == 300);
  CHECK(equal >= 270);  // nine in ten
}

TEST_CASE("no bound is above the optimum of a few stages on a loop or a V, and a search that settles is the optimum") {
  std::mt19937_64 random(4);
  int settled = 0, equal = 0;
  constexpr int kQuestions = 120;
  for (int k = 0; k < kQuestions; ++k) {
    const OrderQuestion question = random_question(random, {.placement = k % 2 == 0 ? "loop" : "v",
                                                            .ranks = 2 + k % 4 / 3,
                                                            .microbatches = 1 + static_cast<int>(random() % 4),
                                                            .slower_back = k % 3 == 0});
    const ExactOrder exact = exact_order(question, std::numeric_limits<std::int64_t>::max(), {.most_nodes = 20'000});
    if (!exact.is_complete || exact.schedule.ranks.empty()) continue;
    ++settled;
    const LowerBound bound = best_bound(question);
    CAPTURE(k);
    CAPTURE(bound.reason);
    CHECK(bound.time <= exact.time);
    if (std::max(bound.time, best_alone(question, 2 * exact.time)) == exact.time) ++equal;
    CHECK(best_alone(question, 2 * exact.time) <= exact.time);
    const FoundSchedule found = search_schedule(question, {.timed_actions = 5e6}).value();
    CHECK(found.time == exact.time);
    CHECK(found.bound.time == exact.time);
  }
  MESSAGE("settled ", settled, " of ", kQuestions, ", bound equal to the optimum in ", equal);
  CHECK(settled >= kQuestions / 2);
}

TEST_CASE("no bound is above the optimum of a few slices, and a search that settles is the optimum") {
  std::mt19937_64 random(8);
  int settled = 0, equal = 0;
  constexpr int kQuestions = 120;
  for (int k = 0; k < kQuestions; ++k) {
    const OrderQuestion question = random_question(random, {.placement = k % 4 == 3 ? "loop" : "chain",
                                                            .ranks = 2 + k % 3 / 2,
                                                            .microbatches = 1 + static_cast<int>(random() % 2),
                                                            .slices = 2 + k % 2,
                                                            .slower_back = k % 3 == 0});
    const ExactOrder exact = exact_order(question, std::numeric_limits<std::int64_t>::max(), {.most_nodes = 20'000});
    if (!exact.is_complete || exact.schedule.ranks.empty()) continue;
    ++settled;
    CAPTURE(k);
    CHECK(best_bound(question).time <= exact.time);
    if (std::max(best_bound(question).time, best_alone(question, 2 * exact.time)) == exact.time) ++equal;
    CHECK(best_alone(question, 2 * exact.time) <= exact.time);
    const FoundSchedule found = search_schedule(question, {.timed_actions = 5e6}).value();
    CHECK(found.time == exact.time);
    CHECK(found.bound.time == exact.time);
  }
  MESSAGE("settled ", settled, " of ", kQuestions, ", bound equal to the optimum in ", equal);
  CHECK(settled >= kQuestions / 2);
}

TEST_CASE("a search is never worse than the catalogue within its memory, and halves the gap of what is far off") {
  std::mt19937_64 random(3);
  std::vector<double> far_off;
  std::vector<double> found_there;
  Shares shares;
  for (int k = 0; k < 400; ++k) {
    const OrderQuestion question = random_question(random, size_of(random, k, 6, 12));
    const std::vector<Schedule> orders = known_orders(question);
    if (orders.empty()) continue;
    std::int64_t best_known = std::numeric_limits<std::int64_t>::max();
    for (const Schedule& order : orders) best_known = std::min(best_known, order_time(order, question));
    const FoundSchedule found = search_schedule(question, {.timed_actions = 2e6}).value();
    CAPTURE(k);
    CHECK(found.time <= best_known);
    CHECK(found.time >= best_bound(question).time);
    CHECK(order_time(found.schedule, question) == found.time);
    CHECK(validate(found.schedule).empty());
    CHECK(fits_memory(question, found.schedule));
    shares.count(question, found.time == found.bound.time);
    if (gap(best_known, found.bound) <= 0.05) continue;
    far_off.push_back(gap(best_known, found.bound));
    found_there.push_back(gap(found.time, found.bound));
  }
  MESSAGE(shares.text(), "of ", far_off.size(),
          " whose best order of the catalogue is more than 5 % above the bound the median gap is ", median(far_off),
          ", and ", median(found_there), " of what is found");
  CHECK(median(found_there) <= median(far_off) / 2);
}

TEST_CASE("with sequences in slices a search is never worse than the catalogue, nor below its bound") {
  std::mt19937_64 random(7);
  int asked = 0, proved = 0;
  std::vector<double> gaps, gaps_before;
  for (int k = 0; k < 100; ++k) {
    const OrderQuestion question = random_question(random, {.placement = k % 3 == 2 ? "loop" : "chain",
                                                            .ranks = 1 + static_cast<int>(random() % 4),
                                                            .microbatches = 1 + static_cast<int>(random() % 5),
                                                            .slices = 2 + static_cast<int>(random() % 3),
                                                            .busy_links = k % 5 == 0});
    const std::vector<Schedule> orders = known_orders(question);
    if (orders.empty()) continue;
    const FoundSchedule found = search_schedule(question, {.timed_actions = 5e5}).value();
    CAPTURE(k);
    std::int64_t best_known = std::numeric_limits<std::int64_t>::max();
    for (const Schedule& order : orders) best_known = std::min(best_known, order_time(order, question));
    CHECK(found.time <= best_known);
    CHECK(found.time >= found.bound.time);
    CHECK(order_time(found.schedule, question) == found.time);
    CHECK(validate(found.schedule).empty());
    CHECK(fits_memory(question, found.schedule));
    ++asked;
    proved += found.time == found.bound.time ? 1 : 0;
    gaps.push_back(gap(found.time, found.bound));
    gaps_before.push_back(gap(best_known, found.bound));
  }
  MESSAGE(proved, " of ", asked, " proved optimal; the median gap is ", median(gaps_before), ", and ", median(gaps),
          " of what is found");
  CHECK(median(gaps) <= median(gaps_before));
}

TEST_CASE("where pairs overlap, a search is never worse than a schedule with or without them, nor below its bound") {
  std::mt19937_64 random(9);
  int proved = 0, asked = 0, with_pairs = 0;
  std::vector<double> gaps_apart, gaps;
  constexpr std::array kOfSeveralStages = {"v", "loop", "wave", "bidirectional", "bidirectional"};
  for (int k = 0; k < 100; ++k) {
    QuestionSize size{.placement = kOfSeveralStages[static_cast<std::size_t>(k) % kOfSeveralStages.size()],
                      .ranks = 2 * (1 + static_cast<int>(random() % 2)),
                      .microbatches = 2 + static_cast<int>(random() % 8),
                      .pairs = true};
    size.busy_links = k % 7 == 0;
    const OrderQuestion question = random_question(random, size);
    const std::vector<Schedule> orders = known_orders(question);
    if (orders.empty()) continue;
    const FoundSchedule found = search_schedule(question, {.timed_actions = 1e6}).value();
    CAPTURE(k);
    std::int64_t best_known = std::numeric_limits<std::int64_t>::max();
    for (const Schedule& order : orders) {
      const std::int64_t time = order_time(order, question);
      CHECK(found.time <= time);
      CHECK(best_bound(question).time <= time);
      best_known = std::min(best_known, time);
    }
    CHECK(found.time >= found.bound.time);
    CHECK(order_time(found.schedule, question) == found.time);
    CHECK(validate(found.schedule).empty());
    CHECK(fits_memory(question, found.schedule));
    ++asked;
    proved += found.time == found.bound.time ? 1 : 0;
    with_pairs += std::ranges::any_of(found.schedule.ranks, [](const std::vector<Action>& list) {
      return std::ranges::any_of(list, &Action::overlaps_next);
    });
    gaps.push_back(gap(found.time, found.bound));
    gaps_apart.push_back(gap(best_known, found.bound));
  }
  MESSAGE(with_pairs, " of ", asked, " are found with pairs, and ", proved, " are proved optimal; the median gap is ",
          median(gaps_apart), " of the best that is known, and ", median(gaps), " of what is found");
  CHECK(with_pairs >= asked / 4);
  CHECK(median(gaps) < median(gaps_apart));
}

TEST_CASE("where links carry one message at a time, a search is never worse than the catalogue, nor below its bound") {
  std::mt19937_64 random(5);
  int proved = 0, of_links = 0;
  constexpr int kQuestions = 60;
  for (int k = 0; k < kQuestions; ++k) {
    QuestionSize size = size_of(random, k, 4, 8);
    size.busy_links = true;
    size.slower_back = k % 2 == 0;
    const OrderQuestion question = random_question(random, size);
    const std::vector<Schedule> orders = known_orders(question);
    if (orders.empty()) continue;
    const FoundSchedule found = search_schedule(question, {.timed_actions = 5e5}).value();
    CAPTURE(k);
    for (const Schedule& order : orders) CHECK(found.time <= order_time(order, question));
    CHECK(found.time >= found.bound.time);
    CHECK(order_time(found.schedule, question) == found.time);
    CHECK(validate(found.schedule).empty());
    CHECK(fits_memory(question, found.schedule));
    proved += found.time == found.bound.time ? 1 : 0;
    of_links += found.bound.reason.starts_with("the link") ? 1 : 0;
  }
  MESSAGE(proved, " of ", kQuestions, " proved optimal; a link binds in ", of_links);
  CHECK(of_links > 0);
}

TEST_SUITE_END();

}  // namespace plumb::test
