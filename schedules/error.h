#pragma once
// The exceptions that Plumb throws. An InputError is the user's to mend: its text is one sentence with the place and
// the remedy, and the command line prints it and exits 1. A question without a feasible answer gives a value, never an
// exception. A bug of ours is an assert.

#include <exception>
#include <stdexcept>
#include <string>

namespace plumb { inline namespace schedules {

/// The input or the world is at fault.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A model, cluster, training, plan or cost specification is wrong.
class SpecError : public InputError {
 public:
  using InputError::InputError;
};

/// A schedule breaks a rule of the IR, or cannot be made with the numbers given.
class ScheduleError : public InputError {
 public:
  using InputError::InputError;
};

/// Returns the one sentence that a user is told of any exception. For an InputError it is the error's own text. For an
/// error of the system or the memory it says what to do. For any other it says that the fault is Plumb's own. No
/// library's wording is handed on.
std::string sentence_of(const std::exception& error);

}}  // namespace plumb::schedules
