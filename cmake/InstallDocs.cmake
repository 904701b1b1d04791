# SPDX-License-Identifier: MIT
# Links of the installed documents: headers are where they were installed, and sources are nowhere, so
# their names stay without a link. DOCS and HEADERS are folders.
file(GLOB_RECURSE documents "${DOCS}/*.md")
foreach(document ${documents})
  cmake_path(GET document PARENT_PATH folder)
  file(RELATIVE_PATH headers "${folder}" "${HEADERS}")
  file(READ "${document}" text)
  string(REGEX REPLACE "\\]\\((\\.\\./)*include/tenfold/" "](${headers}/tenfold/" text "${text}")
  string(REGEX REPLACE "\\[([^]]*)\\]\\((\\.\\./)*(src|tests|tools)/[^)]*\\)" "\\1" text "${text}")
  file(WRITE "${document}" "${text}")
endforeach()
