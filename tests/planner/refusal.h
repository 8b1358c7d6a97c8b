#pragma once
// A bad input must be refused by its own exception, with the place and the remedy in one sentence.

#include <string>

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {

/// Checks that `act` throws an Error whose text has both parts.
template <class Error, class Act>
void check_refused(Act act, const std::string& place, const std::string& part) {
  try {
    act();
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    const std::string text = error.what();
    CAPTURE(text);
    CHECK(text.find(place) != std::string::npos);
    CHECK(text.find(part) != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
  }
}

/// Returns the error text with which `act` is refused; empty if it is not.
template <class Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace plumb::test
