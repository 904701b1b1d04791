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
if(TENFOLD_SANITIZE)
  target_compile_options(tenfold_flags INTERFACE
    -fsanitize=${TENFOLD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tenfold_flags INTERFACE -fsanitize=${TENFOLD_SANITIZE})
endif()
