# SPDX-License-Identifier: MIT
# Links of the installed documents: headers are where they were installed, and sources are nowhere, so
# their names stay without a link. SOURCE is our source tree, DOCS and HEADERS are the folders of the
# installation. What is in DOCS but not in SOURCE belongs to others and stays as it is.
cmake_path(ABSOLUTE_PATH DOCS)
cmake_path(ABSOLUTE_PATH HEADERS)
file(GLOB documents RELATIVE "${SOURCE}" "${SOURCE}/*.md")
file(GLOB_RECURSE more RELATIVE "${SOURCE}" "${SOURCE}/docs/*.md" "${SOURCE}/examples/*.md")
foreach(name ${documents} ${more})
  set(document "${DOCS}/${name}")
  if(NOT EXISTS "${document}")
    continue()
  endif()
  cmake_path(GET document PARENT_PATH folder)
  file(RELATIVE_PATH headers "${folder}" "${HEADERS}")
  file(READ "${document}" text)
  string(REGEX REPLACE "\\]\\((\\.\\./)*include/tenfold/" "](${headers}/tenfold/" text "${text}")
  string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./)*(src|tests|tools)/[^)]*\\)" "\\1" text "${text}")
  file(WRITE "${document}" "${text}")
endforeach()
