#pragma once
// Each function adds a family of verbs with their options to `app`, and has a file of its own. The verb that the
// command line names is left in `chosen`.

#include "tools/command_line/option_groups.h"

namespace plumb { inline namespace tools {

void add_plan(CLI::App& app, Chosen& chosen);
void add_budget(CLI::App& app, Chosen& chosen);
void add_simulate(CLI::App& app, Chosen& chosen);
void add_plan_readers(CLI::App& app, Chosen& chosen);  ///< memory, whatif
void add_exchange(CLI::App& app, Chosen& chosen);      ///< export, compare, import
void add_schedule(CLI::App& app, Chosen& chosen);
void add_hardware(CLI::App& app, Chosen& chosen);  ///< run, validate
void add_calibrate(CLI::App& app, Chosen& chosen);
void add_partition(CLI::App& app, Chosen& chosen);
void add_score(CLI::App& app, Chosen& chosen);
void add_about(CLI::App& app, Chosen& chosen);  ///< help, completion, man

}}  // namespace plumb::tools
