# SPDX-License-Identifier: MIT
# Removes what the last installation wrote, by its list. Folders stay.
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "nothing was installed from here: there is no ${MANIFEST}")
endif()
file(STRINGS "${MANIFEST}" files)
foreach(file ${files})
  file(REMOVE "$ENV{DESTDIR}${file}")
endforeach()
