# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs: the libraries, their headers below
# include/shardcall, the command, and the package that find_package(shardcall)
# finds, with the target shardcall::shardcall.
include(CMakePackageConfigHelpers)

add_library(shardcall_all INTERFACE)
add_library(shardcall::shardcall ALIAS shardcall_all)
target_link_libraries(shardcall_all INTERFACE shardcall::api shardcall::kernels)
set_target_properties(shardcall_all PROPERTIES EXPORT_NAME shardcall)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardcall)
install(TARGETS shardcall_all EXPORT shardcallTargets)
install(TARGETS shardcall RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY sharding collectives kernels partitioner
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardcall
  FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN tools EXCLUDE)
install(EXPORT shardcallTargets NAMESPACE shardcall:: DESTINATION ${package_dir})

configure_package_config_file(cmake/shardcallConfig.cmake.in
  ${PROJECT_BINARY_DIR}/shardcallConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shardcallConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shardcallConfig.cmake
              ${PROJECT_BINARY_DIR}/shardcallConfigVersion.cmake
        DESTINATION ${package_dir})
