#pragma once
// The settings of a run as its trainer prints them at the top of its log.
//
//   LoggedSettingsReader reader(targets);
//   for each line of the log: reader.take(line);
//   if (const auto found = reader.finish()) import_settings(found->target, found->settings, ...);

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/exchange/facts/facts.h"
#include "planner/exchange/forms/settings.h"
#include "planner/exchange/target.h"

namespace plumb { inline namespace planner {

struct LoggedSettings {
  Target target;
  Settings settings;  ///< those that the target's table knows: a log prints every other setting too
  Facts facts;        ///< of the run, which no setting says
};

class LoggedSettingsReader {
 public:
  /// Looks for the settings of those targets that say how they print them (LoggedForm).
  explicit LoggedSettingsReader(std::vector<Target> targets);

  /// Takes the next line, without its end.
  void take(std::string_view line);

  /// Returns the settings that the log printed first; nothing if it printed none.
  std::optional<LoggedSettings> finish() const;

 private:
  void take_argument(std::string_view line);
  void take_json(std::string_view line);

  std::vector<Target> targets_;
  const Target* open_ = nullptr;                                ///< whose settings the next lines have
  std::string json_;                                            ///< that has not ended
  std::vector<std::pair<std::string, std::string>> arguments_;  ///< (name, value)
  std::optional<LoggedSettings> found_;
};

}}  // namespace plumb::planner
