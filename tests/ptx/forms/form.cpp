#include "tests/ptx/forms/form.h"

namespace plumb::test::ptx {

const FormTable& all_forms() {
  static const FormTable table = [] {
    FormTable made;
    add_integer_forms(made);
    add_float_forms(made);
    add_comparison_forms(made);
    add_conversion_forms(made);
    add_move_forms(made);
    add_memory_forms(made);
    add_async_copy_forms(made);
    add_matrix_forms(made);
    add_warp_forms(made);
    return made;
  }();
  return table;
}

}  // namespace plumb::test::ptx
