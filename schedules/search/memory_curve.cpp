#include "schedules/search/memory_curve.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "schedules/search/catalogue_orders.h"
#include "schedules/synthesis/local_search.h"

namespace plumb { inline namespace schedules {
namespace {

std::int64_t most_held(const OrderQuestion& question, const Schedule& order) {
  std::int64_t most = 0;
  for (const std::vector<Action>& actions : order.ranks) most = std::max(most, peak_bytes(question.memory, actions));
  return most;
}

/// Returns the different orders of the catalogue, in any memory, with backwards whole where they have them whole.
std::vector<Schedule> generators_of(OrderQuestion question) {
  question.memory.max_bytes.clear();
  std::vector<Schedule> orders;
  std::set<std::string> named;
  for (const bool whole : {true, question.whole_backwards}) {
    question.whole_backwards = whole;
    for (Schedule& order : catalogue_orders(question)) {
      const bool is_new = named.insert(order.name).second;
      if (is_new && std::ranges::find(orders, order.ranks, &Schedule::ranks) == orders.end()) {
        orders.push_back(std::move(order));
      }
    }
  }
  return orders;
}

/// Returns the effort of one of several searches.
SearchEffort share_of(SearchEffort effort, std::size_t searches) {
  effort.timed_actions /= static_cast<double>(std::max<std::size_t>(searches, 1));
  effort.progress = {};
  return effort;
}

struct BestOfAll {
  std::size_t question = 0;
  FoundSchedule found;
};

/// Returns the best answer of the questions, each with its own starts; nothing if none has one.
std::optional<BestOfAll> best_of(const std::vector<OrderQuestion>& questions, const SearchEffort& effort,
                                 const std::vector<std::vector<Schedule>>& starts) {
  std::optional<BestOfAll> best;
  for (std::size_t q = 0; q < questions.size(); ++q) {
    std::optional<FoundSchedule> found = search_schedule(questions[q], effort, starts[q]);
    if (found && (!best || found->time < best->found.time)) best = BestOfAll{q, std::move(*found)};
  }
  return best;
}

}  // namespace

std::vector<CurvePoint> memory_curve(const std::vector<OrderQuestion>& questions, std::span<const double> ratios,
                                     const SearchEffort& effort) {
  std::vector<CurvePoint> curve;
  std::vector<std::vector<Schedule>> starts(questions.size());
  const SearchEffort each = share_of(effort, ratios.size() * questions.size());
  for (const double ratio : ratios) {
    std::vector<OrderQuestion> limited = questions;
    CurvePoint point{.memory_ratio = ratio};
    for (OrderQuestion& question : limited) {
      for (std::int64_t& most : question.memory.max_bytes) {
        most = std::llround(std::floor(static_cast<double>(most) * ratio));
        point.limit_bytes = std::max(point.limit_bytes, most);
      }
    }
    if (!curve.empty() && point.limit_bytes == curve.back().limit_bytes) continue;
    std::optional<BestOfAll> best = best_of(limited, each, starts);
    if (!best) continue;
    starts[best->question].push_back(best->found.schedule);
    point.question = best->question;
    point.found = std::move(best->found);
    curve.push_back(std::move(point));
  }
  return curve;
}

std::vector<GeneratorLoss> generator_losses(const std::vector<OrderQuestion>& questions,
                                            const std::vector<CurvePoint>& known, const SearchEffort& effort) {
  std::vector<GeneratorLoss> losses;
  std::vector<std::vector<Schedule>> starts(questions.size());
  for (const CurvePoint& point : known) starts[point.question].push_back(point.found.schedule);
  for (std::size_t q = 0; q < questions.size(); ++q) {
    for (Schedule& order : generators_of(questions[q])) {
      const std::int64_t time = order_time(order, questions[q]);
      const std::int64_t peak = most_held(questions[q], order);
      losses.push_back({.order = std::move(order), .question = q, .time = time, .peak_bytes = peak});
    }
  }
  std::ranges::stable_sort(losses, {}, &GeneratorLoss::peak_bytes);
  const SearchEffort each = share_of(effort, losses.size() * questions.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    GeneratorLoss& loss = losses[i];
    if (i > 0 && losses[i - 1].peak_bytes == loss.peak_bytes) {
      loss.best_time = losses[i - 1].best_time;
      continue;
    }
    std::vector<OrderQuestion> limited = questions;
    for (OrderQuestion& question : limited) {
      question.memory.max_bytes.assign(static_cast<std::size_t>(question.ranks), loss.peak_bytes);
    }
    std::optional<BestOfAll> best = best_of(limited, each, starts);
    loss.best_time = best ? best->found.time : loss.time;
    if (best) starts[best->question].push_back(std::move(best->found.schedule));
  }
  return losses;
}

}}  // namespace plumb::schedules
