#pragma once
// Turns a machine's measurement into a cluster that the planner can price.
//
//   ClusterSpec cluster = cluster_from_measurement(measurement);
//
// The samples go into the cluster, and override the roofline at their shapes. The roofline beneath them has:
//   peak_tflops                the fastest GEMM's FLOPs a second
//   gemm_efficiency            the median of the GEMMs' rates over that peak
//   attention_efficiency       the median of attention's rates over that peak
//   memory_bandwidth_gb_per_s  the fastest memory-bound kernel's bytes a second; memory_efficiency: the median's share
//   kernel_fixed_us            the time of a kernel with next to nothing to do, where it was measured
//   node                       latency and bandwidth of messages: least squares of t = latency + bytes / bandwidth on
//                              relative errors, latency not below 0
// One rank a core (or part of a GPU) shares the memory evenly; there is one node and no network. Nothing is fitted on a
// single row.

#include "planner/spec/cluster_spec.h"
#include "traces/measurement.h"

namespace plumb { inline namespace planner {

/// The setting of a measurement beyond its samples.
struct MeasuredIn {
  Precision precision = Precision::kFp32;
  Seconds kernel_fixed{0};  ///< time of a kernel with next to nothing to do; 0: not measured
};

/// Returns the cluster of a measurement. Throws SpecError if there is no GEMM sample or no memory-bound one, if several
/// cores have fewer than two sizes of messages, or if a sample's kernel is unknown, its shape has the wrong length or
/// its time is not above 0.
ClusterSpec cluster_from_measurement(const Measurement& measurement, const MeasuredIn& in = {});

/// Returns the link that messages between two ranks have shown: the node's, above. Throws SpecError if there are fewer
/// than two sizes of messages, or larger ones do not take longer.
LinkSpec message_link(const Measurement& measurement);

}}  // namespace plumb::planner
