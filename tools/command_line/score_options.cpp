#include "tools/command_line/add_verbs.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "tools/command_line/option_groups.h"
#include "tools/command_line/option_values.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

void add_score(CLI::App& app, Chosen& chosen) {
  const auto score = std::make_shared<ScoreArguments>();
  CLI::App* verb = add_verb(app, chosen, "score", "predict published runs and say how far off each prediction is",
                            score, score_verb);
  verb->add_option("files", score->files,
                   "files of published rows; one without rows gives sizes by name to the others' dims_key")
      ->required();
  verb->add_option("--set", score->set,
                   "a figure in the place of the presets', as in cluster.device.gemm_efficiency=0.8 or "
                   "stack.kernel_launch_us=20")
      ->take_all();
  verb->add_option("--fit", score->fit,
                   "fit a figure between two values on half of the rows, and judge it on the "
                   "others, as in cluster.device.gemm_efficiency=0.6,0.9; five at most")
      ->take_all();
  verb->add_option(
          "--holdout", score->holdout,
          "which rows the fit does not see: other models, other layouts, half, or each family of models in its turn; "
          "without --fit, whose rows judge the intervals in their turn: each-source, each-framework, each-device")
      ->check(
          CLI::IsMember({"model", "layout", "half", "each-family", "each-source", "each-framework", "each-device"}));
  CLI::Option* general = verb->add_flag("--general-rules", score->general_rules,
                                        "read every row by the general rules alone, as if its source were unknown");
  verb->add_flag("--assume-default", score->assume_default,
                 "read every row by no rule: what it prints is typed, its framework is the one that is assumed where "
                 "none is named, and what it leaves open is the fastest that fits")
      ->excludes(general);
  verb->add_option("--error-bars", score->error_bars,
                   "with --holdout each-source: write the intervals that are fitted on all rows");
  verb->add_option("--only", score->only,
                   "rows whose FIELD, as its source's mapping reads it, matches: FIELD=EXPRESSION")
      ->type_name("FIELD=EXPRESSION");
  verb->add_option("--table", score->tables, "measured products of the machines, which bend the model of theirs")
      ->take_all();
  verb->add_option(
          "--mapping", score->mappings,
          "how rows of a source are to be read: its framework, machines, and what it does not print (tools/specs/"
          "score has those that the tool carries; a source that none names is read by general rules)")
      ->take_all();
  verb->add_option("--runs", score->runs, "answers of `plumb validate --json`, which get a table in the report")
      ->take_all();
  verb->add_option("-o,--output", score->output, "write a report in Markdown");
  verb->add_option("--svg", score->svg, "draw the errors by source, and those of sources left out apart");
  add_html(verb, score->html);
  verb->add_option("--worst", score->worst, "list so many rows of each source, those that are furthest off first")
      ->transform(count_of<int>(0));
  add_json(verb, score->json);
}

}}  // namespace plumb::tools
