# SPDX-License-Identifier: MIT
# The parts that are built: formats by name, codecs by the libraries that they need. docs/embedding.md describes the
# switches for users.
set(TENFOLD_FORMATS all CACHE STRING "Formats to build: names or families with ; between, or all")
option(TENFOLD_ZSTD "Read and write zstd, by libzstd" ON)
option(TENFOLD_SNAPPY "Read and write snappy" ON)
option(TENFOLD_ZLIB "Read and write gzip, by zlib" ON)
option(TENFOLD_XXHASH "Digests xxh3-64 and xxh3-128, by libxxhash; ztensor2 and vs need them" ON)
option(TENFOLD_WRITE "Write files; without it every format is one that can only be read" ON)

# ---------------------------------------------------------------------- formats

# src/formats/list.h names the descriptors of formats. The source that defines a descriptor also has the format's name
# and family; a format is built from that source, or from all sources of its directory. So no list is necessary here.
set(formats_dir ${PROJECT_SOURCE_DIR}/src/formats)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${formats_dir}/list.h)
file(STRINGS ${formats_dir}/list.h lines REGEX "^X\\(")
file(GLOB format_sources CONFIGURE_DEPENDS ${formats_dir}/*.c ${formats_dir}/*/*.c)
foreach(source ${format_sources})
  file(READ ${source} text)
  # One at a time, because a source may have several.
  while(text MATCHES "const tnf_format tnf_format_([a-z0-9_]+) = {[ \n]*\\.name = \"([^\"]+)\",")
    set(id ${CMAKE_MATCH_1})
    set(name_of_${id} ${CMAKE_MATCH_2})
    set(source_of_${id} ${source})
    string(FIND "${text}" "tnf_format_${id} = {" at)
    string(SUBSTRING "${text}" ${at} -1 text)
    string(REGEX MATCH "\\.family = \"([^\"]+)\"" found "${text}")
    set(family_of_${id} ${CMAKE_MATCH_1})
    string(REGEX MATCH "\\.(folder_marks|choice) =" folders_of_${id} "${text}")
    string(SUBSTRING "${text}" 16 -1 text)
  endwhile()
endforeach()

set(TENFOLD_FORMAT_IDS)     # formats that are built, in the order of the list
set(TENFOLD_FORMAT_SOURCES) # their sources
set(known)
set(wanted ${TENFOLD_FORMATS})
set(registered "/* The formats of this build, made from src/formats/list.h. */\n")
foreach(line ${lines})
  string(REGEX REPLACE "^X\\(([a-z0-9_]+)\\).*" "\\1" id "${line}")
  if(NOT DEFINED name_of_${id})
    message(FATAL_ERROR "src/formats/list.h has ${id}, but no source defines tnf_format_${id}")
  endif()
  list(APPEND known ${name_of_${id}} ${family_of_${id}})
  if("all" IN_LIST wanted OR name_of_${id} IN_LIST wanted OR family_of_${id} IN_LIST wanted)
    list(APPEND TENFOLD_FORMAT_IDS ${id})
    string(TOUPPER TENFOLD_HAS_${id} has)
    set(${has} ON)
    if(folders_of_${id})
      set(TENFOLD_HAS_FOLDERS ON)
    endif()
    string(APPEND registered "X(${id})\n")
    cmake_path(GET source_of_${id} PARENT_PATH directory)
    if(directory STREQUAL formats_dir)
      list(APPEND TENFOLD_FORMAT_SOURCES ${source_of_${id}})
    else()
      file(GLOB sources CONFIGURE_DEPENDS ${directory}/*.c)
      list(APPEND TENFOLD_FORMAT_SOURCES ${sources})
    endif()
  endif()
endforeach()
list(REMOVE_DUPLICATES TENFOLD_FORMAT_SOURCES)
list(REMOVE_DUPLICATES known)
foreach(name ${wanted})
  if(NOT name STREQUAL "all" AND NOT name IN_LIST known)
    list(JOIN known ", " known)
    message(FATAL_ERROR "TENFOLD_FORMATS: there is no format '${name}'. There are: ${known}")
  endif()
endforeach()
if(NOT TENFOLD_FORMAT_IDS)
  message(FATAL_ERROR "TENFOLD_FORMATS names no format")
endif()
# The list of this build. Its directory comes before src/ in the search for headers, so
# #include "formats/list.h" finds this file and not src/formats/list.h.
set(TENFOLD_PARTS ${PROJECT_BINARY_DIR}/parts)
file(CONFIGURE OUTPUT ${TENFOLD_PARTS}/formats/list.h CONTENT "${registered}" @ONLY)

# -------------------------------------------------------------------- libraries

# Libraries are given as -lNAME, not as files. Then the linker chooses the shared library, or the archive
# with -static, here and in programs that use our archive. Each library comes before those that it
# needs, since a linker searches an archive only for symbols that are still missing.
set(TENFOLD_LIBRARIES)
set(TENFOLD_INCLUDES)

# tenfold_library(NAME MODULE PACKAGE WITHOUT): a library, or an error that says what to do.
function(tenfold_library name module package without)
  if(NOT PkgConfig_FOUND)
    message(FATAL_ERROR "There is no pkg-config, which finds ${module}. "
      "Install it (Debian and Ubuntu: pkg-config)${without}.")
  endif()
  pkg_check_modules(${name} QUIET ${module})
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "pkg-config does not find ${module}. "
      "Install it (Debian and Ubuntu: ${package})${without}.")
  endif()
  set(TENFOLD_LIBRARIES ${TENFOLD_LIBRARIES} ${${name}_STATIC_LDFLAGS} PARENT_SCOPE)
  set(TENFOLD_INCLUDES ${TENFOLD_INCLUDES} ${${name}_INCLUDE_DIRS} PARENT_SCOPE)
endfunction()

if(NOT TENFOLD_XXHASH AND (TENFOLD_HAS_ZTENSOR2 OR TENFOLD_HAS_VS))
  message(FATAL_ERROR "The formats ztensor2 and vs need libxxhash: build with -DTENFOLD_XXHASH=ON, "
    "or choose other formats with -DTENFOLD_FORMATS=…")
endif()
foreach(part "XXHASH libxxhash libxxhash-dev" "ZSTD libzstd libzstd-dev" "ZLIB zlib zlib1g-dev")
  separate_arguments(part)
  list(GET part 0 name)
  list(GET part 1 module)
  list(GET part 2 package)
  if(TENFOLD_${name})
    tenfold_library(${name} ${module} ${package} ", or build without it: -DTENFOLD_${name}=OFF")
  endif()
endforeach()
list(REMOVE_ITEM TENFOLD_LIBRARIES -pthread -ldl)
foreach(directory ${CMAKE_C_IMPLICIT_LINK_DIRECTORIES}) # the linker searches these in any case
  list(REMOVE_ITEM TENFOLD_LIBRARIES -L${directory})
endforeach()
list(APPEND TENFOLD_LIBRARIES ${CMAKE_DL_LIBS} -pthread -lm)
list(TRANSFORM TENFOLD_LIBRARIES REPLACE "^dl$" "-ldl")
if(CMAKE_EXE_LINKER_FLAGS MATCHES "-static( |$)")
  set(TENFOLD_CURL OFF) # a static program cannot load a library
endif()
