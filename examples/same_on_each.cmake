# SPDX-License-Identifier: Apache-2.0
# Runs PROGRAM with ARGUMENTS on threads, and with LAUNCH on processes; both must
# succeed and, but for the backend's name, print the same.
foreach(backend inprocess mpi)
  set(command ${PROGRAM} ${ARGUMENTS} --backend=${backend})
  if(backend STREQUAL "mpi")
    if(NOT LAUNCH)
      break()
    endif()
    list(PREPEND command ${LAUNCH})
  endif()
  execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE printed
                  ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${command} ended with ${status}:\n${printed}${errors}")
  endif()
  message("${printed}")
  string(REPLACE "(${backend})" "" ${backend} "${printed}")
endforeach()
if(LAUNCH AND NOT inprocess STREQUAL mpi)
  message(FATAL_ERROR "the backends differ:\n${inprocess}${mpi}")
endif()
