# SPDX-License-Identifier: MIT
# The compiler flags of all our targets.
add_library(tenfold_flags INTERFACE)
target_compile_options(tenfold_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith
  -Wcast-qual -Wformat=2 -Wundef -Wwrite-strings)
# These warnings of gcc are guesses: some messages are meant to be cut short, and gcc does not know that tnf_fail()
# never returns TNF_OK. clang-tidy's analyzer finds variables that are really uninitialised.
target_compile_options(tenfold_flags INTERFACE
  $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation;-Wno-maybe-uninitialized>)
# Each function has a section of its own, so that a program linked with --gc-sections only contains the functions that
# it calls.
target_compile_options(tenfold_flags INTERFACE -ffunction-sections -fdata-sections)
if(TENFOLD_WERROR)
  target_compile_options(tenfold_flags INTERFACE -Werror)
endif()
target_compile_definitions(tenfold_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
# All machines must compute the same numbers, so floats are computed as floats. The x87 keeps more bits and rounds when
# it stores a value, so 32-bit x86 uses SSE2, which all its processors have had since 2003. For s390x, gcc computes
# floats as doubles in C11, because of an old <math.h>.
include(CheckSourceCompiles)
check_source_compiles(C "#if !defined(__i386__) || defined(__SSE2_MATH__)
#error not needed
#endif
int main(void) { return 0; }" TENFOLD_X87)
check_source_compiles(C "#include <float.h>
#if !defined(__s390__) || FLT_EVAL_METHOD == 0
#error not needed
#endif
int main(void) { return 0; }" TENFOLD_FLOATS_AS_DOUBLES)
if(TENFOLD_X87)
  target_compile_options(tenfold_flags INTERFACE -msse2 -mfpmath=sse)
elseif(TENFOLD_FLOATS_AS_DOUBLES)
  target_compile_options(tenfold_flags INTERFACE -fexcess-precision=fast)
endif()
if(TENFOLD_SANITIZE)
  target_compile_options(tenfold_flags INTERFACE
    -fsanitize=${TENFOLD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tenfold_flags INTERFACE -fsanitize=${TENFOLD_SANITIZE})
endif()
