#include "tools/command_line/add_verbs.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "tools/command_line/option_groups.h"
#include "tools/command_line/option_values.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

void add_schedule(CLI::App& app, Chosen& chosen) {
  CLI::App* group = app.add_subcommand("schedule", "list, make, search, show, check or convert schedules");
  group->require_subcommand(1);
  struct Verb {
    const char* name;
    const char* what;
    int (*run)(const ScheduleVerbArguments&);
    bool takes_schedule;
    bool writes;
  };
  for (const Verb& v :
       {Verb{"list", "every schedule by name", schedule_list_verb, false, false},
        Verb{"make", "make a schedule", schedule_make_verb, true, true},
        Verb{"search", "make a schedule for given costs, and say how far it can be from the best", schedule_search_verb,
             true, false},
        Verb{"show", "draw a schedule, or its grid with the faulty cells marked", schedule_show_verb, true, false},
        Verb{"check", "name every fault of a schedule", schedule_check_verb, true, false},
        Verb{"convert", "write a schedule in another form", schedule_convert_verb, true, true}}) {
    const auto arguments = std::make_shared<ScheduleVerbArguments>();
    CLI::App* verb = add_verb(*group, chosen, v.name, v.what, arguments, v.run);
    if (v.takes_schedule) {
      verb->add_option("schedule", arguments->schedule.name,
                       "a name (`plumb schedule list`) or a file (.txt, .csv, .json)")
          ->required();
      add_order(verb, arguments->schedule);
      if (v.run != schedule_search_verb) add_lowering(verb, arguments->schedule);
      if (v.run != schedule_search_verb && v.run != schedule_show_verb) add_receives(verb, arguments->schedule);
    }
    if (v.writes) {
      verb->add_option("-o,--output", arguments->output,
                       "file to write: .txt, .json, or .csv for PyTorch's form (default: print as text)");
      verb->add_flag("--lowered", arguments->lowered, "with messages and optimizer steps");
    }
    if (v.run == schedule_show_verb) {
      verb->add_option("--costs", arguments->costs, "what it is drawn for, as in f=1,b=2,c=0.1 (default: f=i=w=1)");
      verb->add_option("-o,--output", arguments->output, "draw to an .svg file (default: in the terminal)");
    }
    if (v.run == schedule_search_verb) {
      verb->add_option("--costs", arguments->costs, "what it is made for, as in f=1,i=1.5,w=0.8,c=0.1");
      verb->add_option("-o,--output", arguments->output, "file to write: .txt, .json or .csv (default: print as text)");
    }
    if (v.run == schedule_check_verb) {
      add_sends(verb, arguments->sends);
      verb->add_option("--max-activations", arguments->max_activations,
                       "chunks that a rank may hold at once: one number, or one a rank as in 4:3:2:1")
          ->delimiter(':')
          ->transform(count_of<int>(1));
    }
    if (!v.takes_schedule || v.run == schedule_check_verb || v.run == schedule_search_verb)
      add_json(verb, arguments->json);
  }
}

}}  // namespace plumb::tools
