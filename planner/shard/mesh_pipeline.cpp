#include "planner/shard/mesh_pipeline.h"

#include <algorithm>

namespace plumb { inline namespace planner {
namespace {

constexpr double kNoPipeline = std::numeric_limits<double>::infinity();

StageTransfer transfer_before(const MeshPipelineProblem& problem, int layer, int from, int to) {
  return layer == 0 || !problem.transfer ? StageTransfer{} : problem.transfer(layer, from, to);
}

class PipelineSearch {
 public:
  explicit PipelineSearch(const MeshPipelineProblem& problem) : problem_(problem) {
    for (const int devices : problem.devices) {
      strides_.push_back(placements_);
      placements_ *= devices + 1;
    }
    for (int begin = 0; begin < problem.layers; ++begin)
      for (int end = begin + 1; end <= problem.layers; ++end)
        for (std::size_t mesh = 0; mesh < problem.meshes.size(); ++mesh)
          costs_.push_back(problem.stage(begin, end, static_cast<int>(mesh)));
    for (std::size_t first = 0; first < costs_.size(); first += problem.meshes.size())
      worthwhile_.push_back(worthwhile(first));
    int most = 0;
    for (const int devices : problem.devices) most += devices;
    most_stages_ = std::min(problem.layers, most);
  }

  std::optional<MeshPipeline> run() {
    const std::optional<MeshPipeline> cheapest = within(kNoPipeline);
    if (!cheapest) return cheapest;
    const auto others = static_cast<double>(problem_.microbatches - 1);
    const std::vector<double> limits = limits_of_stages();
    const double least = *std::ranges::partition_point(limits, [&](double limit) { return !within(limit); });
    // The sum grows as the limit falls. Between the slowest stage of an answer and its limit the answer is the same.
    MeshPipeline best = *cheapest, last = *cheapest;
    while (last.slowest > least && last.seconds - others * (last.slowest - least) < best.seconds) {
      last = *within(*(std::ranges::lower_bound(limits, last.slowest) - 1));
      if (last.seconds < best.seconds) best = last;
    }
    return within(best.slowest);
  }

 private:
  /// The best stages from a layer on, behind a stage on a given site: their sum with the transfer to them, and the first.
  struct End {
    double sum = kNoPipeline;
    int end = 0;
    int mesh = -1;
  };

  /// Returns the meshes of a segment that may be of use: no other one of as many devices of the site is as quick and holds
  /// as little.
  std::vector<int> worthwhile(std::size_t first) const {
    const auto covers = [&](std::size_t one, std::size_t other) {
      const MeshCost &kept = costs_[first + one], &dropped = costs_[first + other];
      if (!(problem_.meshes[one] == problem_.meshes[other]) || kept.seconds > dropped.seconds ||
          kept.state_bytes > dropped.state_bytes || kept.in_flight_bytes > dropped.in_flight_bytes)
        return false;
      const bool equal = kept.seconds == dropped.seconds && kept.state_bytes == dropped.state_bytes &&
                         kept.in_flight_bytes == dropped.in_flight_bytes;
      return !equal || one < other;
    };
    std::vector<int> meshes;
    for (std::size_t mesh = 0; mesh < problem_.meshes.size(); ++mesh) {
      bool useful = costs_[first + mesh].seconds != kNoPipeline;
      for (std::size_t other = 0; other < problem_.meshes.size() && useful; ++other)
        useful = other == mesh || !covers(other, mesh);
      if (useful) meshes.push_back(static_cast<int>(mesh));
    }
    return meshes;
  }

  /// Segments are in order of their begin, and those with one begin in order of their end.
  std::size_t segment(int begin, int end) const {
    return static_cast<std::size_t>(begin * problem_.layers - begin * (begin - 1) / 2 + end - begin - 1);
  }

  const MeshCost& cost(int begin, int end, int mesh) const {
    return costs_[segment(begin, end) * problem_.meshes.size() + static_cast<std::size_t>(mesh)];
  }

  /// Returns the times that a slowest stage may have, in ascending order.
  std::vector<double> limits_of_stages() const {
    std::vector<double> limits;
    const int sites = static_cast<int>(problem_.devices.size());
    for (int begin = 0; begin < problem_.layers; ++begin)
      for (int end = begin + 1; end <= problem_.layers; ++end)
        for (const int mesh : worthwhile_[segment(begin, end)]) {
          const double seconds = cost(begin, end, mesh).seconds;
          for (int from = 0; from < (begin == 0 ? 1 : sites); ++from)
            limits.push_back(
                std::max(seconds, transfer_before(problem_, begin, from, problem_.meshes[mesh].site).occupied));
        }
    std::ranges::sort(limits);
    limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
    return limits;
  }

  std::size_t place(int stages, int layer, int site, int taken) const {
    const auto sites = static_cast<int>(problem_.devices.size());
    return ((static_cast<std::size_t>(stages) * (problem_.layers + 1) + layer) * sites + site) * placements_ +
           static_cast<std::size_t>(taken);
  }

  int taken_of(int taken, std::size_t site) const { return taken / strides_[site] % (problem_.devices[site] + 1); }

  /// Returns the stages of the least sum, none of which takes longer than `limit`.
  std::optional<MeshPipeline> within(double limit) const {
    const int sites = static_cast<int>(problem_.devices.size());
    std::vector<End> ends(place(most_stages_ + 1, 0, 0, 0));
    for (int site = 0; site < sites; ++site) ends[place(0, problem_.layers, site, 0)].sum = 0;
    for (int stages = 0; stages < most_stages_; ++stages) {
      bool any = false;
      for (int whole = 1; whole <= problem_.layers; ++whole)
        for (int site = 0; site < sites; ++site)
          for (int taken = 0; taken < placements_; ++taken) {
            const double behind = ends[place(stages, whole, site, taken)].sum;
            if (behind == kNoPipeline) continue;
            any = true;
            add_stages(stages, whole, site, taken, behind, limit, ends);
          }
      if (!any) break;
    }
    return best_of(ends);
  }

  /// Adds the stages on `site` in front of those that begin at layer `whole`.
  void add_stages(int stages, int whole, int site, int taken, double behind, double limit,
                  std::vector<End>& ends) const {
    const int sites = static_cast<int>(problem_.devices.size());
    for (int begin = whole - 1; begin >= 0; --begin) {
      for (const int mesh : worthwhile_[segment(begin, whole)]) {
        const SiteMesh& shape = problem_.meshes[static_cast<std::size_t>(mesh)];
        const MeshCost& own = cost(begin, whole, mesh);
        if (shape.site != site || taken_of(taken, shape.site) + shape.devices > problem_.devices[shape.site]) continue;
        if (own.seconds > limit ||
            own.state_bytes + problem_.in_flight(stages + 1) * own.in_flight_bytes > problem_.bytes[shape.site])
          continue;
        const int after = taken + shape.devices * strides_[shape.site];
        for (int from = 0; from < (begin == 0 ? 1 : sites); ++from) {
          const StageTransfer transfer = transfer_before(problem_, begin, from, site);
          if (transfer.occupied > limit) continue;
          const double seconds = own.seconds + transfer.delay;
          End& end = ends[place(stages + 1, begin, from, after)];
          if (behind + seconds < end.sum) end = {.sum = behind + seconds, .end = whole, .mesh = mesh};
        }
      }
    }
  }

  std::optional<MeshPipeline> best_of(const std::vector<End>& ends) const {
    double least = kNoPipeline;
    int stages = 0, taken = 0;
    for (int s = 1; s <= most_stages_; ++s)
      for (int t = problem_.uses_all_devices ? placements_ - 1 : 0; t < placements_; ++t) {
        const double sum = ends[place(s, 0, 0, t)].sum;
        if (sum >= least) continue;
        least = sum;
        stages = s;
        taken = t;
      }
    if (least == kNoPipeline) return std::nullopt;
    std::vector<PipelineStage> stages_found;
    for (int begin = 0, from = 0; begin < problem_.layers; --stages) {
      const End& end = ends[place(stages, begin, from, taken)];
      stages_found.push_back(
          {.begin = begin, .end = end.end, .mesh = end.mesh, .cost = cost(begin, end.end, end.mesh)});
      from = problem_.meshes[end.mesh].site;
      taken -= problem_.meshes[end.mesh].devices * strides_[from];
      begin = end.end;
    }
    return pipeline_of(problem_, std::move(stages_found));
  }

  const MeshPipelineProblem& problem_;
  std::vector<MeshCost> costs_;               ///< [segment][mesh]
  std::vector<std::vector<int>> worthwhile_;  ///< [segment] meshes
  std::vector<int> strides_;                  ///< [site] between two numbers of its taken devices
  int placements_ = 1;                        ///< numbers of taken devices of all sites together
  int most_stages_ = 0;
};

}  // namespace

MeshPipeline pipeline_of(const MeshPipelineProblem& problem, std::vector<PipelineStage> stages) {
  MeshPipeline pipeline{.stages = std::move(stages)};
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    const PipelineStage& stage = pipeline.stages[i];
    StageTransfer transfer;
    if (i > 0)
      transfer = transfer_before(problem, stage.begin, problem.meshes[pipeline.stages[i - 1].mesh].site,
                                 problem.meshes[stage.mesh].site);
    pipeline.seconds += stage.cost.seconds + transfer.delay;
    pipeline.slowest = std::max({pipeline.slowest, stage.cost.seconds, transfer.occupied});
  }
  pipeline.seconds += static_cast<double>(problem.microbatches - 1) * pipeline.slowest;
  return pipeline;
}

std::optional<MeshPipeline> fastest_pipeline(const MeshPipelineProblem& problem) {
  return PipelineSearch(problem).run();
}

}}  // namespace plumb::planner
