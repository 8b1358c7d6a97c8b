#pragma once
// Measured products of a published table become kernel samples, which correct a cluster's model
// (price/kernel/shape_correction.h).

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "traces/measurement.h"

namespace plumb { inline namespace planner {

/// Returns samples of the rows with "op" matmul (m, n, k, b, layout TN forward, NN input gradient, NT weight gradient)
/// or group_matmul ("key" with ng, M, N, K and stage; M rows an expert, N outputs, K inputs of the forward), a rate
/// `measured.tflops`, and a hardware in which the regular expression is found. Where a shape was measured with fp32 and
/// 16-bit results, the fp32 one counts, since accumulating weight gradients have such results. Other rows are left out.
std::vector<KernelSample> kernel_samples_of(const std::vector<nlohmann::json>& rows, const std::string& hardware);

}}  // namespace plumb::planner
