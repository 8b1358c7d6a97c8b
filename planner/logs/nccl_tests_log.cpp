#include "planner/logs/nccl_tests_log.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "planner/logs/text_lines.h"
#include "schedules/error.h"
#include "schedules/forms/whole_number.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the collective of each program's name before "_perf"; nothing for send/recv.
const std::map<std::string_view, std::optional<CollectiveKind>>& programs() {
  static const std::map<std::string_view, std::optional<CollectiveKind>> known = {
      {"all_reduce", CollectiveKind::kAllReduce},         {"all_gather", CollectiveKind::kAllGather},
      {"reduce_scatter", CollectiveKind::kReduceScatter}, {"alltoall", CollectiveKind::kAllToAll},
      {"broadcast", CollectiveKind::kBroadcast},          {"sendrecv", std::nullopt}};
  return known;
}

/// Returns the line without the prefix that mpirun and srun put before a rank's line: "[1,0]<stdout>:", "[0] ", "0: ".
std::string_view without_prefix(std::string_view line) {
  if (line.starts_with('[')) {
    const std::size_t end = line.find(']');
    if (end != std::string_view::npos) line.remove_prefix(end + 1);
    if (line.starts_with("<stdout>:")) line.remove_prefix(9);
  }
  const std::size_t digits = line.find_first_not_of("0123456789");
  if (digits != 0 && digits != std::string_view::npos && line[digits] == ':') line.remove_prefix(digits + 1);
  return line;
}

/// Programs of nccl-tests whose exchanges Plumb does not price.
constexpr std::array<std::string_view, 4> kOtherPrograms{"reduce", "gather", "scatter", "hypercube"};

/// Returns the place where the text names the program as a word of its own: "reduce_perf" is not in "all_reduce_perf".
std::size_t find_program(std::string_view text, std::string_view name) {
  const std::string word = fmt::format("{}_perf", name);
  const auto continues = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::size_t at = text.find(word);
  while (at != std::string_view::npos && at > 0 && continues(text[at - 1])) at = text.find(word, at + 1);
  return at;
}

/// Returns the first program that the text names, known or not.
std::optional<std::string_view> program_in(std::string_view text) {
  std::optional<std::string_view> found;
  std::size_t first = std::string_view::npos;
  const auto look_for = [&](std::string_view name) {
    const std::size_t at = find_program(text, name);
    if (at < first) first = at, found = name;
  };
  for (const auto& [name, kind] : programs()) look_for(name);
  for (const std::string_view name : kOtherPrograms) look_for(name);
  return found;
}

/// The columns of the rows by the header.
struct Columns {
  bool in_place = true;  ///< times in place stand behind those out of place
  bool errors = false;   ///< before 2.13: the largest difference in the place of the number of wrong values
  bool redop = false;    ///< the reduction's operation stands behind the type
};

/// Reads the line that heads the rows. Without such a line both times are there, since the programs print both by
/// default.
Columns columns_of(std::string_view text) {
  Columns columns;
  for (const std::string_view line : lines_of(text)) {
    const std::vector<std::string_view> words = words_of(line);
    const auto count = [&](std::string_view word) { return std::ranges::count(words, word); };
    if (count("busbw") == 0 || count("time") == 0) continue;
    columns.in_place = count("busbw") > 1;
    columns.errors = count("error") > 0;
    columns.redop = count("redop") > 0;
  }
  return columns;
}

void check_values(std::string_view word, const Columns& columns, const std::string& file, std::size_t number) {
  const auto wrong = whole_number<double>(word);
  if (!wrong) return;  // N/A: not checked
  if (columns.errors) {
    constexpr double kLargest = 0.1;
    if (*wrong > kLargest) fail_at_line(file, number, fmt::format("values are off by {}: run the test again", word));
  } else if (*wrong != std::floor(*wrong) || word.find('.') != std::string_view::npos) {
    fail_at_line(file, number, fmt::format("{} is no number of wrong values: the log was cut, copy it whole", word));
  } else if (*wrong > 0) {
    fail_at_line(file, number, fmt::format("{} values are wrong: run the test again", word));
  }
}

/// The operation of the rows must agree with the log's name or header: it is "none" where nothing is reduced.
/// sendrecv_perf prints an operation, whatever it is.
void check_operation(std::string_view operation, std::string_view program, const std::string& file,
                     std::size_t number) {
  const auto kind = programs().at(program);
  const bool reduces = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
  if (!kind || reduces != (operation == "none")) return;
  fail_at_line(
      file, number,
      fmt::format("redop is {}, but the log is named as one of {}_perf, which {}: name the file after its test, as in "
                  "{}_perf.log",
                  operation, program, reduces ? "reduces" : "reduces nothing", reduces ? "all_gather" : "all_reduce"));
}

/// Returns a row's size and both times; nothing where the line is no row.
std::optional<TimedSize> row_of(std::string_view line, const Columns& columns, std::string_view program,
                                const std::string& file, std::size_t number) {
  constexpr std::size_t kOfOne = 4;  // time, algbw, busbw, wrong
  const std::size_t timed = columns.in_place ? 2 * kOfOne : kOfOne;
  const std::size_t least = 3 + timed;  // size, count, type
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 2) return std::nullopt;
  const auto bytes = whole_number<std::int64_t>(words[0]);
  if (!bytes || !whole_number<std::int64_t>(words[1])) return std::nullopt;
  if (words.size() < least) {
    fail_at_line(
        file, number,
        fmt::format("the row has {} columns of at least {}: the log was cut, copy it whole", words.size(), least));
  }
  // The programs before 2.13 print nothing under "redop" where nothing is reduced.
  if (columns.redop && words.size() > least && !whole_number<double>(words[3]))
    check_operation(words[3], program, file, number);
  const std::size_t first = words.size() - timed, second = words.size() - kOfOne;
  for (const std::size_t group : {first, second}) check_values(words[group + 3], columns, file, number);
  const auto out_of_place = whole_number<double>(words[first]);
  const auto in_place = whole_number<double>(words[second]);
  if (!out_of_place || !in_place) {
    fail_at_line(
        file, number,
        fmt::format("\"{}\" and \"{}\" are no times: copy the log as it was printed", words[first], words[second]));
  }
  if (*bytes > 0 && !(*out_of_place > 0 && *in_place > 0)) {
    fail_at_line(file, number,
                 fmt::format("{} bytes take {} and {} us: measure them again", *bytes, *out_of_place, *in_place));
  }
  return TimedSize{
      .bytes = *bytes, .out_of_place = Seconds{*out_of_place * kMicro}, .in_place = Seconds{*in_place * kMicro}};
}

/// Counts ranks by host from the lines "#  Rank  0 Group  0 Pid  1 on  host device ...".
class Hosts {
 public:
  void read(std::string_view line) {
    const std::vector<std::string_view> words = words_of(line);
    const auto rank = std::ranges::find(words, "Rank");
    const auto on = std::ranges::find(words, "on");
    if (rank == words.end() || on == words.end() || rank + 1 >= on || on + 1 == words.end()) return;
    const auto number = whole_number<int>(*(rank + 1));
    if (number && ranks_.insert(*number).second) ++by_host_[std::string(*(on + 1))];
  }

  GroupPlacement placement(const std::string& file) const {
    if (ranks_.empty()) fail_at_line(file, 0, "no \"# Rank ... on HOST\" line names the ranks: keep the log's header");
    if (ranks_.size() == 1)
      fail_at_line(file, 0, "the log is of one rank, which exchanges nothing: run it on two or more");
    const int per_node = by_host_.begin()->second;
    for (const auto& [host, count] : by_host_) {
      if (count != per_node)
        fail_at_line(file, 0,
                     fmt::format("{} has {} ranks and {} has {}: run with the same number on each node",
                                 by_host_.begin()->first, per_node, host, count));
    }
    return {.ranks = static_cast<int>(ranks_.size()),
            .nodes = static_cast<int>(by_host_.size()),
            .ranks_per_node = per_node};
  }

 private:
  std::set<int> ranks_;
  std::map<std::string, int> by_host_;
};

Seconds median(std::vector<Seconds> times) {
  std::ranges::sort(times);
  const std::size_t middle = times.size() / 2;
  return times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
}

std::vector<TimedSize> by_size(const std::vector<TimedSize>& rows) {
  std::map<std::int64_t, std::pair<std::vector<Seconds>, std::vector<Seconds>>> times;
  for (const TimedSize& row : rows) {
    if (row.bytes == 0) continue;
    times[row.bytes].first.push_back(row.out_of_place);
    times[row.bytes].second.push_back(row.in_place);
  }
  std::vector<TimedSize> result;
  for (const auto& [bytes, both] : times)
    result.push_back({.bytes = bytes, .out_of_place = median(both.first), .in_place = median(both.second)});
  return result;
}

}  // namespace

bool is_nccl_tests_log(std::string_view text) {
  return text.find("algbw") != std::string_view::npos && text.find("busbw") != std::string_view::npos;
}

NcclTestsLog parse_nccl_tests_log(std::string_view text, const std::string& file) {
  const std::size_t slash = file.rfind('/');
  std::optional<std::string_view> program = program_in(text);
  if (!program) program = program_in(file.substr(slash == std::string::npos ? 0 : slash + 1));
  if (!program) {
    fail_at_line(
        file, 0,
        "neither the log nor its name says which test it is: name the file after it, as in all_reduce_perf.log");
  }
  if (!programs().contains(*program)) {
    fail_at_line(file, 0,
                 fmt::format("the log is one of {}_perf, which is not priced: give logs of all_reduce, all_gather, "
                             "reduce_scatter, alltoall, broadcast or sendrecv",
                             *program));
  }
  NcclTestsLog log{.file = file, .kind = programs().at(*program)};
  const Columns columns = columns_of(text);
  Hosts hosts;
  std::vector<TimedSize> rows;
  bool whole = false;
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t number = 0; number < lines.size(); ++number) {
    const std::string_view line = without_prefix(lines[number]);
    if (line.find("NCCL INFO") != std::string_view::npos) continue;
    if (line.find("Avg bus bandwidth") != std::string_view::npos) whole = true;
    hosts.read(line);
    if (const auto row = row_of(line, columns, *program, file, number)) rows.push_back(*row);
  }
  if (!whole) {
    fail_at_line(file, lines.empty() ? 0 : lines.size() - 1,
                 "the log ends without its summary (\"# Avg bus bandwidth\"): it was cut, copy it whole");
  }
  log.group = hosts.placement(file);
  log.sizes = by_size(rows);
  if (log.sizes.empty()) fail_at_line(file, lines.size() - 1, "the log has no row with bytes: measure some sizes");
  return log;
}

}}  // namespace plumb::planner
