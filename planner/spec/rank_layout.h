#pragma once
// The layout of one pipeline rank, where the ranks are meshes of different shape (spec/rank_mesh.h).
//
//   layout_of_rank(layout, 1).tensor    // the tensor ranks of pipeline rank 1
//
// The `data` of a layout with meshes counts pipelines, and its `microbatch` the sequences that a pipeline takes at once.
// A mesh with more data ranks divides them among data / layout.data of them.

#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

/// Returns the data and tensor ranks of a pipeline rank, also from the layout of another rank.
RankMesh mesh_of_rank(const Layout& layout, int rank);

/// Returns the layout whose degrees and micro-batch are those of that rank. It keeps the meshes, which say where the
/// ranks lie. A layout without meshes is that of all its ranks.
Layout layout_of_rank(const Layout& layout, int rank);

/// Returns the devices of a pipeline rank, and those of the ranks before it.
int devices_of_rank(const Layout& layout, int rank);
int devices_before(const Layout& layout, int rank);

/// Returns the devices of all ranks.
std::int64_t devices_of(const Layout& layout);

/// True if some rank has replicas.
bool has_replicas(const Layout& layout);

/// Returns the layout without meshes if they are all alike and divide the micro-batch; otherwise the layout itself.
Layout with_equal_meshes_plain(Layout layout);

}}  // namespace plumb::planner
