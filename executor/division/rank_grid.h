#pragma once
// The ranks of a run: those of a process grid, or pipeline ranks that are meshes of different shape, where one rank of
// the pipeline has two tensor ranks and the next one two replicas (Zheng et al. 2022, Alpa).
//
//   RankGrid ranks({.pipeline = 2}, {{.tensor = 2}, {.data = 2}});   // four ranks, one pipeline
//   world_rank_of(ranks, {.data = 1, .pipeline = 1})   -> 3
//
// The grid's `data` counts pipelines: each has the schedule's micro-batches. A mesh with more data ranks than that
// divides the sequences of every micro-batch among data / grid.data of them.

#include <vector>

#include "schedules/process_grid.h"

namespace plumb { inline namespace executor {

/// Data and tensor ranks of one pipeline rank.
struct StageMesh {
  int data = 1;
  int tensor = 1;

  friend bool operator==(const StageMesh&, const StageMesh&) = default;
};

struct RankGrid {
  ProcessGrid grid;
  std::vector<StageMesh> meshes;  ///< [pipeline rank]

  /// Without meshes, or with none given, all are the grid's.
  // NOLINTNEXTLINE(google-explicit-constructor): a grid is one whose meshes are all alike
  RankGrid(const ProcessGrid& grid = {}, std::vector<StageMesh> meshes = {});
};

/// Numbered as ProcessGrid's: tensor fastest, then context, data, pipeline.
int world_size(const RankGrid& ranks);

/// Both throw SpecError if the rank or a coordinate lies outside its mesh.
GridCoordinates coordinates_of(const RankGrid& ranks, int world_rank);
int world_rank_of(const RankGrid& ranks, const GridCoordinates& coordinates);

/// The ranks of a mesh that differ from `world_rank` in their tensor, or context, or data coordinate alone, ascending.
/// Throws SpecError if the rank lies outside, asserts that it is one of these three, or of experts over meshes of one
/// shape.
std::vector<int> group_ranks(const RankGrid& ranks, Group group, int world_rank);

const StageMesh& mesh_of(const RankGrid& ranks, int pipeline_rank);

/// Data ranks of a pipeline rank that divide each micro-batch among them.
int parts_of_microbatch(const RankGrid& ranks, int pipeline_rank);

}}  // namespace plumb::executor
