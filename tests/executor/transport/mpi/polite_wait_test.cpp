#include "executor/transport/mpi/polite_wait.h"

#include <doctest/doctest.h>

#include "executor/transport/emulated/sleeper.h"
#include "executor/transport/transport.h"

namespace plumb::test {

TEST_CASE("a polite wait ends when what it waits for has happened") {
  int asked = 0;
  wait_politely({.what = "rank 1"}, [&] { return ++asked == 3; });
  CHECK(asked == 3);
}

TEST_CASE("it sleeps between its questions: of a tenth of a second it asks a few hundred times, not millions") {
  const Sleeper sleeper;
  int asked = 0;
  wait_politely({.what = "rank 1", .eager = Seconds{0}}, [&] {
    ++asked;
    return sleeper.now() > to_sim_time(Seconds{0.1});
  });
  CHECK(asked <= 600);  // 100 ms / 200 us, and the shorter pauses before
}

TEST_CASE("when its patience is over it names who waited for whom, rank 0 first") {
  const auto never = [] { return false; };
  const Sleeper sleeper;
  CHECK_THROWS_WITH_AS(wait_politely({.what = "rank 1", .patience = Seconds{0.05}}, never),
                       "rank 0, outside its actions, waited for rank 1, and for 0.05 s nothing came", RunError);
  const SimTime first = sleeper.now();
  CHECK_THROWS_AS(wait_politely({.rank = 1, .what = "rank 0", .patience = Seconds{0.05}}, never), RunError);
  CHECK(sleeper.now() - first >= to_sim_time(Seconds{0.5}));
}

}  // namespace plumb::test
