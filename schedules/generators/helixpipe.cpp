// From the paper and its authors' code: attention has no weights, so that a layer's attention runs for as many
// micro-batches at a time as there are ranks, each on another rank. What stands between two attentions (the products
// behind the one and those ahead of the next) stays on one rank, layer by layer around the ranks (attention parallel
// partition). All forwards come first, and the backwards take the mirrored order (first in, last out), for two
// micro-batches in each place (two-fold), so that messages of one move beside the compute of the other.
//
// Derived here: the place of a micro-batch where 2p does not divide m; a rank that ends a round of micro-batches and
// begins the next does so micro-batch by micro-batch, as the code does. Left out: the projection to queries, keys and
// values, which the code can move to the attention's rank, and recomputation, which is an option of every schedule.

#include <algorithm>

#include "schedules/generators/generators.h"
#include "schedules/generators/phases.h"

namespace plumb { inline namespace schedules {
namespace {

/// The stages of a helix. A lane has one for each of the model parts 0 to 2L: part 2k is what stands between the
/// attentions of layers k-1 and k, part 2k+1 the attention of layer k.
struct Helix {
  int ranks = 1;
  int lanes = 1;
  int layers = 1;

  int parts() const { return 2 * layers + 1; }
  int stage(int lane, int part) const { return lane * parts() + part; }
  bool is_attention(int part) const { return part % 2 == 1; }
  /// Attention has no gradients of weights, which can be seen where there are several lanes (weight_holders.h).
  Op backward(int part) const { return is_attention(part) && lanes > 1 ? Op::kInputGrad : Op::kBackward; }
  int rank(int lane, int part) const {
    const int layer = part / 2;
    return (is_attention(part) ? layer + 1 + lane : layer) % ranks;
  }
};

/// Lists the forwards of one rank after the other part of the model, for a round of micro-batches at a time.
class HelixForwards {
 public:
  HelixForwards(const Helix& helix, int microbatches) : helix_(helix), microbatches_(microbatches) {}

  std::vector<std::vector<Action>> list() {
    of_ranks_.resize(static_cast<std::size_t>(helix_.ranks));
    const int most = 2 * helix_.ranks;
    for (int first = 0; first < microbatches_; first += most) {
      const int count = round_size(first);
      for (int part = first == 0 ? 0 : 1; part < helix_.parts(); ++part)
        for (int i = 0; i < count; ++i) {
          add(part, first, i);
          if (part + 1 == helix_.parts() && i < round_size(first + most)) add(0, first + most, i);
        }
    }
    return std::move(of_ranks_);
  }

 private:
  int round_size(int first) const { return std::clamp(microbatches_ - first, 0, 2 * helix_.ranks); }

  /// Adds the forward of the i-th micro-batch of a round. Neighbours in the round have the same lane, or the next one.
  void add(int part, int first, int i) {
    const int lane = i * helix_.lanes / round_size(first);
    of_ranks_[static_cast<std::size_t>(helix_.rank(lane, part))].push_back(
        compute_action(Op::kForward, helix_.stage(lane, part), first + i));
  }

  const Helix& helix_;
  int microbatches_;
  std::vector<std::vector<Action>> of_ranks_;
};

}  // namespace

Schedule helixpipe_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  const Helix helix{.ranks = p, .lanes = std::min(p, m), .layers = p * parameters.chunks};
  Schedule schedule{.name = "helixpipe", .microbatches = m};
  for (int lane = 0; lane < helix.lanes; ++lane)
    for (int part = 0; part < helix.parts(); ++part)
      schedule.stages.push_back({.rank = helix.rank(lane, part), .model_part = part, .lane = lane});
  schedule.ranks = HelixForwards(helix, m).list();
  for (std::vector<Action>& actions : schedule.ranks) {
    const std::vector<Action> forwards = actions;
    for (std::size_t i = forwards.size(); i-- > 0;) {
      const Action& forward = forwards[i];
      const Op op = helix.backward(schedule.stages[forward.stage].model_part);
      actions.push_back(compute_action(op, forward.stage, forward.microbatch));
    }
  }
  return schedule;
}

}}  // namespace plumb::schedules
