# SPDX-License-Identifier: MIT
# Headers, both libraries, tenfold.pc, the CMake package, the command with its manual pages and
# completions, the documents.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/tenfold DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(FILES ${TENFOLD_GENERATED}/tenfold/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenfold)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tenfold)
# Each library has an export of its own, so that a package of the shared library may leave out the static one.
if(TENFOLD_SHARED)
  install(TARGETS tenfold EXPORT tenfoldTargets)
  install(EXPORT tenfoldTargets NAMESPACE tenfold:: DESTINATION ${package})
endif()
if(TENFOLD_STATIC)
  install(TARGETS tenfold_static EXPORT tenfoldStaticTargets)
  install(EXPORT tenfoldStaticTargets NAMESPACE tenfold:: DESTINATION ${package})
endif()

# The package finds its own place, so the installed tree may be moved.
function(tenfold_pc_dir out dir)
  if(IS_ABSOLUTE "${dir}")
    set(${out} "${dir}" PARENT_SCOPE)
  else()
    set(${out} "\${prefix}/${dir}" PARENT_SCOPE)
  endif()
endfunction()
tenfold_pc_dir(TENFOLD_PC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
tenfold_pc_dir(TENFOLD_PC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(TENFOLD_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(TENFOLD_PC_PREFIX "\${pcfiledir}/${up}")
endif()
# tenfold.pc requires no other .pc file, so users of the shared library need none. If only the static library is
# installed, every user must also link the libraries that it needs.
list(JOIN TENFOLD_LIBRARIES " " TENFOLD_PC_PRIVATE)
set(TENFOLD_PC_PUBLIC "")
if(NOT TENFOLD_SHARED)
  set(TENFOLD_PC_PUBLIC " ${TENFOLD_PC_PRIVATE}")
  set(TENFOLD_PC_PRIVATE "")
endif()
configure_file(cmake/tenfold.pc.in tenfold.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tenfold.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

configure_package_config_file(cmake/tenfoldConfig.cmake.in tenfoldConfig.cmake
  INSTALL_DESTINATION ${package})
# Before 1.0 a minor version may break the API.
write_basic_package_version_file(tenfoldConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tenfoldConfig.cmake
  ${PROJECT_BINARY_DIR}/tenfoldConfigVersion.cmake DESTINATION ${package})

if(TENFOLD_CLI)
  if(NOT TARGET tenfold_static AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}"
     AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}")
    # The command finds the shared library below any prefix. (With the static one it needs no path, and
    # CMake would fill the path of the command in the build directory with empty entries.)
    file(RELATIVE_PATH to_library "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
    set_target_properties(tenfold_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
  endif()
  install(TARGETS tenfold_cli)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
    FILES_MATCHING PATTERN "*.1")
  set(completions ${PROJECT_BINARY_DIR}/completions)
  install(FILES ${completions}/tenfold.bash RENAME tenfold
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completions}/_tenfold DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${completions}/tenfold.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

# The reference, if `./dev docs` made it in the source tree.
install(DIRECTORY build/docs/man/man3 DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL
  FILES_MATCHING PATTERN "*.3")

# Documents are installed in the same tree, so that their links are right and no two files have the same name.
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.md" PATTERN "*.c" PATTERN "*.py" PATTERN "*.png")
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
# tenfold_installed_dir(OUT DIR): the directory as an installation script finds it; DESTDIR is also put before an
# absolute one.
function(tenfold_installed_dir out dir)
  if(IS_ABSOLUTE "${dir}")
    set(${out} "\$ENV{DESTDIR}${dir}" PARENT_SCOPE)
  else()
    set(${out} "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${dir}" PARENT_SCOPE)
  endif()
endfunction()
tenfold_installed_dir(docs "${CMAKE_INSTALL_DOCDIR}")
tenfold_installed_dir(headers "${CMAKE_INSTALL_INCLUDEDIR}")
install(CODE "
  set(SOURCE \"${PROJECT_SOURCE_DIR}\")
  set(DOCS \"${docs}\")
  set(HEADERS \"${headers}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/InstallDocs.cmake\")")

if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall
    COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
            -P ${PROJECT_SOURCE_DIR}/cmake/Uninstall.cmake
    COMMENT "Removing what was installed" VERBATIM)
endif()
