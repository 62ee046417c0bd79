# SPDX-License-Identifier: Apache-2.0
# Libraries that shardcall stands on. MPI and CUDA are optional and switch
# themselves off where they are not found.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(libzip REQUIRED)
find_package(BLAS REQUIRED)
if(SHARDCALL_BUILD_TESTS)
  find_package(GTest)
  if(NOT GTest_FOUND)
    message(WARNING "GoogleTest is not found: no tests are built")
    set(SHARDCALL_BUILD_TESTS OFF)
  endif()
endif()

set(SHARDCALL_HAVE_MPI OFF)
if(SHARDCALL_MPI)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(SHARDCALL_HAVE_MPI ON)
  endif()
endif()
message(STATUS "shardcall: MPI backend ${SHARDCALL_HAVE_MPI}")
