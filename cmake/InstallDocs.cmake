# SPDX-License-Identifier: MIT
# Changes the links of installed documents: headers are at another place, and sources are not installed, so links to
# them are removed. SOURCE is our source tree, DOCS and HEADERS are directories of the installation. Files in DOCS that
# are not in SOURCE belong to others and are not changed.
cmake_path(ABSOLUTE_PATH DOCS)
cmake_path(ABSOLUTE_PATH HEADERS)
file(GLOB documents RELATIVE "${SOURCE}" "${SOURCE}/*.md")
file(GLOB_RECURSE more RELATIVE "${SOURCE}" "${SOURCE}/docs/*.md" "${SOURCE}/examples/*.md")
foreach(name ${documents} ${more})
  set(document "${DOCS}/${name}")
  if(NOT EXISTS "${document}")
    continue()
  endif()
  cmake_path(GET document PARENT_PATH directory)
  file(RELATIVE_PATH headers "${directory}" "${HEADERS}")
  file(READ "${document}" text)
  string(REGEX REPLACE "\\]\\((\\.\\./)*include/tenfold/" "](${headers}/tenfold/" text "${text}")
  string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./)*(src|tests|tools)/[^)]*\\)" "\\1" text "${text}")
  file(WRITE "${document}" "${text}")
endforeach()
