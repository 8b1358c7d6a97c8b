#pragma once
// The layer program: everything that a layer does for one micro-batch on one rank, as a list of steps in the order in
// which they run. A step is a kernel or an exchange with the ranks of a group, and it names the tensors that it reads
// and writes. kernels/layer/emit/ has a file for each kind of layer, which emits its program. All else that is known
// of a layer is computed from the list: its parameters, kernels and exchanges (below), what it keeps and its
// temporaries (saved_tensors.h), the places in a device's memory (places.h), and whether the list is sound
// (check_program.h).
//
//   const LayerProgram program = layer_program(block, {.microbatch = 1, .sequence = 4096}, Machine::kHost);
//   for (const Step& step : steps_of(program, Pass::kForward))
//     "norm1"             kernel kNormForward of {4096, 8192, 0}    "input" -> "norm1 output", "norm1 deviations"
//     "qkv"               kernel kGemm of {4096, 10240, 8192, 1, 0} "norm1 output", parameter qkv.weight -> "qkv"
//     ...

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/layer/kernel_call.h"
#include "kernels/layer/kinds.h"
#include "kernels/layer/parameter_tensor.h"
#include "kernels/layer/program/positions.h"

namespace plumb { inline namespace kernels {

/// The machine for which a program is made. The machines differ in what they do in place, and in experts: a host knows
/// how many rows its router has made before the experts begin, and a device makes room for the most.
enum class Machine : std::uint8_t { kHost, kDevice };

enum class Pass : std::uint8_t { kForward, kInputGrad, kWeightGrad, kOptimizer };

/// Returns "forward", "input gradient", "weight gradient" or "optimizer".
const char* pass_name(Pass pass);

/// The number format in which an element is stored.
enum class StoredType : std::uint8_t {
  kElement,  ///< the computing precision: bf16, fp16 or fp32
  kSingle,   ///< fp32 whatever the computing precision: statistics, scores of routers, sums over ranks
  kInteger,  ///< 32 bits: tokens, places, counts, masks of 32 elements
};

/// The place from which a tensor's first value comes.
enum class Origin : std::uint8_t {
  kStep,            ///< a step writes it
  kInput,           ///< the layer before
  kOutputGradient,  ///< the layer behind
  kLoaded,          ///< data of the micro-batch that the layer loads into memory of its own
  kHeld,            ///< data or state that lies in memory of others
};

/// The rows of a mixture of experts that a host counts when its router has run; a device makes room for the most.
enum class CountedRows : std::uint8_t {
  kNone,
  kOfPicks,    ///< the rank's own picks that were not dropped
  kOfExperts,  ///< those that the rank's experts have got
};

/// An activation, a gradient or a temporary.
struct LayerTensor {
  std::string name;  ///< e.g. "norm1 output"
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  StoredType type = StoredType::kElement;
  Origin origin = Origin::kStep;
  int place = -1;  ///< tensor whose storage it takes; -1: it has storage of its own
  CountedRows counted = CountedRows::kNone;

  std::int64_t elements() const { return rows * columns; }
  std::int64_t bytes(std::int64_t element_bytes) const {
    constexpr std::int64_t kWord = 4;
    return elements() * (type == StoredType::kElement ? element_bytes : kWord);
  }
};

enum class ExchangeKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kRing,     ///< blocks pass from neighbour to neighbour until each rank has seen all of them
  kRingSum,  ///< sums pass along in the same way, and each rank gets the sum of its block
};
inline constexpr int kExchangeKindCount = 6;

enum class ExchangeGroup : std::uint8_t { kTensor, kContext, kExpert };

/// A collective of one rank's group.
struct Exchange {
  ExchangeKind kind = ExchangeKind::kAllReduce;
  ExchangeGroup group = ExchangeGroup::kTensor;
  std::int64_t elements = 0;  ///< of the whole buffer of one rank
  StoredType type = StoredType::kElement;

  friend bool operator==(const Exchange&, const Exchange&) = default;
};

/// The part of a layer to which a step belongs. The temporaries of parts that follow each other may lie in the same
/// memory (places.h).
enum class Section : std::uint8_t { kLayer, kAttention, kFeedForward, kExpertRows, kExpertTokens };
inline constexpr int kSectionCount = 5;

/// Returns the section that contains this one; the layer contains itself.
constexpr Section containing(Section section) {
  if (section == Section::kExpertRows || section == Section::kExpertTokens) return Section::kFeedForward;
  return Section::kLayer;
}

/// One kernel or exchange. A tensor that is both read and written is changed in place.
struct LayerStep {
  std::string name;  ///< e.g. "qkv"
  Pass pass = Pass::kForward;
  Section section = Section::kLayer;
  std::variant<KernelCall, Exchange> does;
  Positions reads;       ///< tensors; a product's rows come first
  Positions writes;      ///< tensors; a product's result comes first
  Positions parameters;  ///< parameters that it reads
  Positions gradients;   ///< parameters to whose gradients it adds
  Positions holds;       ///< tensors that executors let go of behind it, though no step reads them any more
  /// First of the columns that a copy takes from rows, or brings to rows, that have more columns than the others.
  std::int64_t first_column = 0;
  int ranks = 1;                 ///< ranks among which the call is divided (attention of a context group)
  bool cheap = false;            ///< norm or activation function, which selective recomputation makes again
  bool first_rank_only = false;  ///< only the first rank of the tensor group does it
  BlockDropout mask{};           ///< the mask that a dropout draws
  /// writes[0] takes another tensor's storage when the step is done. While it runs, it needs storage beside it.
  bool beside = false;

  /// Return the kernel's call, or the exchange; null if the step is the other.
  const KernelCall* call() const { return std::get_if<KernelCall>(&does); }
  const Exchange* exchange() const { return std::get_if<Exchange>(&does); }
  bool is(KernelKind kind) const { return call() != nullptr && call()->kind == kind; }
};

struct LayerProgram {
  std::vector<ParameterTensor> parameters;
  std::vector<LayerTensor> tensors;
  std::vector<LayerStep> steps;  ///< forward, then input gradient, then weight gradient
  // Tensors; -1: none.
  int input = -1;            ///< what the layer before hands over
  int output = -1;           ///< what the layer behind gets
  int output_gradient = -1;  ///< what the layer behind hands over
  int input_gradient = -1;   ///< what the layer before gets
};

/// Returns the steps of a pass in their order.
std::span<const LayerStep> steps_of(const LayerProgram& program, Pass pass);

/// Returns the kernel calls of a pass in their order.
std::vector<KernelCall> kernels_of(const LayerProgram& program, Pass pass);

/// Returns the exchanges of a pass in their order.
std::vector<Exchange> exchanges_of(const LayerProgram& program, Pass pass);

/// True if an attention step of the same pass reads the step's first result.
bool feeds_attention(const LayerProgram& program, const LayerStep& step);

/// Returns "step 'qkv' of the forward".
std::string step_text(const LayerStep& step);

}}  // namespace plumb::kernels
