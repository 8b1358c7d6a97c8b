#pragma once
// A layer graph on the devices of one or more sites: stages on meshes of their own, each node sharded over its stage's
// mesh (Alpa, Zheng et al. 2022). Sites are clusters of equal devices, such as H100 beside A100, or two places with a
// slow link between them.
//
//   std::vector<PipelineSite> sites = {{&h100}, {&a100}};  // prices of the same graph on each cluster
//   const auto pipeline = graph_pipeline(sites, {.samples = 4, .microbatches = 16, .between = {...}});
//   simulated_step(sites, *pipeline, question)
//
// The nodes are joined to clusters of about equal time first, which is Alpa's layer clustering; a stage is some
// consecutive clusters.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "planner/shard/mesh_pipeline.h"
#include "planner/shard/sharding.h"

namespace plumb { inline namespace planner {

struct PipelineSite {
  Pricing* pricing = nullptr;
};

struct PipelineQuestion {
  std::int64_t samples = 1;       ///< of a micro-batch
  std::int64_t microbatches = 1;  ///< of a step
  int clusters = 12;              ///< of nodes, at most
  LinkCost between;               ///< of two sites
  bool uses_all_devices = false;
  IntegerSolver solver = {};  ///< asked about the stages of the answer where their sharding is not exact
};

struct StagePlan {
  int begin = 0, end = 0;  ///< nodes
  int site = 0;
  std::array<GroupPlacement, 2> mesh;
  int devices = 1;
  GraphSharding sharding;
  bool rebuilds = false;  ///< its forward runs again before its backward
  double peak_bytes = 0;  ///< of a device
};

struct GraphPipeline {
  std::vector<StagePlan> stages;
  Seconds objective{0};  ///< sum of the stages' times + (microbatches - 1) times the slowest
  Seconds slowest{0};
  int clusters = 0;
};

/// A graph on sites, asked about several times: what stages cost is worked out once.
class PipelinePlanner {
 public:
  PipelinePlanner(std::vector<PipelineSite> sites, const PipelineQuestion& question);

  /// Returns the fastest pipeline; nothing if none fits.
  std::optional<GraphPipeline> fastest();

  /// Returns the pipeline of given stages: clusters [begin, end) on so many devices of a site, each with its fastest
  /// mesh that fits; nothing if one does not fit. Throws SpecError if a stage is no part of the clusters.
  struct NamedStage {
    int begin = 0, end = 0;
    int site = 0;
    int devices = 1;
  };
  std::optional<GraphPipeline> of_stages(const std::vector<NamedStage>& stages);

  int clusters() const { return static_cast<int>(first_.size()) - 1; }

 private:
  struct Mesh {
    int site = 0, devices = 1;
    std::array<GroupPlacement, 2> groups;
    double memory_price = 0;  ///< of the parameters that a device holds, in times of the stage; 0: none
    bool rebuilds = false;    ///< each cluster keeps its input only, and its forward runs again before its backward
    int free = 0;             ///< index of the same mesh without a price
    int keeping = 0;          ///< index of the same mesh with this price, which rebuilds nothing
  };
  struct Priced {
    MeshCost cost;
    GraphSharding sharding;
  };

  int kind_of(int begin, int end);
  const Priced& priced(int begin, int end, int mesh);
  ShardingQuestion question_of(int begin, int end, int mesh);
  MeshCost cost_of(const GraphSharding& sharding, int begin, int end, int mesh) const;
  Priced kept(int begin, int end, int mesh);
  Priced rebuilt(int begin, int end, int mesh);
  void add_meshes(int site, const std::array<GroupPlacement, 2>& groups, int devices);
  double input_bytes(Pricing& pricing, const GraphSharding& sharding, int begin, int cluster) const;
  bool fits_always(const MeshCost& cost, int site) const;
  StageTransfer transfer(int cluster, int from, int to) const;
  MeshPipelineProblem problem();
  GraphPipeline planned(const MeshPipelineProblem& asked, MeshPipeline found);
  Priced proved(const PipelineStage& stage, double bytes, int in_flight);

  std::vector<PipelineSite> sites_;
  PipelineQuestion question_;
  std::vector<int> first_;  ///< [cluster] its first node, and the end
  std::vector<bool> kept_;  ///< kept_outputs()
  std::vector<Mesh> meshes_;
  std::size_t most_entries_ = std::size_t{1} << 18;       ///< of a table, as long as all stages were exact
  std::map<std::pair<int, int>, int> kinds_of_segments_;  ///< [begin, end]
  std::map<std::vector<int>, int> kinds_;                 ///< [kinds of nodes, and how they read each other]
  std::map<std::pair<int, int>, Priced> priced_;          ///< [mesh, kind of the segment]
};

/// Returns the step of the pipeline under 1F1B, or under eager 1F1B on several sites, as the simulator plays it: each
/// stage is one rank of its mesh's speed.
Seconds simulated_step(const std::vector<PipelineSite>& sites, const GraphPipeline& pipeline,
                       const PipelineQuestion& question);

}}  // namespace plumb::planner
