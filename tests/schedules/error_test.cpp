#include "schedules/error.h"

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("a user's mistake speaks for itself, and no other exception hands on a library's words") {
  CHECK(sentence_of(SpecError("m.json: heads: give 1 or more")) == "m.json: heads: give 1 or more");
  CHECK(sentence_of(std::bad_alloc()).find("not enough memory") != std::string::npos);
  CHECK(sentence_of(std::length_error("vector::_M_default_append")).find("not enough memory") != std::string::npos);
  CHECK(sentence_of(std::out_of_range("stod")) ==
        "this is a fault of Plumb's own (std::out_of_range), not of the question: report it with the command and its "
        "files");
  const std::string threads =
      sentence_of(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "thread"));
  CHECK(threads.starts_with("this machine refuses what that takes ("));
  CHECK(threads.find("thread") == std::string::npos);
  const std::string file = sentence_of(
      std::filesystem::filesystem_error("cannot iterate", "a/b", std::make_error_code(std::errc::permission_denied)));
  CHECK(file.starts_with("a/b: this cannot be reached (Permission denied)"));
}

}  // namespace plumb::test
