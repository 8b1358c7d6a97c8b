#include "planner/evaluate/played_memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/layer.h"
#include "planner/evaluate/stage_passes.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/rank_layout.h"

namespace plumb { inline namespace planner {
namespace {

using Block = CachingAllocator::Block;
constexpr Block kNoBlock = -1;

/// A storage of a layer, by the positions of the program's steps.
struct StorageLife {
  std::int64_t bytes = 0;
  int first = 0;
  int last = 0;
  bool kept = false;       ///< from the forward for the backward
  bool forgotten = false;  ///< kept, and recomputation drops and makes it again
};

struct LayerLife {
  std::vector<StorageLife> storages;
  Recompute recompute = Recompute::kNone;
  int input_grad = 0;  ///< position of the first step of each pass
  int weight_grad = 0;
  int end = 0;
};

int first_of(const LayerProgram& program, Pass pass) {
  const auto first = std::ranges::lower_bound(program.steps, pass, {}, &LayerStep::pass);
  return static_cast<int>(first - program.steps.begin());
}

/// Returns the life of a layer's storages. The layer behind owns the gradient that it hands over, and the input that
/// this layer hands to it, unless this is the last of its stage.
LayerLife life_of(const LayerProgram& program, Recompute recompute, bool last_of_stage, std::int64_t element_bytes) {
  LayerLife life{.recompute = recompute,
                 .input_grad = first_of(program, Pass::kInputGrad),
                 .weight_grad = first_of(program, Pass::kWeightGrad),
                 .end = first_of(program, Pass::kOptimizer)};
  const std::vector<bool> forgotten = forgotten_tensors(program, recompute);
  for (const Storage& storage : storages(program)) {
    const int handed = handed_tensor(program, storage);
    const bool of_others = storage.tensors.has(program.output) || (handed >= 0 && handed == program.output_gradient);
    if (of_others && !last_of_stage) continue;
    const bool kept = storage.is_kept();
    life.storages.push_back({.bytes = bytes_of(program, storage, element_bytes),
                             .first = storage.first_step,
                             .last = storage.last_step,
                             .kept = kept,
                             .forgotten = kept && storage.kept >= 0 && forgotten[storage.kept]});
  }
  std::erase_if(life.storages, [](const StorageLife& storage) { return storage.bytes == 0; });
  return life;
}

/// The blocks of one layer's storages for one micro-batch.
class LayerBlocks {
 public:
  LayerBlocks(CachingAllocator& allocator, const LayerLife& life)
      : allocator_(&allocator), life_(&life), blocks_(life.storages.size(), kNoBlock) {}

  void forward() {
    run(0, life_->input_grad);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      if (life_->storages[i].forgotten) release(i);
  }

  /// Makes again what recomputation has dropped. Full recomputation runs the whole forward.
  void rebuild() {
    if (life_->recompute == Recompute::kNone) return;
    if (life_->recompute == Recompute::kFull) {
      run(0, life_->input_grad);
      return;
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      if (life_->storages[i].forgotten) acquire(i);
  }

  void input_grad() { run(life_->input_grad, life_->weight_grad); }

  void weight_grad() {
    run(life_->weight_grad, life_->end);
    for (std::size_t i = 0; i < blocks_.size(); ++i) release(i);
  }

 private:
  void run(int first, int end) {
    for (int step = first; step < end; ++step) {
      for (std::size_t i = 0; i < blocks_.size(); ++i)
        if (life_->storages[i].first == step) acquire(i);
      for (std::size_t i = 0; i < blocks_.size(); ++i)
        if (life_->storages[i].last == step) release(i);
    }
  }

  void acquire(std::size_t i) {
    if (blocks_[i] == kNoBlock) blocks_[i] = allocator_->allocate(life_->storages[i].bytes);
  }

  void release(std::size_t i) {
    if (blocks_[i] != kNoBlock) allocator_->free(std::exchange(blocks_[i], kNoBlock));
  }

  CachingAllocator* allocator_;
  const LayerLife* life_;
  std::vector<Block> blocks_;
};

/// A stage's layers, and what its rank always holds of it.
struct StageLife {
  std::vector<LayerLife> layers;
  std::vector<std::int64_t> parameters;  ///< elements of each tensor
};

class RankPlayer {
 public:
  RankPlayer(const Evaluation& evaluation, const std::vector<StageLife>& stages, CachingAllocator::Segments segments)
      : evaluation_(evaluation), stages_(stages), allocator_(segments) {}

  PlayedMemory play(std::size_t rank) {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage)
      if (evaluation_.lowered.stages[stage].rank == static_cast<int>(rank)) stand(stage);
    constexpr int kSteps = 2;  // the first makes the optimizer's state
    for (int step = 0; step < kSteps; ++step)
      for (const Action& action : evaluation_.lowered.ranks[rank]) act(action);
    return {.allocated_bytes = allocator_.peak_allocated_bytes(), .reserved_bytes = allocator_.reserved_bytes()};
  }

 private:
  using Key = std::pair<int, int>;  ///< stage, micro-batch

  const StageMemory& memory(std::size_t stage) const { return evaluation_.costs.stages[stage].memory; }

  /// Allocates `bytes` in the proportions of the stage's parameters.
  void by_parameter(std::size_t stage, std::int64_t bytes) {
    std::int64_t all = 0;
    for (const std::int64_t elements : stages_[stage].parameters) all += elements;
    for (const std::int64_t elements : stages_[stage].parameters) {
      const auto share = static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(elements) /
                                                   static_cast<double>(all));
      if (share > 0) allocator_.allocate(share);
    }
  }

  void stand(std::size_t stage) {
    by_parameter(stage, memory(stage).parameter_bytes);
    if (memory(stage).gradient_bytes > 0) allocator_.allocate(memory(stage).gradient_bytes);
  }

  std::vector<LayerBlocks>& blocks(const Action& action) {
    std::vector<LayerBlocks>& blocks = blocks_[{action.stage, action.microbatch}];
    if (blocks.empty())
      for (const LayerLife& layer : stages_[action.stage].layers) blocks.emplace_back(allocator_, layer);
    return blocks;
  }

  void act(const Action& action) {
    std::vector<LayerBlocks>& layers = blocks(action);
    switch (action.op) {
      case Op::kForward:
        for (LayerBlocks& layer : layers) layer.forward();
        break;
      case Op::kRecompute:
        for (LayerBlocks& layer : layers) layer.rebuild();
        break;
      case Op::kInputGrad:
      case Op::kBackward:
        for (std::size_t i = layers.size(); i-- > 0;) {
          layers[i].rebuild();
          layers[i].input_grad();
          if (action.op == Op::kBackward) layers[i].weight_grad();
        }
        break;
      case Op::kWeightGrad:
        for (std::size_t i = layers.size(); i-- > 0;) layers[i].weight_grad();
        break;
      case Op::kOptimizerStep:
        if (!std::exchange(has_state_[action.stage], true)) {
          constexpr int kTensors = 3;  // two moments and the master weights
          for (int tensor = 0; tensor < kTensors; ++tensor)
            by_parameter(action.stage, memory(action.stage).optimizer_bytes / kTensors);
        }
        break;
      default:
        break;
    }
  }

  const Evaluation& evaluation_;
  const std::vector<StageLife>& stages_;
  CachingAllocator allocator_;
  std::map<Key, std::vector<LayerBlocks>> blocks_;
  std::map<int, bool> has_state_;
};

}  // namespace

double PlayedMemory::reserved_share() const {
  return allocated_bytes > 0 ? static_cast<double>(reserved_bytes) / static_cast<double>(allocated_bytes) : 1;
}

std::vector<PlayedMemory> played_memory(const TrainingSpec& training, const Evaluation& evaluation,
                                        CachingAllocator::Segments segments) {
  const Schedule& schedule = evaluation.lowered;
  const std::int64_t element_bytes = bytes_per_element(training.precision);
  std::vector<StageLife> stages;
  for (const StagePlace& place : schedule.stages) {
    const LayerWork work = work_of(training, layout_of_rank(evaluation.layout, place.rank));
    const std::vector<Layer>& layers = evaluation.layers[static_cast<std::size_t>(place.model_part)];
    const std::vector<Recompute> recomputed = recomputation_by_layer(evaluation.layout, layers);
    StageLife stage;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const LayerProgram program = layer_program(layers[i], work, Machine::kHost);
      stage.layers.push_back(life_of(program, recomputed[i], i + 1 == layers.size(), element_bytes));
      for (const ParameterTensor& tensor : program.parameters) stage.parameters.push_back(element_count(tensor));
    }
    if (layers.empty()) return {};
    stages.push_back(std::move(stage));
  }
  std::vector<PlayedMemory> played;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    played.push_back(RankPlayer(evaluation, stages, segments).play(rank));
  return played;
}

}}  // namespace plumb::planner
