# SPDX-License-Identifier: MIT
# tenfold_test(NAME [COST n] COMMAND ...): a ctest with our settings. COST is about the number of seconds that the test
# takes; tests with a higher cost start earlier (after the first run, ctest uses the measured times). No test measures
# time by the clock, since a machine may be busy; the timeout of an hour only ends tests that hang.
# UndefinedBehaviorSanitizer traps, and AddressSanitizer prints the place: the messages of the former would double the
# time that each of many thousand processes takes.
include_guard()
function(tenfold_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "COST" "COMMAND")
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT 3600)
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
  set_property(TEST ${name} PROPERTY ENVIRONMENT
    "TENFOLD=${PROJECT_BINARY_DIR}/tenfold"
    "ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:strict_string_checks=1:handle_sigill=1:quarantine_size_mb=32:malloc_context_size=10"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1"
    "NO_COLOR=1" "LC_ALL=C.UTF-8"
    "OPENBLAS_NUM_THREADS=1") # for NumPy, whose threads would keep cores busy
endfunction()
