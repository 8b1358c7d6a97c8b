#pragma once
// A parameter of a layer.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace kernels {

/// A piece of the dimension that tensor parallelism divides. Each piece is divided by itself, and pieces lie one behind
/// the other.
struct DividedPiece {
  std::string_view unit;       ///< what no rank has a part of, e.g. "heads"
  std::int64_t units = 0;      ///< in the whole piece
  std::int64_t unit_size = 1;  ///< rows or columns of a unit
  /// More ranks than units may share them: neighbouring ranks then have the same unit, and its gradient is the sum of
  /// theirs.
  bool shared = false;

  std::int64_t size() const { return units * unit_size; }
  friend bool operator==(const DividedPiece&, const DividedPiece&) = default;
};

/// Returns how many neighbouring ranks have the same unit of a shared piece; 1 where each has units of its own.
constexpr int sharers_of(std::int64_t units, int ranks) {
  return units < ranks && ranks % units == 0 ? ranks / static_cast<int>(units) : 1;
}

/// The values with which a parameter begins.
enum class InitialValues : std::uint8_t {
  kZeros,
  kOnes,
  kNormal,    ///< a normal distribution whose deviation follows from the matrix's columns
  kDecayLog,  ///< log(u), u uniform in [1, 16] (the decays of Mamba-2: Dao & Gu 2024)
  kStepBias,  ///< softplus^-1(u), log(u) uniform in [log 0.001, log 0.1] (its step sizes: Gu & Dao 2023)
};

/// A parameter tensor, row-major.
struct ParameterTensor {
  std::string name;                 ///< e.g. "qkv.weight"
  std::vector<std::int64_t> shape;  ///< e.g. [h + 2kd, h]: [out, in] for matrices
  int split_dimension = -1;         ///< dimension that tensor parallelism divides; -1: replicated
  /// True if the tensor belongs to the routed experts, which expert parallelism divides: [experts, out, in].
  bool expert = false;
  /// The pieces of `split_dimension`; empty: a vocabulary, which is padded where ranks do not divide it.
  std::vector<DividedPiece> pieces;
  InitialValues initial = InitialValues::kNormal;
  /// Above 0 for the bias of picks, which the optimizer does not train. Its gradient counts E picks for each pick of an
  /// expert, less all picks, so that the sum over ranks and micro-batches tells which experts have more than the mean.
  /// A step moves it by this much against the sign of the sum (Wang et al. 2024, 2408.15664).
  double balance_rate = 0;

  /// True for gains, biases, sinks and decays, which have no weight decay.
  bool is_vector() const { return shape.size() == 1 || name.ends_with(".bias"); }

  friend bool operator==(const ParameterTensor&, const ParameterTensor&) = default;
};

/// Returns the elements of one tensor.
inline std::int64_t element_count(const ParameterTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

/// Returns the first element of each parameter in the memory of its part: routed experts lie apart from all others.
inline std::vector<std::int64_t> first_elements(const std::vector<ParameterTensor>& parameters) {
  std::vector<std::int64_t> first;
  std::int64_t of_layer = 0, of_experts = 0;
  for (const ParameterTensor& parameter : parameters) {
    std::int64_t& elements = parameter.expert ? of_experts : of_layer;
    first.push_back(elements);
    elements += element_count(parameter);
  }
  return first;
}

}}  // namespace plumb::kernels
