#pragma once

#include "schedules/time.h"

namespace plumb::test {

inline SimTime ms(double count) {
  return to_sim_time(Seconds{count * 1e-3});
}

}  // namespace plumb::test
