#include "tools/command_line/command_line.h"
#include "tools/io/command_text.h"
#include "tools/io/console.h"
#include "tools/machine/large_pages.h"

int main(int argc, char** argv) {
  plumb::open_standard_streams();
  plumb::remember_command(argc, argv);
  plumb::use_large_pages();
  return plumb::run_command_line(argc, argv);
}
