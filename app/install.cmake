# What `cmake --install` and `cpack -G DEB` hand out: the command with its manual page and completions, machines,
# models and experiments to start from, the documents, and the planner as a library with a CMake package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The manual page and the completions come from the command's own options, so they can't get stale.
set(generated ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated})
add_custom_command(
  OUTPUT ${generated}/hyperoffload.1 ${generated}/hyperoffload.bash ${generated}/_hyperoffload
  COMMAND hyperoffload manual > ${generated}/hyperoffload.1
  COMMAND hyperoffload completion bash > ${generated}/hyperoffload.bash
  COMMAND hyperoffload completion zsh > ${generated}/_hyperoffload
  DEPENDS hyperoffload VERBATIM)
add_custom_target(manual ALL DEPENDS ${generated}/hyperoffload.1)

install(TARGETS hyperoffload)
install(FILES ${generated}/hyperoffload.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${generated}/hyperoffload.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME hyperoffload)
install(FILES ${generated}/_hyperoffload DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(DIRECTORY configs traces DESTINATION ${CMAKE_INSTALL_DATADIR}/hyperoffload)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The library: planner/hyperoffload.h and what it includes, no more.
install(FILES planner/hyperoffload.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hyperoffload)
install(FILES planner/planner.h planner/decision_log.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hyperoffload/planner)
foreach(header check_plan error graph hardware ids plan units)
  install(FILES sim/model/${header}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hyperoffload/sim/model)
endforeach()
set_target_properties(sim_model PROPERTIES EXPORT_NAME model OUTPUT_NAME hyperoffload_model)
set_target_properties(planner PROPERTIES OUTPUT_NAME hyperoffload_planner)
target_include_directories(sim_model INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/hyperoffload>)
target_compile_features(sim_model INTERFACE cxx_std_20)
install(TARGETS sim_model planner EXPORT hyperoffload)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/hyperoffload)
install(EXPORT hyperoffload NAMESPACE hyperoffload:: FILE hyperoffload-targets.cmake DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hyperoffload-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES app/hyperoffload-config.cmake ${CMAKE_BINARY_DIR}/hyperoffload-config-version.cmake
  DESTINATION ${package})

# A Debian package: `cpack -G DEB` in the build folder.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "hyperoffload <hyperoffload@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "simulator of SuperNode hardware with an offload planner in front")
set(CPACK_PACKAGE_DESCRIPTION
"Says whether a model fits in the HBM of a machine beside a shared memory pool, how
 long a step takes under a plan of prefetches and stores or under reactive policies,
 and how far that is from the best possible.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# For programs that link the planner.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, libfmt-dev, libyaml-cpp-dev, nlohmann-json3-dev, zlib1g-dev")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
