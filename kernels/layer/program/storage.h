#pragma once
// The storage of a program's tensors, and the time for which each is in use. Tensors that take each other's place share
// one storage.

#include <cstdint>
#include <vector>

#include "kernels/layer/program/program.h"

namespace plumb { inline namespace kernels {

/// One storage, from the step in which it is first used to the last.
struct Storage {
  Positions tensors;  ///< in the order in which they have it
  int kept = -1;      ///< tensor that has it when the forward is over, or at first
  Pass first_pass = Pass::kForward;
  Pass last_pass = Pass::kForward;
  int first_step = 0;  ///< position in LayerProgram::steps; that of the pass's first step for what others hand over
  int last_step = 0;   ///< that of the pass's last step for what is handed over

  /// True if the backward needs what the forward has left there.
  bool is_kept() const { return first_pass == Pass::kForward && last_pass > Pass::kForward; }
};

/// Returns the storages in the order of their first tensors, without those in memory of others, and those that no step
/// uses.
std::vector<Storage> storages(const LayerProgram& program);

/// Returns the tensor of a storage that the layer has not made itself; -1: none.
int handed_tensor(const LayerProgram& program, const Storage& storage);

/// Returns the bytes of the largest of its tensors.
std::int64_t bytes_of(const LayerProgram& program, const Storage& storage, std::int64_t element_bytes);

/// Returns for each tensor the one with which its storage begins.
std::vector<int> first_in_storage(const LayerProgram& program);

/// Returns for each tensor the position of the first step that writes it; -1 if no step does.
std::vector<int> writers(const LayerProgram& program);

}}  // namespace plumb::kernels
