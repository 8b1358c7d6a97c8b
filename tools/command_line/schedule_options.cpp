#include "tools/command_line/add_verbs.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "schedules/search/placements.h"
#include "tools/command_line/option_groups.h"
#include "tools/command_line/option_values.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

namespace {

void add_max_activations(CLI::App* verb, ScheduleVerbArguments& arguments) {
  verb->add_option("--max-activations", arguments.max_activations,
                   "chunks that a rank may hold at once: one number, or one a rank as in 4:3:2:1")
      ->delimiter(':')
      ->transform(count_of<int>(1));
}

void add_search(CLI::App* verb, ScheduleVerbArguments& arguments) {
  SearchArguments& search = arguments.search;
  add_max_activations(verb, arguments);
  verb->add_option("--released-at-i", search.released_at_input_grad_ratio,
                   "share of an activation that the input gradient frees already (default: 0)")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--objective", search.objective, "what is to be short: span (default) or makespan")
      ->check(CLI::IsMember({"span", "makespan"}));
  verb->add_option("--placement", search.placement, "where stages lie, without a schedule (default: any)")
      ->check(CLI::IsMember(placement_names()));
  verb->add_option("--effort", search.timed_actions,
                   "actions to time over all orders that are tried (default: 50 million)")
      ->transform(count_of<std::int64_t>(1));
  verb->add_option("--time-limit", search.limit_seconds, "seconds after which the best so far is given")
      ->check(above_zero());
  verb->add_option("--solver-nodes", search.solver_nodes,
                   "nodes that CBC or HiGHS may look at where a small question is left open (default: not asked)")
      ->transform(count_of<std::int64_t>(1));
  CLI::Option* certificate =
      verb->add_option("--certificate", arguments.certificate, "file to write the certificate of its bound to (.json)");
  CLI::Option* curve =
      verb->add_flag("--curve", search.curve,
                     "the best time within more and more memory, what each schedule loses to it, and what both lose "
                     "where durations vary by 5 % or a rank is 10 % slow");
  curve->excludes(certificate)->excludes(verb->get_option("--output"));
  verb->add_option("--svg", search.svg, "draw the curve to an .svg file")->needs(curve);
}

}  // namespace

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
      const bool searches = v.run == schedule_search_verb;
      verb->add_option("schedule", arguments->schedule.name,
                       searches
                           ? "a name (`plumb schedule list`), a file (.txt, .csv, .json) or a plan, whose placement "
                             "and memory are kept (default: any order)"
                           : "a name (`plumb schedule list`) or a file (.txt, .csv, .json)")
          ->required(!searches);
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
      add_search(verb, *arguments);
      add_html(verb, arguments->html);
    }
    if (v.run == schedule_check_verb) {
      add_sends(verb, arguments->sends);
      add_max_activations(verb, *arguments);
      verb->add_option("--certificate", arguments->certificate, "a certificate of `schedule search` to verify as well");
    }
    if (!v.writes) add_json(verb, arguments->json);
  }
}

}}  // namespace plumb::tools
