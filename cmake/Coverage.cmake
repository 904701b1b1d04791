# SPDX-License-Identifier: MIT
# Counters of gcov in the library and the command, for `./dev coverage`. The tests themselves are not counted.
add_library(tenfold_counted INTERFACE)
if(TENFOLD_COVERAGE)
  # Several threads update the same counter, so updates are atomic.
  target_compile_options(tenfold_counted INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(tenfold_flags INTERFACE --coverage)
  # Programs are linked with this, so that their child processes are counted, too.
  add_library(tenfold_counters OBJECT tests/support/counters.c)
  target_compile_definitions(tenfold_counters PRIVATE _GNU_SOURCE)
  target_link_libraries(tenfold_counters PRIVATE tenfold_flags)
  set(TENFOLD_COUNTERS tenfold_counters)
endif()
