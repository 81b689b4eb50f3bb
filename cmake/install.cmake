# The install tree: headers, libraries, program, CMake package, pkg-config file.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/bloomline")

install(DIRECTORY engine/include/bloomline DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

# Two export sets: only the static library's names its dependencies, so that the shared library can be used where
# they are not installed for development.
install(TARGETS bloomline_static EXPORT bloomlineStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT bloomlineStaticTargets NAMESPACE bloomline:: DESTINATION ${package_dir})
if(BUILD_SHARED_LIBS)
  install(TARGETS bloomline EXPORT bloomlineTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT bloomlineTargets NAMESPACE bloomline:: DESTINATION ${package_dir})
endif()
if(TARGET bloomline_cli)
  install(TARGETS bloomline_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/bloomlineConfig.cmake.in "${PROJECT_BINARY_DIR}/cmake/bloomlineConfig.cmake"
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# 0.x: a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/bloomlineConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/cmake/bloomlineConfig.cmake"
  "${PROJECT_BINARY_DIR}/cmake/bloomlineConfigVersion.cmake"
  DESTINATION ${package_dir})
install(FILES cmake/dependencies.cmake DESTINATION ${package_dir} RENAME bloomlineDependencies.cmake)

# Relative to where the file lies: the tree may be moved, or installed with another --prefix.
file(RELATIVE_PATH pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
file(RELATIVE_PATH pc_libdir "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_LIBDIR}")
file(RELATIVE_PATH pc_includedir "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
if(BUILD_SHARED_LIBS)
  set(pc_libs_public "")
else()
  set(pc_libs_public " -lhwy -lhwloc -lxxhash -lpthread")
endif()
configure_file(cmake/bloomline.pc.in "${PROJECT_BINARY_DIR}/cmake/bloomline.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/cmake/bloomline.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
