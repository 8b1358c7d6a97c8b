#pragma once
// A layer's description: its kind and sizes, and from these the program of what it does (program/program.h), with its
// parameters, kernels, exchanges and memory. It has no numerics. The planner prices the programs and the executor runs
// them, so the layers that are priced are the layers that run.
//
//   kinds.h         the kinds of layer by their sizes
//   layer_work.h    a micro-batch, and the ranks that share the layer
//   emit/           a file for each kind, which emits its program
//   program/        what is computed from a program
//
// Symbols (used on every tensor of kernels/): b micro-batch, s sequence, T = b*s tokens, R a rank's own rows between
// products, h hidden, a heads, k kv heads, d head size, f feed-forward size, V vocabulary, t tensor-parallel degree, c
// context-parallel degree. Where samples are images or vectors, s is 1.

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/layer/expert_rows.h"
#include "kernels/layer/kernel_call.h"
#include "kernels/layer/kinds.h"
#include "kernels/layer/layer_work.h"
#include "kernels/layer/parameter_tensor.h"
#include "kernels/layer/program/check_program.h"
#include "kernels/layer/program/places.h"
#include "kernels/layer/program/program.h"
#include "kernels/layer/program/recomputed.h"
#include "kernels/layer/program/saved_tensors.h"
#include "kernels/layer/program/storage.h"
#include "kernels/layer/rank_share.h"
#include "kernels/layer/recompute.h"

namespace plumb { inline namespace kernels {

/// Returns the program of a layer on one rank. Where ranks do not divide the number of heads, channels, rows or experts,
/// it is rounded up (the fullest rank's share); a rank has at least one kv head. Convolutions, linear layers and MLPs
/// are whole on every rank. A layer whose input needs no gradient has no steps in the input gradient (the embedding);
/// the head's cross-entropy belongs to the forward. A whole backward is the input gradient followed by the weight
/// gradient.
LayerProgram layer_program(const Layer& layer, const LayerWork& work, Machine machine = Machine::kHost);

/// Returns the program of a device whose kernels include the operations beside them (program/fused.h).
/// `rebuilds_cheap`: recomputation is selective, so that activations are kernels of their own.
LayerProgram fused_program(const Layer& layer, const LayerWork& work, bool rebuilds_cheap);

/// Returns the parameters of a layer on one of `tensor_parallel` ranks, in the order in which every part of Plumb keeps
/// them. A tied head lists its table too. A filter is a row, [kernel, kernel, channels / groups].
std::vector<ParameterTensor> layer_parameters(const Layer& layer, int tensor_parallel = 1, ExpertDivision experts = {});

/// Returns the elements of all trained parameters of a layer on one of `tensor_parallel` ranks (replicated ones in
/// full).
std::int64_t parameter_count(const Layer& layer, int tensor_parallel = 1, ExpertDivision experts = {});

/// Returns the elements of the parameters of routed experts, which parameter_count() includes.
std::int64_t expert_parameter_count(const Layer& layer, ExpertDivision experts = {});

/// Returns the name of the first kernel of the layer that is priced and that no machine runs; empty: there is none.
std::string_view kernel_without_code(const Layer& layer);

/// True if devices have all kinds of kernels that the layer's program calls, and optimizers train all its parameters.
bool is_on_devices(const Layer& layer);

/// Returns the kernels of one pass of layer_program() on a host, in the order in which they run, or one update for each
/// parameter.
std::vector<KernelCall> layer_kernels(const Layer& layer, const LayerWork& work, Pass pass);

/// Returns the elements, on one rank, of the input that the layer takes from the layer before; 0 for a layer that
/// begins a model.
std::int64_t input_elements(const Layer& layer, const LayerWork& work);

/// Returns the elements, on one rank, of the output that the layer hands to the next: T*h for a block (T*h/t with
/// sequence parallelism); 0 for a layer that ends a model.
std::int64_t output_elements(const Layer& layer, const LayerWork& work);

}}  // namespace plumb::kernels
