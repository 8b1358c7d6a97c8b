#include "planner/score/score.h"

#include <nlohmann/json.hpp>

#include "tools/console.h"
#include "tools/score_input.h"
#include "tools/score_report.h"
#include "tools/verbs/verbs.h"

namespace plumb {

int score_verb(const ScoreArguments& arguments) {
  const ScoreInput input = score_input(arguments.files, arguments.set);
  std::vector<SourceScore> scores;
  for (const PublishedRows& published : input.files) scores.push_back(score_rows(input.library, published));
  print_answer(arguments.json ? score_json(scores).dump(2) + "\n" : score_text(scores, arguments.worst));
  return kDone;
}

}  // namespace plumb
