# SPDX-License-Identifier: Apache-2.0
# Installs the build, builds the outside programs against it, in
# C++ and in C, static and shared, and runs them. Variables:
# BUILD (the build folder), SOURCE (this folder), WORK (a scratch folder).
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed:\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${WORK}/build
     -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=Release)
step(${CMAKE_COMMAND} --build ${WORK}/build)
step(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/c -B ${WORK}/build_c
     -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=Release)
step(${CMAKE_COMMAND} --build ${WORK}/build_c)
set(plugin ${WORK}/build_c/liboutside_plugin.so)
foreach(program outside_shardcall outside_shared)
  step(${WORK}/build/${program})
  if(NOT out MATCHES "rule: holds\ndevices: 4, ok")
    message(FATAL_ERROR "${program} printed:\n${out}")
  endif()
endforeach()
foreach(program build/outside_c_static build_c/outside_c_shared)
  step(${WORK}/${program} ${plugin})
  if(NOT out MATCHES "devices: 4, 0 2 4 6 8 10 12 14")
    message(FATAL_ERROR "${program} printed:\n${out}")
  endif()
endforeach()
# It loads the shared library and has no copy of it.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${WORK}/build_c/outside_c_shared
     RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing)
if(NOT "${found}" MATCHES "libshardcall[.]so")
  message(FATAL_ERROR "outside_c_shared needs ${found} and ${missing}, not libshardcall.so")
endif()
step(${WORK}/prefix/bin/shardcall targets --plugin=${plugin})
if(NOT out MATCHES "outside_double +Host")
  message(FATAL_ERROR "the installed command printed:\n${out}")
endif()
