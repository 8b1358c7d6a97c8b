#pragma once
// The figures of a cluster that decide how long a step lasts, each with a way to change it.
//
//   for (const ClusterFigure& figure : cluster_figures())
//     if (figure.value(cluster) > 0) evaluate(on(with_figure(cluster, figure, 1.1)));

#include <functional>
#include <vector>

#include "planner/spec/cluster_spec.h"

namespace plumb { inline namespace planner {

struct ClusterFigure {
  const char* name;                                 ///< its key in a cluster's file
  std::function<double(const ClusterSpec&)> value;  ///< 0: the cluster has none
  std::function<void(ClusterSpec&, double)> scale;  ///< multiplies it by a factor
  bool of_host = false;                             ///< it counts only where a layout offloads
};

std::vector<ClusterFigure> cluster_figures();

/// Returns those that the cluster has, the host's only where a layout offloads.
std::vector<ClusterFigure> figures_of(const ClusterSpec& cluster, bool offloads);

/// Returns the cluster with the figure times the factor.
ClusterSpec with_figure(ClusterSpec cluster, const ClusterFigure& figure, double factor);

}}  // namespace plumb::planner
