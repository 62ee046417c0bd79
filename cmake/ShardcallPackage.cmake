# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs: the libraries, their headers below
# include/shardcall, the command, and the package that find_package(shardcall)
# finds. Its targets:
#   shardcall::shardcall  for C++ and C, static (shared with BUILD_SHARED_LIBS)
#   shardcall::shared     for C++, libshardcall.so with everything in it
#   shardcall::c          for C, the same library and nothing else
#   shardcall::plugin     headers for plugins in C, which link nothing
include(CMakePackageConfigHelpers)

add_library(shardcall_all INTERFACE)
add_library(shardcall::shardcall ALIAS shardcall_all)
target_link_libraries(shardcall_all INTERFACE shardcall::api shardcall::kernels shardcall::pjrt)
set_target_properties(shardcall_all PROPERTIES EXPORT_NAME shardcall)

# Headers alone; projects in C may use it, so it says nothing of C++.
add_library(shardcall_plugin INTERFACE)
add_library(shardcall::plugin ALIAS shardcall_plugin)
target_include_directories(shardcall_plugin INTERFACE
  $<BUILD_INTERFACE:${SHARDCALL_INCLUDE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(shardcall_plugin PROPERTIES EXPORT_NAME plugin)

get_property(rooms GLOBAL PROPERTY shardcall_rooms)
if(BUILD_SHARED_LIBS)
  add_library(shardcall_c INTERFACE)
  target_link_libraries(shardcall_c INTERFACE shardcall_all)
else()
  set(objects)
  foreach(room ${rooms})
    list(APPEND objects $<TARGET_OBJECTS:${room}>)
  endforeach()
  add_library(shardcall_c SHARED ${objects})
  # The archives bring what they link to; all they hold stands in the objects.
  target_link_libraries(shardcall_c PRIVATE ${rooms} INTERFACE shardcall_plugin)
  set_target_properties(shardcall_c PROPERTIES OUTPUT_NAME shardcall LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(shardcall_c PROPERTIES EXPORT_NAME c)
add_library(shardcall::c ALIAS shardcall_c)

# With what the C++ headers include.
add_library(shardcall_shared INTERFACE)
add_library(shardcall::shared ALIAS shardcall_shared)
target_compile_features(shardcall_shared INTERFACE cxx_std_20)
target_link_libraries(shardcall_shared INTERFACE shardcall_c absl::btree absl::flat_hash_map
  absl::flat_hash_set absl::function_ref absl::inlined_vector absl::node_hash_map absl::span
  absl::status absl::statusor absl::strings absl::synchronization absl::time absl::variant)
set_target_properties(shardcall_shared PROPERTIES EXPORT_NAME shared)
install(TARGETS shardcall_c shardcall_shared shardcall_plugin EXPORT shardcallTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# All of it, without tests, examples and benchmarks.
add_custom_target(installed)
add_dependencies(installed shardcall shardcall_pjrt_plugin ${rooms})
if(TARGET shardcall_c AND NOT BUILD_SHARED_LIBS)
  add_dependencies(installed shardcall_c)
endif()

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
