#pragma once
// The rows of `plumb whatif` as a table, as JSON, as a chart, and in sentences.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/search/break_even.h"
#include "planner/search/whatif.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {

/// Returns a line for each row; numbers have their unit, or none in a CSV (`bare`), which also says why a row is
/// infeasible.
TextTable whatif_table(const std::vector<WhatIfRow>& rows, bool bare);

nlohmann::ordered_json whatif_json(const std::vector<WhatIfRow>& rows);

/// Returns a sentence for each reason for which rows are infeasible, with the values of the first of them.
std::vector<std::string> infeasible_rows(const std::vector<WhatIfRow>& rows);

/// Returns the values of a row's keys, as in "pp=4, mbs=1".
std::string values_text(const WhatIfRow& row);

/// The rows that differ in the last key alone.
struct SweepLine {
  std::string name;                    ///< the values of the other keys; empty: there are none
  std::vector<std::string> x_values;   ///< of the last key
  std::vector<const WhatIfRow*> rows;  ///< [x_values]
};

/// Returns a line for each combination of the other keys. The rows must outlive them.
std::vector<SweepLine> sweep_lines(const std::vector<WhatIfRow>& rows);

/// Returns the chart of the step time over the last key, with a line for each combination of the others.
std::string whatif_svg(const std::vector<WhatIfRow>& rows, const std::string& title);

/// Returns a sentence for each key that does not bind: its values have all the same answer, or larger ones than some
/// change the step by less than a thousandth.
std::vector<std::string> idle_keys(const std::vector<WhatIfRow>& rows);

/// Returns a sentence for each value at which the two values of `two` change places, or one that says that they do not.
std::string break_even_text(const BreakEven& found, const Variation& two, const FigureRange& range);
nlohmann::ordered_json break_even_json(const BreakEven& found, const Variation& two, const FigureRange& range);

}}  // namespace plumb::tools
