# SPDX-License-Identifier: MIT
# tenfold_test(NAME [COST n] COMMAND ...): a ctest with our settings. What costs more (about as many
# seconds, the first time; then ctest knows) starts earlier. Nothing is measured by the clock, since
# a machine may be busy: the hour is only there so that what hangs ends at all. UndefinedBehavior-
# Sanitizer traps, and AddressSanitizer tells where: its own words would make each process that is
# started take twice as long, and there are many thousands.
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
    "OPENBLAS_NUM_THREADS=1") # NumPy's: its threads spin while others have work
endfunction()
