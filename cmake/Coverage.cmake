# SPDX-License-Identifier: MIT
# Counters of gcov in the library and in the command, for `./dev coverage`. The tests are not counted.
add_library(tenfold_counted INTERFACE)
if(TENFOLD_COVERAGE)
  # Threads count into one place, so atomically.
  target_compile_options(tenfold_counted INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(tenfold_flags INTERFACE --coverage)
  # What a program is linked with so that its children count, too.
  add_library(tenfold_counters OBJECT tests/support/counters.c)
  target_compile_definitions(tenfold_counters PRIVATE _GNU_SOURCE)
  target_link_libraries(tenfold_counters PRIVATE tenfold_flags)
  set(TENFOLD_COUNTERS tenfold_counters)
endif()
