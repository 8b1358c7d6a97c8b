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
    for (auto first = costs_.begin(); first != costs_.end(); first += std::ssize(problem.meshes)) drop_dominated(first);
    int most = 0;
    for (const int devices : problem.devices) most += devices;
    most_stages_ = std::min(problem.layers, most);
  }

  std::optional<MeshPipeline> run() {
    const std::optional<MeshPipeline> cheapest = within(kNoPipeline);
    if (!cheapest) return cheapest;
    std::optional<MeshPipeline> best = cheapest;
    const auto others = static_cast<double>(problem_.microbatches - 1);
    const double least_sum = cheapest->seconds - others * cheapest->slowest;
    std::vector<double> limits = limits_of_stages();
    const auto feasible = std::ranges::partition_point(limits, [&](double limit) { return !within(limit); });
    for (auto limit = feasible; limit != limits.end(); ++limit) {
      if (least_sum + others * *limit >= best->seconds) break;
      std::optional<MeshPipeline> found = within(*limit);
      if (found && found->seconds < best->seconds) best = std::move(found);
    }
    return best;
  }

 private:
  /// The best stages from a layer on, behind a stage on a given site: their sum with the transfer to them, and the first.
  struct End {
    double sum = kNoPipeline;
    int end = 0;
    int mesh = -1;
  };

  /// Makes a mesh infinitely slow where another one of as many devices of the site is as quick and holds as little.
  void drop_dominated(std::vector<MeshCost>::iterator first) const {
    for (std::size_t a = 0; a < problem_.meshes.size(); ++a)
      for (std::size_t b = 0; b < problem_.meshes.size(); ++b) {
        const MeshCost &kept = first[a], &other = first[b];
        if (a == b || kept.seconds == kNoPipeline || !(problem_.meshes[a] == problem_.meshes[b])) continue;
        const bool covers = kept.seconds <= other.seconds && kept.state_bytes <= other.state_bytes &&
                            kept.in_flight_bytes <= other.in_flight_bytes;
        if (covers) first[b].seconds = kNoPipeline;
      }
  }

  const MeshCost& cost(int begin, int end, std::size_t mesh) const {
    // Segments are in order of their begin, and those with one begin in order of their end.
    const int before = begin * problem_.layers - begin * (begin - 1) / 2;
    return costs_[static_cast<std::size_t>(before + end - begin - 1) * problem_.meshes.size() + mesh];
  }

  /// Returns the times that a slowest stage may have, in ascending order.
  std::vector<double> limits_of_stages() const {
    std::vector<double> limits;
    const int sites = static_cast<int>(problem_.devices.size());
    for (int begin = 0; begin < problem_.layers; ++begin)
      for (int end = begin + 1; end <= problem_.layers; ++end)
        for (std::size_t mesh = 0; mesh < problem_.meshes.size(); ++mesh) {
          const double seconds = cost(begin, end, mesh).seconds;
          if (seconds == kNoPipeline) continue;
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
    for (std::size_t mesh = 0; mesh < problem_.meshes.size(); ++mesh) {
      const SiteMesh& shape = problem_.meshes[mesh];
      if (shape.site != site || taken_of(taken, shape.site) + shape.devices > problem_.devices[shape.site]) continue;
      const int after = taken + shape.devices * strides_[shape.site];
      for (int begin = whole - 1; begin >= 0; --begin) {
        const MeshCost& own = cost(begin, whole, mesh);
        if (own.seconds > limit || own.seconds == kNoPipeline) continue;
        if (own.state_bytes + problem_.in_flight(stages + 1) * own.in_flight_bytes > problem_.bytes[shape.site])
          continue;
        for (int from = 0; from < (begin == 0 ? 1 : sites); ++from) {
          const StageTransfer transfer = transfer_before(problem_, begin, from, site);
          if (transfer.occupied > limit) continue;
          const double seconds = own.seconds + transfer.delay;
          End& end = ends[place(stages + 1, begin, from, after)];
          if (behind + seconds < end.sum) end = {.sum = behind + seconds, .end = whole, .mesh = static_cast<int>(mesh)};
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
      stages_found.push_back({.begin = begin,
                              .end = end.end,
                              .mesh = end.mesh,
                              .cost = cost(begin, end.end, static_cast<std::size_t>(end.mesh))});
      from = problem_.meshes[end.mesh].site;
      taken -= problem_.meshes[end.mesh].devices * strides_[from];
      begin = end.end;
    }
    return pipeline_of(problem_, std::move(stages_found));
  }

  const MeshPipelineProblem& problem_;
  std::vector<MeshCost> costs_;  ///< [begin, end][mesh]
  std::vector<int> strides_;     ///< [site] between two numbers of its taken devices
  int placements_ = 1;           ///< numbers of taken devices of all sites together
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
