#pragma once
// The process grid says which (dp, pp, cp, tp) a world rank is, and which ranks form a group with it.
//
// The order, fastest first, is tp, cp, dp, pp: Megatron-LM's default, where tensor-parallel ranks are neighbours and a
// pipeline stage is a contiguous block of tp * cp * dp ranks. Expert parallelism divides the same ranks of a stage
// otherwise, first over the ranks that share an expert (etp), then over those that have different experts (ep). It adds
// groups, not ranks.
//
// World ranks are numbers of places in that order. Which device a world rank is on is another matter: with `together`
// those of a replica's stages lie side by side (Megatron-Core's --use-tp-pp-dp-mapping), and otherwise those of a stage.
//
//   ProcessGrid grid{.tensor = 2, .data = 4, .pipeline = 2};
//   coordinates_of(grid, 9)            -> {.tensor = 1, .context = 0, .data = 0, .pipeline = 1}
//   group_ranks(grid, Group::kData, 9) -> {9, 11, 13, 15}

#include <vector>

#include "schedules/cost_table.h"

namespace plumb { inline namespace schedules {

struct ProcessGrid {
  int tensor = 1;
  int context = 1;
  int expert = 1;         ///< ranks that have different experts; times those of one expert, it divides a stage's ranks
  int expert_tensor = 0;  ///< ranks that share an expert, a divisor of `tensor`; 0: all tensor ranks
  int data = 1;
  int pipeline = 1;
  /// So many neighbours of a stage lie on neighbouring devices, and behind them those of the next stage; 0: all of a stage.
  int together = 0;

  friend bool operator==(const ProcessGrid&, const ProcessGrid&) = default;
};

struct GridCoordinates {
  int tensor = 0;
  int context = 0;
  int data = 0;
  int pipeline = 0;

  friend bool operator==(const GridCoordinates&, const GridCoordinates&) = default;
};

/// Returns the number of ranks that share an expert.
int expert_tensor_ranks(const ProcessGrid& grid);

/// Returns tensor * context * data * pipeline.
int world_size(const ProcessGrid& grid);

/// Both throw SpecError if the rank or a coordinate lies outside the grid.
GridCoordinates coordinates_of(const ProcessGrid& grid, int world_rank);
int world_rank_of(const ProcessGrid& grid, const GridCoordinates& coordinates);

/// Both return the inverse of each other, and throw SpecError if the number lies outside the grid. `together` must divide
/// the ranks of a stage.
int device_of(const ProcessGrid& grid, int world_rank);
int world_rank_on(const ProcessGrid& grid, int device);

/// Returns the devices of some ranks, ascending.
std::vector<int> devices_of(const ProcessGrid& grid, std::vector<int> world_ranks);

/// Returns which of the `grid.expert` shares of the experts a rank has.
int expert_rank_of(const ProcessGrid& grid, const GridCoordinates& coordinates);

/// Returns the ranks that differ from `world_rank` in that dimension alone, ascending, itself included. A group of
/// kExpert has the ranks at the same place of `expert` consecutive blocks of ranks that share an expert. Throws SpecError if the rank lies
/// outside the grid.
std::vector<int> group_ranks(const ProcessGrid& grid, Group group, int world_rank);

/// Returns true if the rank is the first of its group, without listing the others.
bool leads_group(const ProcessGrid& grid, Group group, int world_rank);

}}  // namespace plumb::schedules
