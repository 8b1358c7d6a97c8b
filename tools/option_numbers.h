#pragma once
// What every option that takes a number must be given.

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace plumb { inline namespace tools {

/// Checks of one option: a number above 0; of 0 or more.
CLI::Validator above_zero();
CLI::Validator zero_or_more();

/// Adds to every option of `app` and its verbs that takes a number the check that it is one: finite, and whole where
/// whole numbers are counted. To be called when all options are there.
void require_numbers(CLI::App& app);

}}  // namespace plumb::tools
