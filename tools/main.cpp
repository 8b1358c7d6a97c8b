#include "tools/command_line/command_line.h"
#include "tools/io/console.h"
#include "tools/machine/blas_core.h"

int main(int argc, char** argv) {
  plumb::open_standard_streams();
  plumb::restart_with_better_blas_core(argv);
  return plumb::run_command_line(argc, argv);
}
