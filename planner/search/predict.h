#pragma once
// From a layout to its prediction: order, prices, lowering, simulation.
//
//   Pricing pricing(model, cluster, training);
//   Prediction prediction = predict(pricing, layout).prediction;

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/evaluate/cluster_network.h"
#include "planner/evaluate/priced_layout.h"
#include "planner/spec/layout.h"
#include "schedules/passes/passes.h"
#include "schedules/schedule.h"
#include "schedules/time.h"
#include "simulator/simulate.h"

namespace plumb { inline namespace planner {

/// What a plan promises, in the terms of `plumb simulate --json`.
struct Prediction {
  Seconds step_time{0};
  double bubble_ratio = 0;
  double span_bubble_ratio = 0;
  double samples_per_second = 0;                ///< sequences, images
  double tokens_per_second = 0;                 ///< 0 where samples are no sequences
  double mfu_ratio = 0;                         ///< price/layer/model_flops.h
  std::vector<std::int64_t> peak_memory_bytes;  ///< [pipeline rank] of tensors, of one device
  std::vector<int> peak_activations;            ///< [pipeline rank] in chunks, released at W

  friend bool operator==(const Prediction&, const Prediction&) = default;
};

/// The compute order that the layout names. Throws ScheduleError if the schedule cannot be made with its numbers,
/// SpecError if the micro-batches do not divide the batch.
Schedule order_of(const TrainingSpec& training, const Layout& layout);

/// One with the same stages, operations, and activations that its ranks hold at once: a few periods of what repeats.
Schedule short_order_of(const TrainingSpec& training, const Layout& layout);

/// The order with messages, data-parallel actions and optimizer steps; `buckets` as in PricedLayout.
Schedule lowered_for(const Layout& layout, const Schedule& order, const std::vector<int>& buckets,
                     Receives receives = Receives::kEarly);

struct Predicted {
  PricedLayout priced;
  Schedule lowered;  ///< empty where no timeline is asked for and the layout names the order
  Simulation simulation;
  Prediction prediction;
  std::optional<NetworkSpec> network;  ///< whose links the transfers share; nothing where each has its own
};

/// `order` is order_of() or a schedule of the user's own with layout.pipeline ranks; asynchronous schedules are a whole
/// run, whose time counts as the step's. With a network the transfers share its links (evaluate/cluster_network.h);
/// without, each has its links to itself, which is quicker to answer: the search's way. The order that the layout names
/// is not made in full where no timeline is asked for and its steady state is proven (simulator/steady_state.h). Throws
/// as price_layout and simulate do.
Predicted predict(Pricing& pricing, const Layout& layout, const Schedule& order, const SimulationOptions& options = {},
                  const std::optional<NetworkOptions>& network = std::nullopt, Receives receives = Receives::kEarly);
Predicted predict(Pricing& pricing, const Layout& layout, const SimulationOptions& options = {});

/// {"step_time_s", "makespan_s", "bubble_ratio", "span_bubble_ratio", "samples_per_s", "tokens_per_s", "mfu",
/// "peak_memory_bytes",
///  "peak_activations", "critical_path", "ranks"}; the last two are null, as a timeline is needed for them.
nlohmann::ordered_json to_json(const Prediction& prediction);
Prediction prediction_from_json(const nlohmann::json& json, const std::string& place);

}}  // namespace plumb::planner
