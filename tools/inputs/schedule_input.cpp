#include "tools/inputs/schedule_input.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_form.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/text_form.h"
#include "schedules/forms/torch_csv.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "schedules/passes/passes.h"
#include "schedules/passes/torch_lowering.h"
#include "schedules/rules/validate.h"
#include "tools/inputs/file_kinds.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

[[noreturn]] void fail_ending(const std::string& path) {
  throw InputError(fmt::format("{}: the form of a schedule is told by its ending: name it .txt, .csv or .json", path));
}

Schedule parse_schedule_file(const std::string& path, bool lenient) {
  const std::string text = read_text_file(path);
  if (path.ends_with(".csv")) {
    TorchCsv csv = read_torch_csv(text, path, lenient ? TorchReading::kLenient : TorchReading::kStrict);
    for (const std::string& note : csv.notes) print_note(note);
    csv.schedule.name = path;
    return std::move(csv.schedule);
  }
  if (!path.ends_with(".txt") && !path.ends_with(".json")) fail_ending(path);
  Schedule schedule = path.ends_with(".json") ? parse_schedule_json(text, path) : parse_schedule(text, path);
  if (schedule.name.empty()) schedule.name = path;
  return schedule;
}

Checkpoint checkpoint_of(const ScheduleArguments& arguments) {
  return arguments.checkpoint == "always"        ? Checkpoint::kAlways
         : arguments.checkpoint == "except_last" ? Checkpoint::kExceptLast
                                                 : Checkpoint::kNever;
}

bool has_op(const Schedule& schedule, Op op) {
  return std::ranges::any_of(schedule.ranks, [op](const std::vector<Action>& actions) {
    return std::ranges::find(actions, op, &Action::op) != actions.end();
  });
}

/// Throws ScheduleError if recomputation is asked for and the schedule recomputes already, or has no backward.
void require_recomputable(const Schedule& schedule, const ScheduleArguments& arguments) {
  if (checkpoint_of(arguments) == Checkpoint::kNever) return;
  if (has_op(schedule, Op::kRecompute))
    throw ScheduleError(fmt::format("{} recomputes already: leave --checkpoint away", schedule.name));
  if (!has_op(schedule, Op::kBackward) && !has_op(schedule, Op::kInputGrad))
    throw ScheduleError(
        fmt::format("{} has no backward to recompute anything for: leave --checkpoint away", schedule.name));
}

}  // namespace

bool names_schedule_file(const std::string& name) {
  return has_known_ending(name) || name.find('/') != std::string::npos;
}

Schedule read_schedule(const std::string& path, bool lenient) {
  return read_as(FileKind::kSchedule, path, [&] { return parse_schedule_file(path, lenient); });
}

Sends sends_named(const std::string& name) {
  return name == "rendezvous" ? Sends::kRendezvous : name == "blocking" ? Sends::kBlocking : Sends::kBuffered;
}

void refuse_numbers(const ScheduleArguments& arguments) {
  const ScheduleArguments none;
  const bool given = arguments.ranks != none.ranks || arguments.microbatches != none.microbatches ||
                     arguments.chunks != none.chunks || arguments.group != none.group ||
                     arguments.slices != none.slices || arguments.batch != none.batch || arguments.vertical_sync ||
                     arguments.node_ranks != none.node_ranks || arguments.memory_ratio != none.memory_ratio;
  if (!given) return;
  throw UsageError(fmt::format(
      "{} has its own ranks, micro-batches and the like: leave -p, -m, -v, --group, --slices, --batch, --node-ranks, "
      "--vertical-sync and --memory away",
      arguments.name));
}

void refuse_lenient(const ScheduleArguments& arguments) {
  if (arguments.lenient && !arguments.name.ends_with(".csv"))
    throw UsageError(
        fmt::format("--lenient is for PyTorch's CSV files, and {} is none: leave it away", arguments.name));
}

Schedule schedule_input(const ScheduleArguments& arguments, const ChunkCosts& costs) {
  Schedule schedule = unchecked_input(arguments, costs);
  if (!names_schedule_file(arguments.name)) return schedule;
  const std::vector<Violation> violations = validate(schedule);
  if (violations.empty()) return schedule;
  const std::string more =
      violations.size() == 1 ? "" : fmt::format("; {} more, see `plumb schedule check`", violations.size() - 1);
  throw ScheduleError(fmt::format("{}: {}{}", arguments.name, to_text(violations.front()), more));
}

Schedule unchecked_input(const ScheduleArguments& arguments, const ChunkCosts& costs) {
  refuse_lenient(arguments);
  if (names_schedule_file(arguments.name)) {
    refuse_numbers(arguments);
    return read_schedule(arguments.name, arguments.lenient);
  }
  if (std::filesystem::is_regular_file(arguments.name)) fail_ending(arguments.name);
  return make_schedule(arguments.name, parameters_of(arguments, costs));
}

ScheduleParameters parameters_of(const ScheduleArguments& arguments, const ChunkCosts& costs) {
  catalogue_entry(arguments.name);  // says what a name is that it does not have
  if (arguments.ranks == 0 || arguments.microbatches == 0) {
    throw UsageError(fmt::format("schedule {}: give its ranks (-p) and micro-batches (-m)", arguments.name));
  }
  return {.ranks = arguments.ranks,
          .microbatches = arguments.microbatches,
          .chunks = std::max(arguments.chunks, 1),
          .group = arguments.group,
          .slices = arguments.slices,
          .batch = arguments.batch,
          .node_ranks = arguments.node_ranks,
          .vertical_sync = arguments.vertical_sync,
          .memory_ratio = arguments.memory_ratio,
          .costs = costs};
}

bool adds_messages(const ScheduleArguments& arguments) {
  return arguments.shard || arguments.receives != "early" || arguments.lowering != "plumb";
}

Schedule ordered_input(const Schedule& schedule, const ScheduleArguments& arguments) {
  if (adds_messages(arguments))
    throw UsageError(
        "--shard, --receives and --lowering say what is added to a compute order: give --lowered too, or leave them "
        "away");
  require_recomputable(schedule, arguments);
  Schedule result = add_recompute(schedule, checkpoint_of(arguments));
  if (arguments.offload) result = add_offload(std::move(result), *arguments.offload);
  if (arguments.offload_stages) result = add_lifespan_offload(std::move(result), *arguments.offload_stages);
  return result;
}

Schedule lowered_input(const Schedule& schedule, const ScheduleArguments& arguments) {
  const bool changes = arguments.offload || arguments.offload_stages || arguments.shard ||
                       arguments.receives == "late" || arguments.checkpoint != "never";
  const bool as_torch = arguments.lowering != "plumb";
  if (has_messages(schedule) && (changes || as_torch)) {
    throw ScheduleError(
        fmt::format("{}: --checkpoint, --offload, --offload-stages, --shard, --receives and --lowering go with a "
                    "compute order: this one "
                    "has messages already, give one without",
                    schedule.name));
  }
  if (changes && as_torch) {
    throw UsageError(
        "--checkpoint, --offload, --offload-stages, --shard and --receives go with a compute order that plumb lowers: "
        "leave --lowering "
        "away");
  }
  if (has_messages(schedule)) return schedule;
  require_recomputable(schedule, arguments);
  if (arguments.lowering != "plumb") {
    return lower_as_torch(schedule, {.deferred_receives = arguments.lowering == "pytorch-deferred"});
  }
  const Sharding sharding{.gathered_stages = arguments.shard.value_or(0), .prefetch = arguments.prefetch};
  return lower(schedule, {.checkpoint = checkpoint_of(arguments),
                          .offload = arguments.offload,
                          .offload_stages = arguments.offload_stages,
                          .data = {.enabled = arguments.shard.has_value() || arguments.replicas,
                                   .zero = arguments.shard ? 3 : 0,
                                   .sharding = sharding},
                          .receives = arguments.receives == "late" ? Receives::kLate : Receives::kEarly});
}

std::string titled(std::string title, const ScheduleArguments& arguments) {
  if (arguments.vertical_sync) title += ", vertical sync";
  if (names_schedule_file(arguments.name)) return title;
  const CatalogueEntry& entry = catalogue_entry(arguments.name);
  const ScheduleArguments none;
  std::vector<std::string> defaults;
  if (entry.takes_chunks && arguments.chunks == none.chunks) defaults.emplace_back("-v 1");
  if (entry.takes_slices && arguments.slices == none.slices) defaults.emplace_back("--slices 1");
  if (entry.takes_memory && arguments.memory_ratio == none.memory_ratio) defaults.emplace_back("--memory 1");
  if (entry.takes_batch && arguments.batch == none.batch)
    defaults.push_back(fmt::format("--batch {}", arguments.ranks));
  if (entry.takes_node_ranks && arguments.node_ranks == none.node_ranks)
    defaults.push_back(fmt::format("--node-ranks {}", arguments.ranks));
  return defaults.empty() ? title : fmt::format("{} (by default {})", title, fmt::join(defaults, ", "));
}

std::string schedule_file_text(const Schedule& schedule, const std::string& path) {
  if (path.ends_with(".csv")) return write_torch_csv(schedule);
  if (path.ends_with(".json")) return json_file_text(with_format(FileForm::kSchedule, schedule_to_json(schedule)));
  if (!path.ends_with(".txt")) fail_ending(path);
  return to_text(schedule);
}

}}  // namespace plumb::tools
