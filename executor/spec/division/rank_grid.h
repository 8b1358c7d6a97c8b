#pragma once
// The ranks of a run. They are the ranks of a process grid, or pipeline ranks that are meshes of different shape: one
// rank of the pipeline may have two tensor ranks and the next one two replicas (Zheng et al. 2022, Alpa).
//
//   RankGrid ranks({.pipeline = 2}, {{.tensor = 2}, {.data = 2}});   // four ranks, one pipeline
//   world_rank_of(ranks, {.data = 1, .pipeline = 1})   -> 3
//
// The grid's `data` counts pipelines, each of which has the schedule's micro-batches. A mesh with more data ranks than
// that divides the sequences of every micro-batch among data / grid.data of them.

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

  /// If no meshes are given, all are the grid's.
  // NOLINTNEXTLINE(google-explicit-constructor): a grid is one whose meshes are all alike
  RankGrid(const ProcessGrid& grid = {}, std::vector<StageMesh> meshes = {});
};

/// Returns the number of ranks. They are numbered like ProcessGrid's: tensor fastest, then context, data, pipeline.
int world_size(const RankGrid& ranks);

/// Convert between a world rank and its coordinates. Both throw SpecError if the rank or a coordinate lies outside its
/// mesh.
GridCoordinates coordinates_of(const RankGrid& ranks, int world_rank);
int world_rank_of(const RankGrid& ranks, const GridCoordinates& coordinates);

/// Returns the ranks of a mesh that differ from `world_rank` only in their tensor, or context, or data coordinate,
/// ascending. An expert group exists over meshes of one shape only. Throws SpecError if the rank lies outside. Asserts
/// that `group` is one of these four.
std::vector<int> group_ranks(const RankGrid& ranks, Group group, int world_rank);

const StageMesh& mesh_of(const RankGrid& ranks, int pipeline_rank);

/// Returns how many data ranks of a pipeline rank divide each micro-batch among them.
int parts_of_microbatch(const RankGrid& ranks, int pipeline_rank);

}}  // namespace plumb::executor
