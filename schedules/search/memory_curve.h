#pragma once
// Time against memory: the best order that is found within more and more memory, and what each schedule of the
// catalogue loses to the best order within its own.
//
//   for (const CurvePoint& point : memory_curve({question}, kUsualRatios)) point.found.time

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "schedules/search/search_schedule.h"

namespace plumb { inline namespace schedules {

/// Ratios of memory from a small share of what is given to a multiple of it.
inline constexpr std::array kUsualRatios = {0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0};

struct CurvePoint {
  double memory_ratio = 1;       ///< the limit of each rank, as a multiple of the question's
  std::int64_t limit_bytes = 0;  ///< the largest limit of a rank
  std::size_t question = 0;      ///< the one whose placement the order has
  FoundSchedule found;
};

/// Returns the best order over all questions (a placement each) at each ratio of their limits, which they must have.
/// A ratio at which no order fits is left out, and so is one whose limits change nothing. The effort is shared by all
/// searches. An order that is found within less memory is a start within more: times never grow. Ratios ascend.
std::vector<CurvePoint> memory_curve(const std::vector<OrderQuestion>& questions, std::span<const double> ratios,
                                     const SearchEffort& effort = {});

struct GeneratorLoss {
  Schedule order;               ///< of the catalogue, as searches know orders
  std::size_t question = 0;     ///< the one whose placement it has
  std::int64_t time = 0;        ///< of the question's objective
  std::int64_t peak_bytes = 0;  ///< the most that a rank of it holds
  std::int64_t best_time = 0;   ///< of the best order found with that much memory on every rank
};

/// Returns each schedule of the catalogue that has a question's placement, whatever memory it needs, beside the best
/// order over all questions that is found within as much on every rank. `known` are orders of the questions that may
/// be the best. The effort is shared by all searches.
std::vector<GeneratorLoss> generator_losses(const std::vector<OrderQuestion>& questions,
                                            const std::vector<CurvePoint>& known, const SearchEffort& effort = {});

}}  // namespace plumb::schedules
