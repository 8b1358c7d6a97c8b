#pragma once
// A chain of layers cut into stages on meshes of devices, under Alpa's objective (Zheng et al. 2022, equation 2):
//
//   T = sum of (t_i + d_i) + (m - 1) max (t_i, o_i)
//
// for m micro-batches, where t_i is the time of a micro-batch on stage i, d_i the delay of the transfers before it, and
// o_i how long they occupy their link, one way (Alpa takes both for 0). Every value that the slowest stage may have is
// tried, from the fastest on, until no slower one can help; under each a dynamic programme over (layers, devices of each
// site, stages behind) makes the sum least. Sites are groups of equal devices; those of different kinds, or in different
// places, are different sites, and a stage lies within one.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace plumb { inline namespace planner {

/// The cost of some consecutive layers on a mesh.
struct MeshCost {
  double seconds = std::numeric_limits<double>::infinity();  ///< of a micro-batch, forward and backward
  double state_bytes = 0;                                    ///< of a device, all the time
  double in_flight_bytes = 0;                                ///< of a device, for each micro-batch in flight
};

/// The activations and gradients of a micro-batch between two stages.
struct StageTransfer {
  double delay = 0;     ///< of both together
  double occupied = 0;  ///< of the link, the longer of the two ways
};

/// A mesh that a stage may have.
struct SiteMesh {
  int site = 0;
  int devices = 1;

  friend bool operator==(const SiteMesh&, const SiteMesh&) = default;
};

struct MeshPipelineProblem {
  int layers = 0;
  std::int64_t microbatches = 1;
  std::vector<int> devices;   ///< [site]
  std::vector<double> bytes;  ///< [site] memory of a device
  std::vector<SiteMesh> meshes;
  std::function<MeshCost(int begin, int end, int mesh)> stage;
  /// Between two sites before a layer; null: transfers take no time.
  std::function<StageTransfer(int layer, int from, int to)> transfer;
  bool uses_all_devices = false;  ///< as Alpa does
  /// Under eager 1F1B (Zhuang et al. 2023), which hides slow transfers, a stage with s - 1 stages behind it keeps 2 s - 1
  /// micro-batches in flight; under 1F1B it keeps s.
  bool eager = false;

  int in_flight(int stages) const { return eager ? 2 * stages - 1 : stages; }
};

struct PipelineStage {
  int begin = 0, end = 0;  ///< layers
  int mesh = 0;
  MeshCost cost;
};

struct MeshPipeline {
  std::vector<PipelineStage> stages;
  double seconds = 0;  ///< the objective
  double slowest = 0;  ///< stage or link
};

/// Returns the pipeline of given stages, with its times.
MeshPipeline pipeline_of(const MeshPipelineProblem& problem, std::vector<PipelineStage> stages);

/// Returns the fastest pipeline, exactly; nothing if none fits.
std::optional<MeshPipeline> fastest_pipeline(const MeshPipelineProblem& problem);

}}  // namespace plumb::planner
