# SPDX-License-Identifier: MIT
# Builds for another machine, and runs the results with qemu. tools/machines sets the rest.
#
#   TENFOLD_TRIPLET   the compilers' name of the machine: s390x-linux-gnu
#   TENFOLD_CPU       CMake's and qemu's name of the machine: s390x
#   TENFOLD_ROOT      a directory with libraries from packages of that machine
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TENFOLD_TRIPLET TENFOLD_CPU TENFOLD_ROOT TENFOLD_MULTIARCH)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${TENFOLD_CPU})
set(CMAKE_C_COMPILER ${TENFOLD_TRIPLET}-gcc)
set(CMAKE_CXX_COMPILER "")
set(CMAKE_LIBRARY_ARCHITECTURE ${TENFOLD_MULTIARCH})
set(CMAKE_C_LIBRARY_ARCHITECTURE ${TENFOLD_MULTIARCH})
set(CMAKE_FIND_ROOT_PATH ${TENFOLD_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_C_FLAGS_INIT
  "-isystem ${TENFOLD_ROOT}/usr/include -isystem ${TENFOLD_ROOT}/usr/include/${TENFOLD_MULTIARCH}")
set(libraries ${TENFOLD_ROOT}/usr/lib/${TENFOLD_MULTIARCH} ${TENFOLD_ROOT}/lib/${TENFOLD_MULTIARCH})
list(JOIN libraries ":" together)
list(TRANSFORM libraries PREPEND "-L")
list(JOIN libraries " " options)
foreach(kind EXE SHARED)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "${options} -Wl,-rpath-link,${together} -Wl,-rpath,${together}")
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${TENFOLD_ROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${TENFOLD_ROOT}/usr/lib/${TENFOLD_MULTIARCH}/pkgconfig:${TENFOLD_ROOT}/usr/share/pkgconfig)
# An x86-64 kernel usually runs programs for i386 itself; some versions of qemu hang when a program starts threads.
set(loader /usr/${TENFOLD_TRIPLET}/lib/ld-linux.so.2)
if(TENFOLD_CPU STREQUAL "i386" AND EXISTS ${loader})
  execute_process(COMMAND ${loader} --version RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${loader};--library-path;/usr/${TENFOLD_TRIPLET}/lib:${together})
    return()
  endif()
endif()
find_program(TENFOLD_QEMU NAMES qemu-${TENFOLD_CPU}-static qemu-${TENFOLD_CPU} REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR ${TENFOLD_QEMU};-L;/usr/${TENFOLD_TRIPLET})
