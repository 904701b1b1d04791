# SPDX-License-Identifier: MIT
# For `pip install .` and wheels. Libraries that this machine does not have are left out and listed at the end; they are
# never an error. Libraries that it has are linked statically into the extension and the command, so that a wheel needs
# only libc.
find_package(PkgConfig QUIET)

set(TENFOLD_LAPACK OFF CACHE BOOL "" FORCE)

set(TENFOLD_LEFT_OUT)
foreach(part "XXHASH libxxhash" "ZSTD libzstd" "ZLIB zlib")
  separate_arguments(part)
  list(GET part 0 name)
  list(GET part 1 module)
  if(PkgConfig_FOUND)
    pkg_check_modules(${name} QUIET ${module})
  endif()
  if(NOT ${name}_FOUND)
    set(TENFOLD_${name} OFF CACHE BOOL "" FORCE)
  endif()
  if(NOT TENFOLD_${name} AND DEFINED CACHE{TENFOLD_${name}})
    list(APPEND TENFOLD_LEFT_OUT ${module})
  endif()
endforeach()
if(NOT TENFOLD_XXHASH AND DEFINED CACHE{TENFOLD_XXHASH} AND
   (NOT DEFINED TENFOLD_FORMATS OR "all" IN_LIST TENFOLD_FORMATS))
  # Two formats need it.
  file(STRINGS ${PROJECT_SOURCE_DIR}/src/formats/list.h formats REGEX "^X\\(")
  list(TRANSFORM formats REPLACE "^X\\(([a-z0-9_]+)\\).*" "\\1")
  list(REMOVE_ITEM formats ztensor2 vs)
  list(TRANSFORM formats REPLACE "_" "-")
  set(TENFOLD_FORMATS "${formats}" CACHE STRING "" FORCE)
  list(APPEND TENFOLD_LEFT_OUT "(and with libxxhash the formats ztensor2 and vs)")
endif()

# Called after cmake/Parts.cmake: uses static libraries instead of shared ones, if they exist.
function(tenfold_take_archives)
  set(libraries)
  foreach(library ${TENFOLD_LIBRARIES})
    if(library MATCHES "^-l(xxhash|zstd|z)$")
      set(name ${CMAKE_MATCH_1})
      find_library(TENFOLD_${name}_ARCHIVE lib${name}.a HINTS ${CMAKE_LIBRARY_PATH})
      if(TENFOLD_${name}_ARCHIVE)
        set(library ${TENFOLD_${name}_ARCHIVE})
      endif()
    endif()
    list(APPEND libraries ${library})
  endforeach()
  set(TENFOLD_LIBRARIES ${libraries} PARENT_SCOPE)
  # A compiler for another system has headers of its own, which this machine's headers must not replace.
  list(REMOVE_ITEM TENFOLD_INCLUDES /usr/include)
  set(TENFOLD_INCLUDES ${TENFOLD_INCLUDES} PARENT_SCOPE)
endfunction()

function(tenfold_tell_left_out)
  if(TENFOLD_LEFT_OUT)
    list(JOIN TENFOLD_LEFT_OUT ", " all)
    set(text "tenfold is built without ${all}: files that need them open, but what is compressed or "
      "digested by them cannot be read or checked. With the libraries' headers installed, or by "
      "tools/make-codecs, they are built in.")
    list(JOIN text "" text)
    message(STATUS "${text}")
    # Shown again as the last line of the build.
    install(CODE "message(STATUS [==[${text}]==])" COMPONENT python)
  endif()
endfunction()
