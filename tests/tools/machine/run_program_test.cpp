#include "tools/machine/run_program.h"

#include <doctest/doctest.h>

#include <string>

namespace plumb::test {

TEST_CASE("a program's answer is all that it writes, and there is none where it fails, is missing or hangs") {
  CHECK(run_program({"sh", "-c", "echo one; echo lost >&2; echo two"}, Seconds{60}).text == "one\ntwo\n");
  CHECK(run_program({"sh", "-c", "head -c 200000 /dev/zero"}, Seconds{60}).text.size() == 200000);
  const ProgramAnswer failed = run_program({"sh", "-c", "echo half; exit 9"}, Seconds{60});
  CHECK(failed.why == "sh ended with status 9");
  CHECK(failed.text.empty());
  CHECK(run_program({"sh", "-c", "kill -6 $$"}, Seconds{60}).why == "sh ended with signal 6");
  CHECK(run_program({"plumb-no-such-program"}, Seconds{60}).why == "there is no plumb-no-such-program here");
  CHECK(run_program({"sleep", "600"}, Seconds{0.05}).why == "sleep did not answer within 0.05 s");
  CHECK(run_program({"sh", "-c", "exec >&-; exec sleep 600"}, Seconds{0.2}).why == "sh did not answer within 0.2 s");
}

}  // namespace plumb::test
