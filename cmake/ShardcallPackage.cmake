# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs: the libraries, their headers below include/shardcall, the
# command, and the package that find_package(shardcall) finds. Whatever was not built is left
# out. Components of the package, and their targets:
#   static  shardcall::shardcall  for C++ and C, static (shared with BUILD_SHARED_LIBS)
#   shared  shardcall::shared     for C++, libshardcall.so with everything in it
#   c       shardcall::c          for C, the same library and nothing else
#   plugin  shardcall::plugin     headers for plugins in C, which link nothing
include(CMakePackageConfigHelpers)
include(ShardcallPublicHeaders)

add_library(shardcall_all INTERFACE)
add_library(shardcall::shardcall ALIAS shardcall_all)
target_link_libraries(shardcall_all INTERFACE shardcall::api shardcall::kernels shardcall::pjrt)
set_target_properties(shardcall_all PROPERTIES EXPORT_NAME shardcall)

# Only headers. Projects in C may use it, so it has no C++ options.
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
  # The archives add their dependencies; all their code is in the objects.
  target_link_libraries(shardcall_c PRIVATE ${rooms} INTERFACE shardcall_plugin)
  set_target_properties(shardcall_c PROPERTIES OUTPUT_NAME shardcall LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(shardcall_c PROPERTIES EXPORT_NAME c)
add_library(shardcall::c ALIAS shardcall_c)

# Also links what the C++ headers include.
add_library(shardcall_shared INTERFACE)
add_library(shardcall::shared ALIAS shardcall_shared)
target_compile_features(shardcall_shared INTERFACE cxx_std_20)
target_link_libraries(shardcall_shared INTERFACE shardcall_c absl::flat_hash_map
  absl::flat_hash_set absl::function_ref absl::inlined_vector absl::node_hash_map absl::span
  absl::status absl::statusor absl::strings absl::time absl::variant)
set_target_properties(shardcall_shared PROPERTIES EXPORT_NAME shared)

# Everything that is installed; no tests, examples and benchmarks.
add_custom_target(shardcall_installed)
add_dependencies(shardcall_installed shardcall shardcall_pjrt_plugin ${rooms} shardcall_c)

# One export set per library, so that a package without one library still has the others. With
# BUILD_SHARED_LIBS there is one set for all.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardcall)
if(BUILD_SHARED_LIBS)
  set(SHARDCALL_ONE_EXPORT TRUE)
  set(SHARDCALL_STATIC_FILE libshardcall_api${CMAKE_SHARED_LIBRARY_SUFFIX})
  set(c_export shardcallStaticTargets)
else()
  set(SHARDCALL_ONE_EXPORT FALSE)
  set(SHARDCALL_STATIC_FILE libshardcall_api${CMAKE_STATIC_LIBRARY_SUFFIX})
  set(c_export shardcallCTargets)
endif()
set(exports shardcallPluginTargets shardcallStaticTargets ${c_export})
list(REMOVE_DUPLICATES exports)
install(TARGETS shardcall_plugin EXPORT shardcallPluginTargets)
install(TARGETS shardcall_c EXPORT ${c_export} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
install(TARGETS shardcall_shared EXPORT ${c_export})
install(TARGETS shardcall_all EXPORT shardcallStaticTargets)
install(TARGETS shardcall RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
foreach(set ${exports})
  install(EXPORT ${set} NAMESPACE shardcall:: DESTINATION ${package_dir})
endforeach()

shardcall_public_closure(headers)
foreach(header ${headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardcall/${folder})
endforeach()
# The headers that users include as "shardcall/shardcall.h" and, for C, "shardcall/shardcall_c.h".
foreach(header partitioner/api/shardcall.h partitioner/bindings/c/shardcall_c.h)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardcall)
  get_filename_component(name ${header} NAME)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${header} ${SHARDCALL_INCLUDE_DIR}/shardcall/${name}
       SYMBOLIC)
endforeach()

configure_package_config_file(cmake/shardcallConfig.cmake.in
  ${PROJECT_BINARY_DIR}/shardcallConfig.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shardcallConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shardcallConfig.cmake
              ${PROJECT_BINARY_DIR}/shardcallConfigVersion.cmake
        DESTINATION ${package_dir})
file(RELATIVE_PATH SHARDCALL_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/shardcall.pc.in ${PROJECT_BINARY_DIR}/shardcall.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/shardcall.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# `cpack -G DEB` in the build folder makes a Debian package.
if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_PACKAGE_NAME shardcall)
  set(CPACK_PACKAGE_VENDOR "the shardcall authors")
  set(CPACK_PACKAGE_CONTACT "the shardcall authors <shardcall@localhost>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
      "A sharding-aware partitioner for HLO programs with custom calls")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  # For the headers that the C++ headers include.
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libabsl-dev")
  # Without the files of the Python wheel.
  set(CPACK_COMPONENTS_ALL Unspecified)
  set(CPACK_DEB_COMPONENT_INSTALL OFF)
  include(CPack)
endif()
