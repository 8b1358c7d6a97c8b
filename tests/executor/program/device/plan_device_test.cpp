#include "executor/program/device/plan_device.h"

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string_view>

#include <doctest/doctest.h>

#include "executor/program/device/device_calls.h"
#include "schedules/dependencies/action_table.h"
#include "schedules/dependencies/dependencies.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "schedules/rules/validate.h"
#include "tests/executor/program/device/check_device_program.h"

namespace plumb::test { namespace {

constexpr std::int64_t kUnit = 1 << 20;

/// Every kind of bytes, none a multiple of another, and sends that take time.
CostTable uneven_costs(const Schedule& schedule) {
  CostTable costs = chunk_cost_table(static_cast<int>(schedule.stages.size()), {.forward = {Seconds{1.0}},
                                                                                .input_grad = {Seconds{1.1}},
                                                                                .weight_grad = {Seconds{0.7}},
                                                                                .optimizer = {Seconds{0.5}},
                                                                                .move = {Seconds{0.4}},
                                                                                .unshard = {Seconds{0.2}},
                                                                                .reduce_grad = {Seconds{0.3}},
                                                                                .hop_latency = Seconds{0.01}});
  for (StageCosts& stage : costs.stages) {
    stage.memory = {.parameter_bytes = 13 * kUnit,
                    .forward_bytes = 17 * kUnit,
                    .recompute_bytes = 5 * kUnit,
                    .released_at_input_grad_bytes = 7 * kUnit,
                    .forward_workspace_bytes = 2 * kUnit,
                    .backward_workspace_bytes = 3 * kUnit,
                    .unsharded_bytes = 11 * kUnit};
    stage.activation_message_bytes = kUnit + 100;
    stage.gradient_message_bytes = kUnit + 300;
  }
  costs.default_link.bytes_per_second = 10.0 * kUnit;
  return costs;
}

struct Sample {
  std::string name;
  Schedule lowered;
};

/// Every schedule that takes so many ranks, in the forms that lowering can give it.
std::vector<Sample> samples(int ranks, int microbatches, std::optional<Checkpoint> only = {}) {
  std::vector<Sample> found;
  for (const CatalogueEntry& entry : catalogue()) {
    if (!entry.unpriced.empty()) continue;  // no backend exchanges them
    ScheduleParameters parameters{.ranks = ranks, .microbatches = microbatches};
    if (entry.takes_chunks) parameters.chunks = 2;
    if (entry.takes_slices) parameters.slices = 2;
    Schedule order;
    try {
      order = make_schedule(entry.name, parameters);
    } catch (const InputError&) {
      continue;
    }
    const auto add = [&](const char* how, const LoweringOptions& options) {
      Schedule lowered;
      try {
        lowered = lower(order, options);
      } catch (const InputError&) {
        return;
      }
      if (validate(lowered).empty()) found.push_back({std::string(entry.name) + how, std::move(lowered)});
    };
    if (only) {
      add("", {.checkpoint = *only});
      add(" with offloading", {.checkpoint = *only, .offload = 2});
      continue;
    }
    add("", {});
    add(" with recomputation", {.checkpoint = Checkpoint::kAlways});
    add(" with offloading", {.offload = 2});
    add(" with ZeRO 3", {.data = {.enabled = true, .zero = 3}});
    add(" with late receives", {.receives = Receives::kLate});
    add(" with buckets", {.data = {.enabled = true, .buckets = std::vector<int>(order.stages.size(), 2)}});
  }
  return found;
}

TEST_CASE("device plan: every schedule is planned without a race, on 1 to 8 ranks") {
  std::size_t programs = 0;
  double worst = 1;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const Sample& sample : samples(ranks, 2 * ranks)) {
      CAPTURE(sample.name);
      CAPTURE(ranks);
      const DeviceProgram program = plan_device(sample.lowered, uneven_costs(sample.lowered));
      const std::vector<std::string> wrong = check_device_program(program, sample.lowered);
      CHECK(wrong.size() == 0);
      if (!wrong.empty()) CHECK(wrong.front() == "");
      for (std::size_t rank = 0; rank < program.arena_bytes.size(); ++rank) {
        CHECK(program.arena_bytes[rank] >= program.live_bytes[rank]);
        if (program.live_bytes[rank] > 0)
          worst = std::max(
              worst, static_cast<double>(program.arena_bytes[rank]) / static_cast<double>(program.live_bytes[rank]));
      }
      ++programs;
    }
  }
  CHECK(programs > 500);
  MESSAGE(programs << " programs, the largest arena over what lives at once: " << worst);
  CHECK(worst < 1.25);
}

/// Returns memory with which micro-batches without an R are kept whole, and those with one are not.
MicrobatchMemory by_listed(const Schedule& lowered) {
  const std::vector<std::vector<StageMemory>> kept(
      lowered.stages.size(), std::vector<StageMemory>(static_cast<std::size_t>(lowered.microbatches),
                                                      {.forward_bytes = 23 * kUnit,
                                                       .released_at_input_grad_bytes = 9 * kUnit,
                                                       .forward_workspace_bytes = 2 * kUnit,
                                                       .backward_workspace_bytes = 3 * kUnit}));
  MicrobatchMemory memory = kept;
  const CostTable costs = uneven_costs(lowered);
  for (const std::vector<Action>& actions : lowered.ranks)
    for (const Action& action : actions)
      if (action.op == Op::kRecompute)
        memory[static_cast<std::size_t>(action.stage)][static_cast<std::size_t>(action.microbatch)] =
            costs.stages[static_cast<std::size_t>(action.stage)].memory;
  return memory;
}

TEST_CASE("device plan: some micro-batches are computed again and others kept, without a race, on 1 to 8 ranks") {
  std::size_t programs = 0;
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (const Sample& sample : samples(ranks, 2 * ranks, Checkpoint::kExceptLast)) {
      CAPTURE(sample.name);
      CAPTURE(ranks);
      const CostTable costs = uneven_costs(sample.lowered);
      const DeviceProgram program =
          plan_device(sample.lowered, costs, false, DeviceWaits::kNeeded, {}, by_listed(sample.lowered));
      CHECK(check_device_program(program, sample.lowered) == std::vector<std::string>{});
      std::int64_t rebuilt = 0, kept = 0;
      for (const DeviceBuffer& buffer : program.buffers) {
        if (buffer.use == BufferUse::kRebuilt) rebuilt += buffer.bytes;
        if (buffer.use == BufferUse::kActivations && !buffer.freed_by_input_grad) kept += buffer.bytes == 14 * kUnit;
      }
      std::int64_t listed = 0, whole = 0;  // those that are kept whole, as often as they come to be
      const ActionTable table(sample.lowered);
      for (const std::vector<Action>& actions : sample.lowered.ranks)
        for (const Action& a : actions) {
          listed += a.op == Op::kRecompute ? 1 : 0;
          if (a.op != Op::kForward && !brings_back(a.op)) continue;
          bool is_listed = false;
          for (int part = 0; part < table.parts(); ++part)
            is_listed |= table.find(Op::kRecompute, a.stage, a.microbatch, part) != ActionTable::kNone;
          whole += is_listed ? 0 : 1;
        }
      CHECK(rebuilt == 5 * kUnit * listed);
      CHECK(kept == whole);
      ++programs;
    }
  CHECK(programs > 100);
}

TEST_CASE("device plan: what is moved away leaves the arena until it comes back") {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    CAPTURE(ranks);
    const Schedule order = make_schedule("gpipe", {.ranks = ranks, .microbatches = 2 * ranks + 4});
    const Schedule stays = lower(order), moves = lower(order, {.offload = 2});
    const DeviceProgram all = plan_device(stays, uneven_costs(stays)), few = plan_device(moves, uneven_costs(moves));
    CHECK(check_device_program(few, moves) == std::vector<std::string>{});
    for (std::size_t rank = 0; rank < few.arena_bytes.size(); ++rank) {
      CHECK(all.host_bytes[rank] == 0);
      CHECK(few.host_bytes[rank] == (2 * ranks + 4 - 2) * 17 * kUnit);
      CHECK(few.arena_bytes[rank] < all.arena_bytes[rank]);
      CHECK(few.live_bytes[rank] <= (2 + 2) * 17 * kUnit + 25 * kUnit);
    }
  }
}

TEST_CASE("device plan: BPipe's guests lie in their partner's arena") {
  for (const int ranks : {4, 6, 8}) {
    CAPTURE(ranks);
    const Schedule lowered = lower(make_schedule("bpipe", {.ranks = ranks, .microbatches = 2 * ranks}));
    const DeviceProgram program = plan_device(lowered, uneven_costs(lowered));
    CHECK(check_device_program(program, lowered) == std::vector<std::string>{});
    std::size_t guests = 0;
    for (const DeviceBuffer& buffer : program.buffers) {
      if (buffer.use != BufferUse::kGuest) continue;
      ++guests;
      CHECK(buffer.rank == ranks - 1 - program.calls[static_cast<std::size_t>(buffer.calls.front())].rank);
      CHECK(buffer.calls.size() == 2);
    }
    CHECK(guests > 0);
  }
}

TEST_CASE("device plan: without any one of its waits a program has a race") {
  std::mt19937 random(3);  // NOLINT(cert-msc51-cpp): the same choice every time
  for (const int ranks : {2, 4}) {
    for (const Sample& sample : samples(ranks, 2 * ranks)) {
      const DeviceProgram program = plan_device(sample.lowered, uneven_costs(sample.lowered));
      std::vector<std::size_t> waiting;
      for (std::size_t call = 0; call < program.calls.size(); ++call) {
        if (!program.calls[call].waits.empty()) waiting.push_back(call);
      }
      if (waiting.empty()) continue;
      for (int round = 0; round < 4; ++round) {
        DeviceProgram changed = program;
        DeviceCall& call = changed.calls[waiting[random() % waiting.size()]];
        const std::size_t dropped = random() % call.waits.size();
        CAPTURE(sample.name);
        CAPTURE(call.action);
        CAPTURE(call.waits[dropped].call);
        call.waits.erase(call.waits.begin() + static_cast<std::ptrdiff_t>(dropped));
        CHECK_FALSE(check_device_program(changed, sample.lowered).empty());
      }
    }
  }
}

TEST_CASE("device plan: whoever works with replaced weights finds them in a buffer") {
  for (const bool vertical_sync : {false, true}) {
    const Schedule lowered =
        lower(make_schedule("pipedream", {.ranks = 4, .microbatches = 7, .vertical_sync = vertical_sync}));
    const DeviceProgram program = plan_device(lowered, uneven_costs(lowered));
    REQUIRE(check_device_program(program, lowered).empty());
    std::size_t versions = 0;
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      if (program.buffers[i].use != BufferUse::kWeights) continue;
      ++versions;
      CHECK(program.buffers[i].bytes == 13 * kUnit);
      DeviceProgram changed = program;
      changed.buffers[i].calls.pop_back();
      CHECK_FALSE(check_device_program(changed, lowered).empty());
      changed = program;
      changed.buffers.erase(changed.buffers.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK_FALSE(check_device_program(changed, lowered).empty());
    }
    CHECK(versions >=
          3 * 6 - 3);  // each of three ranks replaces weights that are in use in all steps but its last ones
  }
}

TEST_CASE(
    "device plan: what slices keep of their sequences lives from the first F to the last part of the input gradient") {
  for (const char* name : {"seq1f1b", "terapipe"})
    for (const int ranks : {1, 2, 4}) {
      CAPTURE(name);
      CAPTURE(ranks);
      const int slices = 3, microbatches = 2 * ranks;
      const Schedule lowered =
          lower(make_schedule(name, {.ranks = ranks, .microbatches = microbatches, .slices = slices}));
      const std::vector<DeviceStageBytes> bytes(lowered.stages.size(),
                                                {.sequences = 6 * kUnit, .sequence_gradients = 12 * kUnit});
      const DeviceProgram program = plan_device(lowered, uneven_costs(lowered), false, DeviceWaits::kNeeded, bytes);
      CHECK(check_device_program(program, lowered) == std::vector<std::string>{});
      const ActionIds ids = action_ids(lowered);
      const auto action_of = [&](std::int32_t call) {
        const ActionPlace at = place_of(ids, program.calls[static_cast<std::size_t>(call)].action);
        return lowered.ranks[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(at.position)];
      };
      std::int64_t kept = 0, gradients = 0;
      for (const DeviceBuffer& buffer : program.buffers) {
        if (buffer.use != BufferUse::kSequences && buffer.use != BufferUse::kSequenceGradients) continue;
        const Action first = action_of(buffer.calls.front()), last = action_of(buffer.calls.back());
        const bool is_gradient = buffer.use == BufferUse::kSequenceGradients;
        ++(is_gradient ? gradients : kept);
        CHECK(buffer.bytes == (is_gradient ? 12 : 6) * kUnit);
        CHECK(buffer.calls.size() == static_cast<std::size_t>(is_gradient ? slices : 2 * slices));
        CHECK(first.op == (is_gradient ? Op::kBackward : Op::kForward));
        CHECK(int{first.part} == (is_gradient ? slices - 1 : 0));
        CHECK(last.op == Op::kBackward);
        CHECK(int{last.part} == 0);
        CHECK(first.microbatch == last.microbatch);
      }
      CHECK(kept == ranks * microbatches);
      CHECK(gradients == ranks * microbatches);
    }
}

TEST_CASE("device plan: the streams of two stages under 1F1B") {
  const Schedule lowered = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 2}));
  CostTable costs = uneven_costs(lowered);
  const DeviceProgram program = plan_device(lowered, costs);
  // F0 and F1 and two backwards a stage, two steps; two messages each way.
  CHECK(program.calls.size() == 2 * (2 + 2 + 1) + 4);
  const auto on = [&](DeviceStream stream) { return std::ranges::count(program.calls, stream, &DeviceCall::stream); };
  CHECK(on(DeviceStream::kSendActivation) == 2);
  CHECK(on(DeviceStream::kSendGradient) == 2);
  CHECK(on(DeviceStream::kReduce) == 0);
  // Every message has an event before it and one behind it.
  CHECK(event_count(program) >= 8);
}

TEST_CASE("device plan: the arena holds what 1F1B keeps, and no more micro-batches for a longer step") {
  const auto arena_of = [](int microbatches) {
    const Schedule lowered = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = microbatches}));
    return plan_device(lowered, uneven_costs(lowered)).arena_bytes;
  };
  const std::vector<std::int64_t> arena = arena_of(8);
  CHECK(arena[0] >= 4 * 17 * kUnit);
  CHECK(arena[0] < 5 * 17 * kUnit + 20 * kUnit);
  CHECK(arena[3] >= 17 * kUnit);
  CHECK(arena[3] < arena[0]);
  CHECK(arena_of(24) == arena_of(48));
}

TEST_CASE("check device program: names what is wrong") {
  const Schedule lowered = lower(make_schedule("gpipe", {.ranks = 2, .microbatches = 2}));
  const DeviceProgram program = plan_device(lowered, uneven_costs(lowered));
  const auto first_wrong = [&](auto&& change) {
    DeviceProgram changed = program;
    change(changed);
    const std::vector<std::string> wrong = check_device_program(changed, lowered);
    return wrong.empty() ? std::string() : wrong.front();
  };
  CHECK(first_wrong([](DeviceProgram&) {}) == "");
  CHECK(first_wrong([](DeviceProgram& p) { p.calls[0].waits = {{.call = 3}}; }) ==
        "call 0 waits for call 3, which is not enqueued before it");
  CHECK(first_wrong([](DeviceProgram& p) {
          for (DeviceCall& call : p.calls) call.waits.clear();
        }).find("does not wait for") != std::string::npos);
  CHECK(first_wrong([](DeviceProgram& p) {
          for (DeviceBuffer& buffer : p.buffers) buffer.offset = 0;
        }).find("may still be using") != std::string::npos);
  CHECK(first_wrong([](DeviceProgram& p) { p.arena_bytes[0] /= 2; }).find("beyond the arena of rank 0") !=
        std::string::npos);
}

TEST_CASE("device plan: messages of a group are neighbours, behind the same calls, and not in each other's places") {
  std::size_t groups = 0;
  for (const int ranks : {2, 4, 6, 8})
    for (const Sample& sample : samples(ranks, 2 * ranks)) {
      CAPTURE(sample.name);
      CAPTURE(ranks);
      const std::vector<MessagePair> pairs = message_pairs(sample.lowered, ProcessGrid{.pipeline = ranks});
      if (pairs.empty()) continue;
      const CostTable costs = uneven_costs(sample.lowered);
      const DeviceProgram program = plan_device(sample.lowered, costs, false, DeviceWaits::kAll, {}, {}, {}, pairs);
      for (const std::string& wrong : check_device_program(program, sample.lowered)) FAIL_CHECK(wrong);
      CHECK(static_cast<std::size_t>(std::ranges::count(program.calls, true, &DeviceCall::with_next)) == pairs.size());
      const auto stands_behind = [&](const DeviceCall& call, const DeviceWait& wait) {
        const DeviceCall& before = program.calls[static_cast<std::size_t>(wait.call)];
        return (before.rank == call.rank && before.stream == call.stream) ||
               std::ranges::find(call.waits, wait) != call.waits.end();
      };
      std::vector<std::vector<const DeviceBuffer*>> used(program.calls.size());  // [call]
      for (const DeviceBuffer& buffer : program.buffers)
        for (const std::int32_t call : buffer.calls) used[static_cast<std::size_t>(call)].push_back(&buffer);
      for (std::size_t first = 0; first + 1 < program.calls.size(); ++first) {
        const DeviceCall &one = program.calls[first], &other = program.calls[first + 1];
        if (!one.with_next) continue;
        ++groups;
        CHECK(std::ranges::any_of(pairs, [&](const MessagePair& pair) {
          return pair.sends == std::array{std::min(one.action, other.action), std::max(one.action, other.action)};
        }));
        for (const DeviceWait& wait : one.waits) CHECK(stands_behind(other, wait));
        for (const DeviceWait& wait : other.waits) {
          CHECK(wait.call != static_cast<std::int32_t>(first));
          CHECK(stands_behind(one, wait));
        }
        for (const DeviceBuffer* sent : used[first])
          for (const DeviceBuffer* came : used[first + 1])
            if (sent->rank == came->rank && sent != came)
              CHECK((sent->offset + sent->bytes <= came->offset || came->offset + came->bytes <= sent->offset));
      }
      // A group costs no time in this cost table: a hop is shorter than an action.
      const DeviceCalls alone = device_calls(sample.lowered, costs),
                        grouped = device_calls(sample.lowered, costs, false, {}, pairs);
      CHECK(std::ranges::max(grouped.ends) == std::ranges::max(alone.ends));
    }
  CHECK(groups > 50);
}

TEST_CASE("check device program: activations that are away have a place, and nobody looks for them where they were") {
  for (const char* name : {"gpipe", "bpipe"}) {
    CAPTURE(name);
    const bool evicts = std::string_view(name) == "bpipe";
    const Schedule order = make_schedule(name, {.ranks = 4, .microbatches = 8});
    const Schedule lowered = evicts ? lower(order) : lower(order, {.offload = 2});
    const DeviceProgram program = plan_device(lowered, uneven_costs(lowered));
    REQUIRE(check_device_program(program, lowered).empty());
    const auto found = [&](auto&& change, const char* text) {
      DeviceProgram changed = program;
      change(changed);
      return std::ranges::any_of(check_device_program(changed, lowered),
                                 [&](const std::string& wrong) { return wrong.find(text) != std::string::npos; });
    };
    const auto is_away = [](const DeviceBuffer& buffer) {
      return buffer.use == BufferUse::kHost || buffer.use == BufferUse::kGuest;
    };
    const auto first_away = [&](DeviceProgram& p) { return std::ranges::find_if(p.buffers, is_away); };
    CHECK(found([&](DeviceProgram& p) { p.buffers.erase(first_away(p)); }, "has no place until it comes back"));
    CHECK(found([&](DeviceProgram& p) { first_away(p)->calls.pop_back(); }, "has no place until it comes back"));
    CHECK(found(
        [&](DeviceProgram& p) {  // what is not moved at all: the backward takes it from where F has put it
          const std::int32_t mover = first_away(p)->calls.front();
          for (DeviceBuffer& buffer : p.buffers)
            if (buffer.use == BufferUse::kActivations && buffer.calls.back() == mover)
              buffer.calls.push_back(static_cast<std::int32_t>(p.calls.size()) - 1);
        },
        "has taken away"));
    if (!evicts) CHECK(found([](DeviceProgram& p) { p.host_bytes[0] /= 2; }, "beyond the host's memory of rank 0"));
  }
}

}}  // namespace plumb::test
