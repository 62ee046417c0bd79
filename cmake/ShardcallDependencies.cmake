# SPDX-License-Identifier: Apache-2.0
# Libraries that shardcall depends on. MPI and CUDA are optional and disabled if they are not found.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(libzip REQUIRED)
find_package(BLAS REQUIRED)
find_package(Protobuf REQUIRED)
find_package(LAPACK REQUIRED)
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
    # For tests that run as root and with more ranks than cores, where calls without yielding take
    # milliseconds.
    set(SHARDCALL_MPI_ENVIRONMENT
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1)
  endif()
endif()
message(STATUS "shardcall: MPI backend ${SHARDCALL_HAVE_MPI}")

# Only headers and the static runtime are needed: no driver is needed to build or start.
set(SHARDCALL_HAVE_CUDA OFF)
if(SHARDCALL_CUDA)
  find_package(CUDAToolkit 12.8 QUIET)  # for cudaStreamGetDevice
  if(CUDAToolkit_FOUND AND TARGET CUDA::cudart_static)
    find_path(SHARDCALL_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(SHARDCALL_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}
                 PATH_SUFFIXES lib lib64)
    if(SHARDCALL_NCCL_INCLUDE AND SHARDCALL_NCCL_LIBRARY)
      set(SHARDCALL_HAVE_CUDA ON)
    endif()
  endif()
endif()
message(STATUS "shardcall: CUDA (12.8 or newer) and NCCL ${SHARDCALL_HAVE_CUDA}")

if(SHARDCALL_BUILD_TESTS)
  # For plugins, which are compiled as their authors do it.
  find_program(SHARDCALL_NVCC nvcc HINTS ${CUDAToolkit_BIN_DIR} /usr/local/cuda/bin)
endif()

# XLA's own FFI headers, from an installed jaxlib. Only tests use them: the product has its own
# declarations, which the tests compare with these.
set(SHARDCALL_HAVE_XLA_FFI OFF)
if(SHARDCALL_BUILD_TESTS)
  if(NOT SHARDCALL_XLA_FFI_INCLUDE)
    find_program(SHARDCALL_PYTHON NAMES python3)
    if(SHARDCALL_PYTHON)
      execute_process(
        COMMAND ${SHARDCALL_PYTHON} -c "import importlib.util as u, os; s = u.find_spec('jaxlib'); print(os.path.join(os.path.dirname(s.origin), 'include') if s else '')"
        OUTPUT_VARIABLE jaxlib_include OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    find_path(SHARDCALL_XLA_FFI_INCLUDE xla/ffi/api/c_api.h HINTS "${jaxlib_include}")
  endif()
  if(SHARDCALL_XLA_FFI_INCLUDE)
    set(SHARDCALL_HAVE_XLA_FFI ON)
  endif()
  message(STATUS "shardcall: tests against XLA's FFI headers ${SHARDCALL_HAVE_XLA_FFI}")
endif()
