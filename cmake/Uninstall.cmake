# SPDX-License-Identifier: MIT
# Removes the files that the last installation wrote, according to its list, and then directories
# named tenfold, and directories inside them, if they are empty. Other directories stay, because
# others may use them.
cmake_minimum_required(VERSION 3.25)
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "nothing was installed from here: there is no ${MANIFEST}")
endif()
file(STRINGS "${MANIFEST}" files)
# CMake writes a ';' in a name as a line break. If the prefix has one, its beginning is a line of
# its own for each file, and the lines are not names of files.
set(names ${files})
list(REMOVE_DUPLICATES names)
list(LENGTH files count)
list(LENGTH names different)
if(NOT count EQUAL different)
  message(FATAL_ERROR "nothing was removed: the prefix of the installation has a ';', so "
    "${MANIFEST} does not tell the names of the files")
endif()
set(left)
set(directories)
foreach(name ${files})
  set(file "$ENV{DESTDIR}${name}")
  file(REMOVE "${file}")
  if(EXISTS "${file}" OR IS_SYMLINK "${file}")
    string(APPEND left "\n  ${file}")
  endif()
  cmake_path(GET name PARENT_PATH directory)
  while(directory MATCHES "/tenfold(/|$)")
    list(APPEND directories "${directory}")
    if(directory MATCHES "/tenfold$")
      break()
    endif()
    cmake_path(GET directory PARENT_PATH directory)
  endwhile()
endforeach()
# Directories are removed before those that contain them. rmdir does not remove a directory that is
# not empty.
list(REMOVE_DUPLICATES directories)
list(SORT directories ORDER DESCENDING)
foreach(directory ${directories})
  execute_process(COMMAND rmdir "$ENV{DESTDIR}${directory}" ERROR_QUIET)
endforeach()
if(left)
  message(FATAL_ERROR "these files could not be removed:${left}")
endif()
