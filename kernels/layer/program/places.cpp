#include "kernels/layer/program/places.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/layer/program/storage.h"

namespace plumb { inline namespace kernels {
namespace {

constexpr std::int64_t kWord = 4;

bool contains(Section outer, Section inner) {
  while (inner != outer && inner != Section::kLayer) inner = containing(inner);
  return inner == outer;
}

/// Returns the smallest section that contains both.
Section around(Section one, Section other) {
  while (!contains(one, other)) one = containing(one);
  return one;
}

/// The temporaries of a pass.
class Workspace {
 public:
  /// Returns the offset inside the section.
  std::int64_t add(Section section, std::int64_t bytes) {
    std::int64_t& own = own_[static_cast<std::size_t>(section)];
    return std::exchange(own, own + bytes);
  }
  std::int64_t begin_of(Section section) const {
    if (section == Section::kLayer) return 0;
    const Section outer = containing(section);
    return begin_of(outer) + own_[static_cast<std::size_t>(outer)];
  }
  std::int64_t size() const {
    std::int64_t size = 0;
    for (int i = 0; i < kSectionCount; ++i)
      size = std::max(size, begin_of(static_cast<Section>(i)) + own_[static_cast<std::size_t>(i)]);
    return size;
  }

 private:
  std::array<std::int64_t, kSectionCount> own_{};  // bytes of each section, without those in it
};

/// Returns the smallest section that contains all uses of a storage.
Section section_of(const LayerProgram& program, const Storage& storage) {
  bool is_first = true;
  Section section = Section::kLayer;
  const auto is_used = [&](const Positions& tensors) {
    return std::ranges::any_of(tensors, [&](int tensor) { return storage.tensors.has(tensor); });
  };
  for (int i = storage.first_step; i <= storage.last_step; ++i) {
    const LayerStep& step = program.steps[static_cast<std::size_t>(i)];
    if (!is_used(step.reads) && !is_used(step.writes)) continue;
    section = is_first ? step.section : around(section, step.section);
    is_first = false;
  }
  return section;
}

}  // namespace

LayerPlaces layer_places(const LayerProgram& program, std::int64_t element_bytes) {
  LayerPlaces all{.places = std::vector<TensorPlace>(program.tensors.size()), .bytes = {}};
  const std::vector<int> writer = writers(program);
  std::array<Workspace, 3> workspaces;  // [pass]
  const auto workspace_of = [&](const Storage& storage) -> Workspace& {
    return workspaces[static_cast<std::size_t>(storage.first_pass)];
  };
  struct Temporary {
    Storage storage;
    Section section;
    std::int64_t offset;  // inside the section
  };
  std::vector<Temporary> temporaries;
  const auto place = [&](const Storage& storage, MemoryPart part, std::int64_t offset) {
    for (const int tensor : storage.tensors) all.places[static_cast<std::size_t>(tensor)] = {part, offset};
  };
  const auto take = [](std::int64_t& total, std::int64_t bytes) { return std::exchange(total, total + bytes); };
  for (const Storage& storage : storages(program)) {
    const auto has = [&](int tensor) { return storage.tensors.has(tensor); };
    const std::int64_t bytes = aligned_bytes(bytes_of(program, storage, element_bytes));
    const bool passes = (has(program.input) && storage.last_pass == Pass::kForward) ||
                        (has(program.output_gradient) && storage.last_pass == Pass::kInputGrad);
    if (passes) {
      place(storage, MemoryPart::kPassing, 0);
      all.bytes.passing = std::max(all.bytes.passing, bytes);
    } else if (has(program.output_gradient) || storage.is_kept() ||
               (storage.first_pass == Pass::kInputGrad && storage.last_pass == Pass::kWeightGrad)) {
      const auto kept = static_cast<std::size_t>(storage.kept);
      const bool is_cheap = writer[kept] >= 0 && program.steps[static_cast<std::size_t>(writer[kept])].cheap &&
                            program.tensors[kept].type == StoredType::kElement;
      if (is_cheap)
        place(storage, MemoryPart::kCheap, take(all.bytes.cheap, bytes));
      else if (storage.last_pass == Pass::kWeightGrad)
        place(storage, MemoryPart::kLate, take(all.bytes.late, bytes));
      else
        place(storage, MemoryPart::kEarly, take(all.bytes.early, bytes));
    } else if (!has(program.output) && !has(program.input_gradient)) {
      const Section section = section_of(program, storage);
      temporaries.push_back({storage, section, workspace_of(storage).add(section, bytes)});
    }
  }
  // A section begins behind those that contain it, whose sizes are known only now.
  for (const auto& [storage, section, offset] : temporaries)
    place(storage,
          storage.first_pass == Pass::kForward ? MemoryPart::kForwardWorkspace : MemoryPart::kBackwardWorkspace,
          workspace_of(storage).begin_of(section) + offset);
  all.bytes.forward_workspace = workspaces[0].size();
  all.bytes.backward_workspace = std::max(workspaces[1].size(), workspaces[2].size());
  return all;
}

SequenceBytes sequence_bytes(const LayerProgram& program, std::int64_t element_bytes) {
  SequenceBytes bytes;
  for (const LayerStep& step : steps_of(program, Pass::kForward)) {
    const bool is_latent = step.is(KernelKind::kLatentAttentionForward);
    if (!is_latent && !step.is(KernelKind::kAttentionForward)) continue;
    // {b, s, a, k, d, window}, or {b, s, a, size of keys, size of values, window}
    const std::vector<std::int64_t>& size = step.call()->shape;
    const std::int64_t columns = is_latent ? size[2] * (size[3] + size[4]) : 2 * size[3] * size[4];
    const std::int64_t elements = size[0] * size[1] * columns;
    bytes.kept += aligned_bytes(elements * element_bytes);
    bytes.gradients += aligned_bytes(elements * kWord);
  }
  return bytes;
}

}}  // namespace plumb::kernels
