# SPDX-License-Identifier: MIT
# What every target of ours is compiled with.
add_library(tenfold_flags INTERFACE)
target_compile_options(tenfold_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith
  -Wcast-qual -Wformat=2 -Wundef -Wwrite-strings)
# gcc guesses: a message that is cut short is meant to be, and it cannot know that tnf_fail() never
# returns TNF_OK. What is really uninitialised, clang-tidy's analyzer finds.
target_compile_options(tenfold_flags INTERFACE
  $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation;-Wno-maybe-uninitialized>)
# A section each, so that a program linked with --gc-sections takes only what it calls.
target_compile_options(tenfold_flags INTERFACE -ffunction-sections -fdata-sections)
if(TENFOLD_WERROR)
  target_compile_options(tenfold_flags INTERFACE -Werror)
endif()
target_compile_definitions(tenfold_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
# The same numbers on every machine: floats are computed as floats. The x87 keeps more bits and rounds
# when it spills, so 32-bit x86 takes SSE2, which its processors have had since 2003; for s390x, gcc
# computes floats as doubles in C11, for the sake of an old <math.h>.
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
