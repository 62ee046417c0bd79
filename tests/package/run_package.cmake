# SPDX-License-Identifier: Apache-2.0
# Installs the build, builds the outside project against it, runs it. Variables:
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
step(${WORK}/build/outside)
if(NOT out MATCHES "rule: holds\ndevices: 4, ok")
  message(FATAL_ERROR "the outside program printed:\n${out}")
endif()
step(${WORK}/prefix/bin/shardcall targets)
