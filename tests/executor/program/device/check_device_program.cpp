#include "tests/executor/program/device/check_device_program.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "executor/program/device/call_clocks.h"
#include "executor/program/device/joint_calls.h"
#include "executor/program/device/replaced_weights.h"
#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/dependencies.h"

namespace plumb::test {
namespace {

class ProgramChecker {
 public:
  ProgramChecker(const DeviceProgram& program, const Schedule& schedule, JointPasses passes)
      : program_(program), schedule_(schedule), passes_(passes), clocks_(static_cast<int>(schedule.ranks.size())) {}

  std::vector<std::string> check() {
    if (!check_order()) return std::move(found_);  // without it the clocks say nothing
    for (const DeviceCall& call : program_.calls) clocks_.add(call);
    check_dependencies();
    check_buffers();
    check_weights();
    check_moves();
    return std::move(found_);
  }

 private:
  bool check_order() {
    for (std::size_t index = 0; index < program_.calls.size(); ++index) {
      for (const DeviceWait& wait : program_.calls[index].waits) {
        if (wait.call < 0 || static_cast<std::size_t>(wait.call) >= index)
          found_.push_back(fmt::format("call {} waits for call {}, which is not enqueued before it", index, wait.call));
      }
    }
    return found_.empty();
  }

  void check_dependencies() {
    std::map<std::int32_t, std::int32_t> call_of;
    for (std::size_t index = 0; index < program_.calls.size(); ++index)
      call_of[program_.calls[index].action] = static_cast<std::int32_t>(index);
    const std::vector<std::int32_t> leaders = joint_leaders(schedule_, passes_);
    for (const Dependency& dependency : dependencies(schedule_)) {
      if (is_order_of_joint_gathers(dependency, leaders)) continue;
      const auto from = call_of.find(leaders[static_cast<std::size_t>(dependency.from)]);
      const auto to = call_of.find(leaders[static_cast<std::size_t>(dependency.to)]);
      if (from == to || from == call_of.end() || to == call_of.end())
        continue;  // of a RECV or RESHARD, which the device does not do
      if (dependency.wait == Wait::kInside ? stands_behind_a_moment_of(from->second, to->second)
                                           : clocks_.precedes(from->second, to->second))
        continue;
      found_.push_back(fmt::format("{} does not wait for {}", text_of(to->second), text_of(from->second)));
    }
  }

  bool stands_behind_a_moment_of(std::int32_t host, std::int32_t call) const {
    const std::vector<DeviceWait>& waits = program_.calls[static_cast<std::size_t>(call)].waits;
    return clocks_.precedes(host, call) ||
           std::ranges::any_of(waits, [&](const DeviceWait& wait) { return wait.call == host; });
  }

  void check_buffers() {
    const std::size_t ranks = schedule_.ranks.size();
    std::vector<std::vector<const DeviceBuffer*>> places(2 * ranks);  // arenas, then parts of the host's memory
    for (const DeviceBuffer& buffer : program_.buffers) {
      const std::int32_t writer = buffer.calls.front();
      for (const std::int32_t user : buffer.calls) {
        if (user != writer && !clocks_.precedes(writer, user))
          found_.push_back(
              fmt::format("{} uses bytes that {} may not have written yet", text_of(user), text_of(writer)));
      }
      const auto rank = static_cast<std::size_t>(buffer.rank);
      const bool on_host = buffer.use == BufferUse::kHost;
      if (buffer.offset < 0 ||
          buffer.offset + buffer.bytes > (on_host ? program_.host_bytes : program_.arena_bytes)[rank])
        found_.push_back(fmt::format("what {} writes lies beyond the {} of rank {}", text_of(writer),
                                     on_host ? "host's memory" : "arena", buffer.rank));
      places[on_host ? ranks + rank : rank].push_back(&buffer);
    }
    for (std::vector<const DeviceBuffer*>& buffers : places) {
      std::ranges::sort(buffers, {}, &DeviceBuffer::offset);
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        for (std::size_t j = i + 1; j < buffers.size() && buffers[j]->offset < buffers[i]->offset + buffers[i]->bytes;
             ++j)
          check_pair(*buffers[i], *buffers[j]);
      }
    }
  }

  /// Every action that works with replaced weights is among the users of the buffer that the replacing step writes.
  void check_weights() {
    const std::vector<std::int32_t> replacers = weight_replacers(schedule_);
    std::map<std::int32_t, const DeviceBuffer*> left_by;  // by OPTIMIZER_STEP
    for (const DeviceBuffer& buffer : program_.buffers)
      if (buffer.use == BufferUse::kWeights) left_by[buffer.maker] = &buffer;
    for (std::size_t index = 0; index < program_.calls.size(); ++index) {
      const ActionPlace place = place_of(ids_, program_.calls[index].action);
      const std::vector<Action>& list = schedule_.ranks[static_cast<std::size_t>(place.rank)];
      for (std::int32_t i = 0;; ++i) {
        const std::int32_t replacer = replacers[static_cast<std::size_t>(program_.calls[index].action + i)];
        if (replacer >= 0 && !has_weights(left_by[replacer], replacer, static_cast<std::int32_t>(index)))
          found_.push_back(fmt::format("{} works with replaced weights that nobody keeps",
                                       text_of(static_cast<std::int32_t>(index))));
        if (!list[static_cast<std::size_t>(place.position + i)].overlaps_next) break;
      }
    }
  }

  bool has_weights(const DeviceBuffer* buffer, std::int32_t replacer, std::int32_t user) const {
    return buffer != nullptr && program_.calls[static_cast<std::size_t>(buffer->calls.front())].action == replacer &&
           std::ranges::count(buffer->calls, user) > 0;
  }

  /// Activations that go somewhere have a buffer there until they come back, and nobody looks for them where they were.
  void check_moves() {
    std::map<std::int32_t, const DeviceBuffer*> away;               // by OFFLOAD, EVICT
    std::map<std::int32_t, std::vector<const DeviceBuffer*>> kept;  // by F, RELOAD, LOAD
    for (const DeviceBuffer& buffer : program_.buffers) {
      if (buffer.use == BufferUse::kHost || buffer.use == BufferUse::kGuest) away[buffer.maker] = &buffer;
      if (buffer.use == BufferUse::kActivations) kept[buffer.maker].push_back(&buffer);
    }
    const ActionTable table(schedule_);
    std::map<std::int32_t, std::int32_t> call_of;
    for (std::size_t index = 0; index < program_.calls.size(); ++index)
      call_of[program_.calls[index].action] = static_cast<std::int32_t>(index);
    for (const auto& [id, call] : call_of) {
      const Action& action = action_of(id);
      if (!takes_away(action.op)) continue;
      const auto find = [&](Op op) { return table.find(op, action.stage, action.microbatch, action.part); };
      const std::int32_t back = find(action.op == Op::kOffload ? Op::kReload : Op::kLoad);
      const DeviceBuffer* there = away[id];
      const bool returns =
          back == ActionTable::kNone || (there != nullptr && std::ranges::count(there->calls, call_of[back]) > 0);
      std::int64_t bytes = 0;
      for (const DeviceBuffer* buffer : kept[find(Op::kForward)]) {
        bytes += buffer->bytes;
        if (!clocks_.precedes(buffer->calls.back(), call) && buffer->calls.back() != call)
          found_.push_back(fmt::format("{} looks for activations that {} has taken away", text_of(buffer->calls.back()),
                                       text_of(call)));
      }
      if (bytes > 0 && (there == nullptr || !returns || there->bytes < bytes || there->calls.front() != call))
        found_.push_back(fmt::format("what {} takes away has no place until it comes back", text_of(call)));
    }
  }

  const Action& action_of(std::int32_t id) const {
    const ActionPlace place = place_of(ids_, id);
    return schedule_.ranks[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.position)];
  }

  /// They share bytes: one is done with before the other is written.
  void check_pair(const DeviceBuffer& one, const DeviceBuffer& other) {
    const bool one_first = one.calls.front() < other.calls.front();
    const DeviceBuffer& former = one_first ? one : other;
    const std::int32_t writer = (one_first ? other : one).calls.front();
    for (const std::int32_t user : former.calls) {
      if (!clocks_.precedes(user, writer))
        found_.push_back(fmt::format("{} writes bytes that {} may still be using", text_of(writer), text_of(user)));
    }
  }

  std::string text_of(std::int32_t call) const {
    const DeviceCall& of = program_.calls[static_cast<std::size_t>(call)];
    return fmt::format("{} of rank {}", to_text(action_of(of.action)), of.rank);
  }

  const DeviceProgram& program_;
  const Schedule& schedule_;
  const JointPasses passes_;
  const ActionIds ids_ = action_ids(schedule_);
  CallClocks clocks_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> check_device_program(const DeviceProgram& program, const Schedule& lowered,
                                              JointPasses passes) {
  return ProgramChecker(program, lowered, passes).check();
}

}  // namespace plumb::test
