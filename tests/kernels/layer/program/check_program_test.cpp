// Every program of every kind is sound, and each fault that is put into one is found, with the name of its step.

#include "kernels/layer/program/check_program.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "kernels/layer/program/recomputed.h"
#include "kernels/layer/program/storage.h"
#include "tests/kernels/layer/all_kinds.h"

namespace plumb::test {
namespace {

constexpr ExchangeGroup kGroups[] = {ExchangeGroup::kTensor, ExchangeGroup::kContext, ExchangeGroup::kExpert};

bool names(const std::string& fault, const LayerStep& step) {
  return fault.find(step_text(step)) != std::string::npos;
}

/// Calls visit(program) for the programs of all kinds and divisions on all machines.
template <class Visit>
void for_each_program(Visit visit) {
  for_each_layer([&](const Layer& layer, const LayerWork& work) {
    for (const LayerProgram& program : all_programs(layer, work)) {
      CAPTURE(layer_kind_name(layer));
      CAPTURE(work.tensor_parallel);
      CAPTURE(work.experts.parallel);
      visit(program);
    }
  });
}

std::size_t index_of(const LayerStep& step, const LayerProgram& program) {
  return static_cast<std::size_t>(&step - program.steps.data());
}

}  // namespace

TEST_CASE("every program is sound, on every machine and in every division, and recomputes what it forgets") {
  int programs = 0;
  for_each_program([&](const LayerProgram& program) {
    ++programs;
    CHECK(program_fault(program) == "");
    for (const Recompute what : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
      CHECK(recomputation_fault(program, forgotten_tensors(program, what)) == "");
    const std::vector<LayerProgram> ranks = {program, program, program};
    for (const ExchangeGroup group : kGroups) CHECK(exchange_fault(ranks, group) == "");
  });
  CHECK(programs > 400);
}

TEST_CASE("a read without a writer is refused with the step's name") {
  int faults = 0;
  for_each_program([&](const LayerProgram& sound) {
    for (const LayerStep& step : sound.steps)
      for (std::size_t read = 0; read < step.reads.size(); ++read) {
        LayerProgram program = sound;
        LayerTensor stranger = program.tensors[static_cast<std::size_t>(step.reads[read])];
        stranger.origin = Origin::kStep;
        stranger.place = -1;
        program.tensors.push_back(stranger);
        program.steps[index_of(step, sound)].reads[read] = static_cast<std::int16_t>(program.tensors.size() - 1);
        const std::string fault = program_fault(program);
        REQUIRE(names(fault, step));
        REQUIRE(fault.find("no step before it writes") != std::string::npos);
        ++faults;
      }
  });
  CHECK(faults > 10'000);
}

TEST_CASE("a step that is left out is refused if another needs its results, its parameter or its gradient") {
  int faults = 0;
  for_each_program([&](const LayerProgram& sound) {
    const std::vector<int> first = writers(sound);
    for (std::size_t left_out = 0; left_out < sound.steps.size(); ++left_out) {
      const LayerStep& step = sound.steps[left_out];
      const bool is_needed = std::ranges::any_of(step.writes, [&](int tensor) {
        const bool is_handed = tensor == sound.output || tensor == sound.input_gradient;
        return sound.tensors[static_cast<std::size_t>(tensor)].origin == Origin::kStep &&
               first[static_cast<std::size_t>(tensor)] == static_cast<int>(left_out) &&
               (is_handed || std::ranges::any_of(sound.steps, [&](const LayerStep& other) {
                  return &other != &step && other.reads.has(tensor);
                }));
      });
      const bool has_parameter = step.pass == Pass::kForward && !step.parameters.empty();
      if (!is_needed && !has_parameter && step.gradients.empty()) continue;
      LayerProgram program = sound;
      program.steps.erase(program.steps.begin() + static_cast<std::ptrdiff_t>(left_out));
      REQUIRE(program_fault(program) != "");
      ++faults;
    }
  });
  CHECK(faults > 4'000);
}

TEST_CASE("a gradient that is forgotten is refused with its parameter and the step that reads it") {
  int faults = 0;
  for_each_program([&](const LayerProgram& sound) {
    for (const LayerStep& step : sound.steps)
      for (const int parameter : step.gradients) {
        LayerProgram program = sound;
        program.steps[index_of(step, sound)].gradients.erase(parameter);
        const auto reader =
            std::ranges::find_if(sound.steps, [&](const LayerStep& other) { return other.parameters.has(parameter); });
        const std::string fault = program_fault(program);
        const std::string& name = sound.parameters[static_cast<std::size_t>(parameter)].name;
        // A product without its weight is refused at once.
        REQUIRE((names(fault, step) || (names(fault, *reader) && fault.find(name) != std::string::npos)));
        ++faults;
      }
  });
  CHECK(faults > 1'000);
}

TEST_CASE("an exchange that one rank lacks is refused with the step's name") {
  int faults = 0;
  for_each_program([&](const LayerProgram& sound) {
    for (const LayerStep& step : sound.steps) {
      if (step.exchange() == nullptr) continue;
      LayerProgram lacking = sound;
      lacking.steps.erase(lacking.steps.begin() + static_cast<std::ptrdiff_t>(index_of(step, sound)));
      REQUIRE(names(exchange_fault(std::vector<LayerProgram>{sound, lacking}, step.exchange()->group), step));
      REQUIRE(names(exchange_fault(std::vector<LayerProgram>{lacking, sound}, step.exchange()->group), step));
      LayerProgram other = sound;
      std::get<Exchange>(other.steps[index_of(step, sound)].does).elements += 1;
      REQUIRE(names(exchange_fault(std::vector<LayerProgram>{sound, sound, other}, step.exchange()->group), step));
      faults += 3;
    }
  });
  CHECK(faults > 1'000);
}

TEST_CASE("a tensor that gives up its place while a step still reads it is refused with both steps' names") {
  int faults = 0;
  for_each_program([&](const LayerProgram& sound) {
    const std::vector<int> first = writers(sound);
    for (std::size_t i = 0; i < sound.tensors.size(); ++i) {
      const int place = sound.tensors[i].place, step = first[i];
      if (place < 0 || step < 0) continue;
      for (std::size_t later = static_cast<std::size_t>(step) + 1; later < sound.steps.size(); ++later) {
        LayerProgram program = sound;
        program.steps[later].reads.push_back(place);
        const std::string fault = program_fault(program);
        REQUIRE(fault != "");
        REQUIRE(names(fault, sound.steps[later]));
        ++faults;
        break;
      }
    }
  });
  CHECK(faults > 500);
}

TEST_CASE("a product whose operands have other shapes than its call is refused with the step's name") {
  int faults = 0;
  for_each_program([&](const LayerProgram& sound) {
    for (const LayerStep& step : sound.steps) {
      if (!step.is(KernelKind::kGemm) || step.call()->shape[3] != 1) continue;
      for (std::size_t size = 0; size < 3; ++size) {
        LayerProgram program = sound;
        std::get<KernelCall>(program.steps[index_of(step, sound)].does).shape[size] += 1;
        REQUIRE(names(program_fault(program), step));
        ++faults;
      }
    }
  });
  CHECK(faults > 3'000);
}

TEST_CASE("forgetting what no step makes again is refused with the step that needs it") {
  LayerProgram program = layer_program(small_llama_block(), {.microbatch = 2, .sequence = 16});
  const std::vector<bool> forgotten = forgotten_tensors(program, Recompute::kSelective);
  program.steps.erase(program.steps.begin());
  CHECK(recomputation_fault(program, forgotten) ==
        "step 'norm1' of the input gradient reads 'norm1 deviations', which is neither kept nor made again");
}

TEST_CASE("any single tensor that the backward needs may be forgotten and made again") {
  for_each_program([](const LayerProgram& program) {
    for (const Storage& storage : storages(program)) {
      if (!storage.is_kept() || handed_tensor(program, storage) >= 0) continue;
      std::vector<bool> forgotten(program.tensors.size());
      forgotten[static_cast<std::size_t>(storage.kept)] = true;
      CHECK(recomputation_fault(program, forgotten) == "");
    }
  });
}

}  // namespace plumb::test
