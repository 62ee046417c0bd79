# SPDX-License-Identifier: Apache-2.0
# Runs a suite of device collectives: `cmake -DPROGRAM="PROGRAM;ARGUMENT;.." -P` this file.
# It must pass; or, without a GPU, end with exit code 4 before any test has run, saying E303.
execute_process(COMMAND ${PROGRAM} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
message("${out}${err}")
set(said "${out}${err}")
if(code EQUAL 0 AND out MATCHES "\\[  PASSED  \\]" AND NOT said MATCHES "\\[  FAILED  \\]")
  message("the suite passed")
elseif(code EQUAL 4 AND err MATCHES "E303 there is no CUDA device" AND NOT said MATCHES "\\[ +RUN")
  message("there is no GPU, and it said so")
else()
  message(FATAL_ERROR "neither passed nor without a GPU: exit code ${code}")
endif()
