# SPDX-License-Identifier: Apache-2.0
# Functions that declare the rooms' libraries and their tests.

# Headers are included as "shardcall/partitioner/...", both here and when installed, so that they
# are not confused with folders of other projects.
set(SHARDCALL_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${SHARDCALL_INCLUDE_DIR}/shardcall)
foreach(room sharding collectives kernels partitioner)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${room} ${SHARDCALL_INCLUDE_DIR}/shardcall/${room}
       SYMBOLIC)
endforeach()

if(SHARDCALL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "SHARDCALL_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # Only C and C++, since nvcc's host compiler may not be clang.
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>"
                      "$<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=undefined>"
                      "$<$<COMPILE_LANGUAGE:C,CXX>:-Wno-unknown-warning-option>")
endif()

# Frequently used headers are precompiled. A launcher such as ccache works better without.
set(precompile ON)
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(precompile OFF)
endif()
option(SHARDCALL_PRECOMPILE "Precompile common headers" ${precompile})
set(SHARDCALL_COMMON_HEADERS <algorithm> <functional> <memory> <string> <utility> <vector>
    <absl/container/flat_hash_map.h> <absl/container/inlined_vector.h> <absl/status/statusor.h>
    <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/types/span.h>)

# The first target of a kind compiles the headers; other targets reuse them.
function(shardcall_precompile target kind)
  if(NOT SHARDCALL_PRECOMPILE)
    return()
  endif()
  get_property(first GLOBAL PROPERTY shardcall_precompiled_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${SHARDCALL_COMMON_HEADERS} ${ARGN})
    set_property(GLOBAL PROPERTY shardcall_precompiled_${kind} ${target})
  endif()
endfunction()

# A build of everything takes half the time if files of a folder are compiled as one. After a change
# of one file they are all compiled again, so it is for builds from nothing.
option(SHARDCALL_UNITY "Compile files of a folder together" OFF)

# shardcall_unite(<target> <sources> <alone>): up to ten files of a folder are compiled as one. Not
# those of <alone>, files and folders: they give names of their own to what another file calls alike.
function(shardcall_unite target sources alone)
  if(NOT SHARDCALL_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE)
    file(RELATIVE_PATH path ${CMAKE_CURRENT_SOURCE_DIR} ${path})
    get_filename_component(folder ${path} DIRECTORY)
    if(folder STREQUAL "")
      set(folder .)
    endif()
    string(MAKE_C_IDENTIFIER "in_${folder}" group)
    if(NOT path IN_LIST alone AND NOT folder IN_LIST alone AND path MATCHES "[.]cc$")
      math(EXPR ${group} "${${group}} + 1")
      math(EXPR part "${${group}} / 10")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
    endif()
  endforeach()
endfunction()

# shardcall_library(<room> SOURCES ... FOLDERS ... ALONE ... DEPS ...) makes target shardcall_<room>,
# alias shardcall::<room>, of these sources and all that lie in these folders. DEPS are public, so the
# link graph is the dependency direction of the rooms. ALONE: see shardcall_unite.
function(shardcall_library room)
  cmake_parse_arguments(ARG "" "" "SOURCES;FOLDERS;ALONE;DEPS;PRIVATE_DEPS" ${ARGN})
  foreach(folder ${ARG_FOLDERS})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
    list(APPEND ARG_SOURCES ${found})
  endforeach()
  if(ARG_SOURCES)
    add_library(shardcall_${room} ${ARG_SOURCES})
    set(scope PUBLIC)
    target_compile_options(shardcall_${room} PRIVATE -Wall -Wextra -Wno-sign-compare
                         -Wno-maybe-uninitialized -Wno-missing-field-initializers)
    # libshardcall.so exports only what public headers declare. If each room is a shared library,
    # they need each other's internals.
    if(NOT BUILD_SHARED_LIBS)
      set_target_properties(shardcall_${room} PROPERTIES C_VISIBILITY_PRESET hidden
        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    endif()
    shardcall_precompile(shardcall_${room} library)
    shardcall_unite(shardcall_${room} "${ARG_SOURCES}" "${ARG_ALONE}")
    if(ARG_PRIVATE_DEPS)
      target_link_libraries(shardcall_${room} PRIVATE ${ARG_PRIVATE_DEPS})
    endif()
  else()
    add_library(shardcall_${room} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(shardcall::${room} ALIAS shardcall_${room})
  target_include_directories(shardcall_${room} ${scope}
    $<BUILD_INTERFACE:${SHARDCALL_INCLUDE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(shardcall_${room} ${scope} cxx_std_20)
  target_link_libraries(shardcall_${room} ${scope} ${ARG_DEPS})
  if(SHARDCALL_SANITIZE)
    target_compile_options(shardcall_${room} ${scope} -fsanitize=${SHARDCALL_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(shardcall_${room} ${scope} -fsanitize=${SHARDCALL_SANITIZE})
  endif()
  set_target_properties(shardcall_${room} PROPERTIES EXPORT_NAME ${room})
  if(ARG_SOURCES)
    set_property(GLOBAL APPEND PROPERTY shardcall_rooms shardcall_${room})
  endif()
  install(TARGETS shardcall_${room} EXPORT shardcallStaticTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
endfunction()

# shardcall_test(<name> SOURCES ... ALONE ... DEPS ...) makes a GoogleTest binary that ctest runs as
# one test. With SHARDCALL_UNITY its sources are compiled together, five at a time, but for those of
# ALONE, which give names of their own to what another one calls alike.
function(shardcall_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-sign-compare
                         -Wno-maybe-uninitialized -Wno-missing-field-initializers)
  # Tests run for milliseconds, and optimizing them would take a third of their build.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  target_compile_definitions(${name} PRIVATE SHARDCALL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # In a build from nothing also what most tests of the partitioner include of ours.
  if(SHARDCALL_UNITY AND CMAKE_CURRENT_SOURCE_DIR MATCHES "/tests/partitioner/")
    shardcall_precompile(${name} partitioner_test <gmock/gmock.h> <gtest/gtest.h>
      <shardcall/partitioner/api/partition.h> <shardcall/partitioner/api/run.h>
      <shardcall/partitioner/ir/text/parser.h> <shardcall/sharding/base/status.h>)
  else()
    shardcall_precompile(${name} test <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  if(SHARDCALL_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
    set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# A test that is left out, with the reason.
function(shardcall_skipped_test name why)
  message(WARNING "${name} is left out: ${why}")
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: ${why}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED")
endfunction()
