#include "tools/inputs/schedule_input.h"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_form.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/text_form.h"
#include "schedules/forms/torch_csv.h"
#include "schedules/generators/catalogue.h"
#include "schedules/lower.h"
#include "schedules/passes/torch_lowering.h"
#include "schedules/validate.h"
#include "tools/console.h"
#include "tools/files.h"

namespace plumb { inline namespace tools {
namespace {

[[noreturn]] void fail_ending(const std::string& path) {
  throw InputError(fmt::format("{}: the form of a schedule is told by its ending: name it .txt, .csv or .json", path));
}

}  // namespace

bool names_schedule_file(const std::string& name) {
  return name.ends_with(".txt") || name.ends_with(".csv") || name.ends_with(".json") ||
         name.find('/') != std::string::npos;
}

Schedule read_schedule(const std::string& path, bool lenient) {
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

Sends sends_named(const std::string& name) {
  return name == "rendezvous" ? Sends::kRendezvous : name == "blocking" ? Sends::kBlocking : Sends::kBuffered;
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
  if (names_schedule_file(arguments.name)) return read_schedule(arguments.name, arguments.lenient);
  if (std::filesystem::is_regular_file(arguments.name)) fail_ending(arguments.name);
  return make_schedule(arguments.name, parameters_of(arguments, costs));
}

ScheduleParameters parameters_of(const ScheduleArguments& arguments, const ChunkCosts& costs) {
  if (arguments.ranks == 0 || arguments.microbatches == 0) {
    throw ScheduleError(fmt::format("schedule {}: give its ranks (-p) and micro-batches (-m)", arguments.name));
  }
  return {.ranks = arguments.ranks,
          .microbatches = arguments.microbatches,
          .chunks = arguments.chunks,
          .group = arguments.group,
          .slices = arguments.slices,
          .batch = arguments.batch,
          .vertical_sync = arguments.vertical_sync,
          .memory_ratio = arguments.memory_ratio,
          .costs = costs};
}

Schedule ordered_input(const Schedule& schedule, const ScheduleArguments& arguments) {
  return arguments.offload ? add_offload(schedule, *arguments.offload) : schedule;
}

Schedule lowered_input(const Schedule& schedule, const ScheduleArguments& arguments) {
  const bool changes = arguments.offload || arguments.shard || arguments.receives == "late";
  if (changes && (has_messages(schedule) || arguments.lowering != "plumb")) {
    throw ScheduleError(fmt::format(
        "{}: --offload, --shard and --receives go with a compute order that plumb lowers: {}", schedule.name,
        has_messages(schedule) ? "this one has messages already, give one without" : "leave --lowering away"));
  }
  if (has_messages(schedule)) return schedule;
  if (arguments.lowering != "plumb") {
    return lower_as_torch(schedule, {.deferred_receives = arguments.lowering == "pytorch-deferred"});
  }
  const Checkpoint checkpoint = arguments.checkpoint == "always"        ? Checkpoint::kAlways
                                : arguments.checkpoint == "except_last" ? Checkpoint::kExceptLast
                                                                        : Checkpoint::kNever;
  const Sharding sharding{.gathered_stages = arguments.shard.value_or(0), .prefetch = arguments.prefetch};
  return lower(schedule, {.checkpoint = checkpoint,
                          .offload = arguments.offload,
                          .data = {.enabled = arguments.shard.has_value() || arguments.replicas,
                                   .zero = arguments.shard ? 3 : 0,
                                   .sharding = sharding},
                          .receives = arguments.receives == "late" ? Receives::kLate : Receives::kEarly});
}

std::string schedule_file_text(const Schedule& schedule, const std::string& path) {
  if (path.ends_with(".csv")) return write_torch_csv(schedule);
  if (path.ends_with(".json")) return json_file_text(with_format(FileKind::kSchedule, schedule_to_json(schedule)));
  if (!path.ends_with(".txt")) fail_ending(path);
  return to_text(schedule);
}

}}  // namespace plumb::tools
